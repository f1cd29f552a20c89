"""Save and load fitted rankers and pipelines: safetensors and JSON, never pickle."""

from corank.persist.files import load, save

__all__ = ["load", "save"]
