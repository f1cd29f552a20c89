"""Gaussian processes that learn from preferences."""
