"""Lazy imports: names of a package that are imported on first use, and tests that need no import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """
    Return ``__getattr__`` and ``__dir__`` for a package.

    package: name of the package.
    homes: the module that defines each public name; a submodule maps to the package itself.
    """

    def getattribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)

    return getattribute, lambda: sorted(homes)


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of scipy; scipy.sparse takes long to import, but made X if it is."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(X))


def is_pipeline(model: Any) -> bool:
    """Return whether a model is a Pipeline of scikit-learn, whose module takes long to import, but made it if it is."""
    module = sys.modules.get("sklearn.pipeline")
    return module is not None and isinstance(model, module.Pipeline)
