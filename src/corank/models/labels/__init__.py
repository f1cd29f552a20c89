"""Calibrated label ranking: order labels, with a zero point between relevant and irrelevant ones."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
