"""Learn from clicks: click models, online rankers, interleaving, and logged clicks."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
