"""Ranking problems, and the files they are read from and written to."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
