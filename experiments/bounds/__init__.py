"""Do bounds hold, and how wide are they? Resamples of two real data sets, each its own population."""
