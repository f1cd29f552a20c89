"""
Import scikit-learn for a command without the libraries that it imports and seldom uses.

`import sklearn.base` takes a second, of which scipy.stats (for one old function) and pandas (for its version) are two
thirds. A command is a process of its own, so that it may delay the first and leave out the second, which is imported
when something else asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any

DELAYED = "scipy.stats"
LEFT_OUT = "pandas"


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return a module that is loaded when it is first used; None for other modules, which are found as usual."""
        if name == LEFT_OUT:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
        spec = PathFinder.find_spec(name, path) if name == DELAYED else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def import_scikit_learn() -> None:
    """Import `sklearn.base`, unless it was imported."""
    if "sklearn" in sys.modules:
        return
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        import sklearn.base  # noqa: F401
    finally:
        sys.meta_path.remove(finder)
