"""Coverage and width of the bounds on resamples of two real data sets."""
