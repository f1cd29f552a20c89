"""Kernels for label ranking: constraints, losses, stochastic and online steps."""
