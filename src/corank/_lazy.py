"""Lazy imports: names of a package that are imported on first use, and tests that need no import."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from corank._moved import find

_IMPORT = re.compile(r"^from ([\w.]+) import (\w+) as \2$", re.MULTILINE)


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """
    Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package.

    The names and their modules are the lines ``from module import name as name`` of the stub ``__init__.pyi``, which
    type checkers and editors read too. A module of a package must not have the name of something that the package
    exports: the import of the module would hide it.
    """
    stub = Path(sys.modules[package].__file__ or "").with_suffix(".pyi")
    homes = {name: module for module, name in _IMPORT.findall(stub.read_text(encoding="utf-8"))}

    def getattribute(name: str) -> Any:
        if name not in homes:
            return find(package, name)
        home = homes[name]
        return import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)

    return getattribute, lambda: sorted(homes), sorted(name for name in homes if homes[name] != package)


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of scipy; scipy.sparse takes long to import, but made X if it is."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(X))


def is_pipeline(model: Any) -> bool:
    """Return whether a model is a Pipeline of scikit-learn, whose module takes long to import, but made it if it is."""
    module = sys.modules.get("sklearn.pipeline")
    return module is not None and isinstance(model, module.Pipeline)


def is_of(model: Any, *names: str) -> bool:
    """Return whether a class of corank with one of these names is among the bases; importing it takes long."""
    return any(base.__name__ in names and base.__module__.startswith("corank.") for base in type(model).__mro__)
