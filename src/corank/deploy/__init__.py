"""Save and load models, export them to engines, and learn on many machines."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
