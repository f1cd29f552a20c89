"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """
    Return ``__getattr__`` and ``__dir__`` of a package.

    package: its name.
    homes: each public name and the module that defines it; the name of a submodule maps to the package itself.
    """

    def getattribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)

    return getattribute, lambda: sorted(homes)
