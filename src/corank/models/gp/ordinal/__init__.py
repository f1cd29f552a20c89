"""Gaussian processes that learn from grades."""
