"""
Import scikit-learn and LightGBM for a command, without the libraries that they import and seldom use.

`import sklearn.base` takes a second, of which scipy.stats (for one old function), pandas (for its version) and parts of
numpy (for their names) are two thirds. LightGBM imports pandas, and scikit-learn's model selection for estimators that
corank does not use. A command is a process of its own, so that it may delay some and leave out the others, which are
imported when something else asks for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader, find_spec
from typing import Any

DELAYED = ("scipy.stats", "numpy.f2py", "numpy.testing")


class _Finder(MetaPathFinder):
    def __init__(self, left_out: tuple[str, ...]) -> None:
        self._left_out = left_out

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return a module that is loaded when it is first used; None for other modules, which are found as usual."""
        if name in self._left_out:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
        spec = PathFinder.find_spec(name, path) if name in DELAYED else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def _without(*left_out: str) -> Iterator[None]:
    finder = _Finder(left_out)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def import_scikit_learn() -> None:
    """Import `sklearn.base`, unless it was imported."""
    if "sklearn" not in sys.modules:
        with _without("pandas"):
            import sklearn.base  # noqa: F401


def import_lightgbm() -> None:
    """Import LightGBM without its estimators, if it is installed and was not imported."""
    if "lightgbm" not in sys.modules and find_spec("lightgbm") is not None:
        with _without("dask", "pandas", "sklearn.model_selection"):
            import lightgbm  # noqa: F401
