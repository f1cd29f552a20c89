"""Ordinal regression on small sets: Gaussian processes against what is usually taken."""
