"""Brinker and Hüllermeier, Calibrated label-ranking, 2005: rankings, sets and top lists of labels, on real data."""
