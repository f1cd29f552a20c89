"""Save and load fitted rankers and pipelines: safetensors and JSON, never pickle."""

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    from corank.deploy.persist.files import load as load
    from corank.deploy.persist.files import save as save

__all__ = ["load", "save"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, dict.fromkeys(__all__, "corank.deploy.persist.files"))
