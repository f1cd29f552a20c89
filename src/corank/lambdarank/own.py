"""Forces of the user's own: a function of the scores and grades of one query, in Python or compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, reason
from corank.lambdarank.lists import Lists

Floats = NDArray[np.float64]


def find_function(place: str) -> Callable[..., Any]:
    """
    Import a function of the user's.

    place: ``module:function``.
    """
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{place!r} cannot be imported ({reason(error)}); name it as module:function.") from error
    if not callable(found):
        raise InputError(f"{place!r} is a {type(found).__name__}; name a function of scores and grades.")
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class OwnForces:
    """
    A function of the user's, applied to one query after the other.

    function: takes scores and grades; returns forces, or a tuple of forces and curvatures. Where it returns no
        curvatures, |λ_i| stands for them: a Newton step is then the balance of pulls up and down, whatever their unit.
    """

    function: Callable[..., Any]

    def add(self, lists: Lists, scores: Floats, factor: float, out: Floats, first: int, last: int) -> None:
        """Add forces and curvatures of queries `first` to `last` to `out`; a query weighs what its first row does."""
        own = np.zeros((2, len(scores)))
        is_compiled = isinstance(self.function, numba.core.dispatcher.Dispatcher)
        starts = lists.starts
        if is_compiled and first < last:
            some = slice(starts[first], starts[first + 1])
            gives_curvatures = isinstance(self.function(scores[some], lists.labels[some]), tuple)
            _loop(gives_curvatures)(self.function, scores, lists.labels, starts, own, first, last)
        else:
            for q in range(first, last):
                self._add_query(scores, lists.labels, slice(starts[q], starts[q + 1]), own)
        rows = slice(starts[first], starts[last])
        if not np.isfinite(own[:, rows]).all():
            raise InputError(
                f"{self._name} returned forces or curvatures that are not finite; bound them for all scores."
            )
        out[:, rows] += (
            factor * lists.weights[np.repeat(starts[first:last], np.diff(starts[first : last + 1]))] * own[:, rows]
        )

    @property
    def _name(self) -> str:
        return f"forces {getattr(self.function, '__name__', 'function')!r}"

    def _add_query(self, scores: Floats, labels: Floats, rows: slice, own: Floats) -> None:
        n = rows.stop - rows.start
        # a function may write to what it is given
        found = self.function(scores[rows].copy(), labels[rows].copy())
        forces, curvatures = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        for part in (forces,) if curvatures is None else (forces, curvatures):
            if np.shape(part) != (n,) or np.asarray(part).dtype.kind not in "biuf":
                came = "None" if part is None else f"{type(part).__name__} of shape {np.shape(part)}"
                raise InputError(
                    f"{self._name} returned what is not one force a row ({came}); return {n} forces, or a tuple of "
                    "forces and curvatures."
                )
        own[0, rows] = forces
        own[1, rows] = np.abs(own[0, rows]) if curvatures is None else curvatures


@cache
def _loop(gives_curvatures: bool) -> Callable[..., None]:
    """Compile the loop over queries; a function as an argument is compiled anew in every process."""
    if gives_curvatures:

        def loop(function, scores, labels, starts, own, first, last):  # type: ignore[no-untyped-def]
            for q in range(first, last):
                begin, end = starts[q], starts[q + 1]
                forces, curvatures = function(scores[begin:end], labels[begin:end])
                own[0, begin:end] = forces
                own[1, begin:end] = curvatures
    else:

        def loop(function, scores, labels, starts, own, first, last):  # type: ignore[no-untyped-def]
            for q in range(first, last):
                begin, end = starts[q], starts[q + 1]
                forces = function(scores[begin:end], labels[begin:end])
                own[0, begin:end] = forces
                own[1, begin:end] = np.abs(forces)

    return numba.njit(nogil=True)(loop)
