"""Estimators by name: what the folders of the library export. A class is imported when it is looked up."""

from __future__ import annotations

from importlib import import_module
from typing import Any

FOLDERS = ("models", "base", "clicks", "text")
"""Folders that export estimators."""


def names() -> list[str]:
    """Return the names that the folders export, in alphabetical order."""
    return sorted({name for folder in FOLDERS for name in import_module(f"corank.{folder}").__all__})


def find(name: str) -> Any:
    """Return what a folder exports under this name, None if none does."""
    for folder in FOLDERS:
        package = import_module(f"corank.{folder}")
        if name in package.__all__:
            return getattr(package, name)
    return None
