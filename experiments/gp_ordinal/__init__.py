"""Ordinal regression on small sets: Gaussian processes against common methods."""
