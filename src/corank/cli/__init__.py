"""The command line."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
