"""Collaborative ordinal regression on MovieLens: Gaussian processes that share a prior, and what they have to pass."""
