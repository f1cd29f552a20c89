"""Kernels over ranked lists: gains, discounts and LambdaRank gradients."""
