"""Compiled kernels; they import numpy and numba only."""
