"""
What classes say of their fitted attributes beside the annotations: shapes, relations, and predictions to try.

A forger can compute checksums, so nothing else says that the parts of a file fit together: `corank.load` checks the
annotations and these tables, which stand in the class that they describe, and hold for its subclasses, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Shapes = dict[str, tuple[str, ...]]
"""Axes of arrays by attribute. A name has one value within an object; "..." is any number of axes."""

Relations = dict[str, Callable[[Any], Any]]
"""Sentences and their tests, which may assume types and shapes as declared; a test that raises has failed."""

Predictions = dict[str, Callable[[Any, Any], Any]]
"""Predictions of two small rows, by the name of the method."""

PARTS: dict[str, type[Part]] = {}
"""Classes of corank that may be part of a saved model, by their names in files; estimators import theirs."""


class Part:
    """Base class of frozen dataclasses that may be part of a saved model."""

    _shapes: ClassVar[Shapes] = {}
    _relations: ClassVar[Relations] = {}
    _may_be_infinite: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **more: Any) -> None:
        """Note the class if it belongs to corank."""
        super().__init_subclass__(**more)
        if cls.__module__.startswith("corank."):
            PARTS[cls.__name__] = cls


def is_ascending(values: NDArray[Any]) -> bool:
    """Return whether each value is larger than the one before it."""
    return bool((values[1:] > values[:-1]).all())


def are_below(numbers: NDArray[np.int64], n: int, least: int = 0) -> bool:
    """Return whether numbers are at least `least` and below n."""
    return not len(numbers) or bool(least <= numbers.min() and numbers.max() < n)
