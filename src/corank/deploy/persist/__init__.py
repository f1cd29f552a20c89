"""Save and load fitted rankers and pipelines: safetensors and JSON, never pickle."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
