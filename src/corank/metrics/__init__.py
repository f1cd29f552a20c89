"""Ranking metrics by name under a named convention, evaluation of runs, tests of significance, bounds, agreement."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
