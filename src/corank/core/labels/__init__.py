"""Kernels for label ranking: constraints, losses and steps."""
