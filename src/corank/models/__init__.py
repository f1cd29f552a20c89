"""Estimators that learn to rank."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
