"""Save and load fitted rankers: safetensors and JSON, never pickle."""

from corank.persist.files import load, save

__all__ = ["load", "save"]
