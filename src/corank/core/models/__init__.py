"""Kernels of single methods: pursuit, expectation propagation and ridge regression per user."""
