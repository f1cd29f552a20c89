"""Exact solvers of convex ranking problems, and shared parts of iterative methods: Newton, Adam, early stopping."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
