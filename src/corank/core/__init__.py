"""Loops over arrays: numpy and numba, nothing else."""
