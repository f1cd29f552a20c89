"""Kernels over pairs of rows: sampling, losses, stochastic descent and counting."""
