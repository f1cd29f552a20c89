"""Tables of labels as users give them: positions in rankings, and indicators of relevance; checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.errors import InputError

Floats = NDArray[np.float64]


def as_positions(table: Any, name: str) -> Floats:
    """
    Check positions of labels.

    table (n, d): numbers, NaN for none.
    name: what the user calls them.
    """
    found = _table(table, name)
    if np.isinf(found).any():
        raise InputError(f"{name} is infinite at example {_first(np.isinf(found))}; pass positions from 1, or NaN.")
    return found


def as_indicator(table: Any) -> Floats:
    """
    Check an indicator matrix.

    table (n, d): 0, 1, or NaN where it is not known; may be sparse.
    """
    found = _table(table.toarray() if sparse.issparse(table) else table, "indicator")
    bad = ~(np.isnan(found) | (found == 0.0) | (found == 1.0))
    if bad.any():
        raise InputError(
            f"indicator is {found[bad][0]:g} at example {_first(bad)}; pass 1 for relevant labels, else 0."
        )
    return found


def levels_of(positions: Floats) -> NDArray[np.int32]:
    """
    Turn positions, 1 for the best, into levels 0, 1, ... without gaps, 0 for the worst; −1 for NaN.

    >>> levels_of(np.array([[1.0, 2.5, 2.5, np.nan]])).tolist()
    [[1, 0, 0, -1]]
    """
    order = np.argsort(positions, axis=1, kind="stable")
    falling = np.take_along_axis(positions, order, axis=1)
    steps = np.cumsum(np.diff(falling, axis=1, prepend=falling[:, :1]) > 0.0, axis=1)
    known = ~np.isnan(falling)
    most = np.where(known, steps, 0).max(axis=1, initial=0)
    levels = np.empty(positions.shape, np.int32)
    np.put_along_axis(levels, order, np.where(known, most[:, None] - steps, -1).astype(np.int32), axis=1)
    return levels


def _table(table: Any, name: str) -> Floats:
    try:
        found = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as a table of numbers; pass one number per label.") from error
    if found.ndim != 2 or not found.shape[1]:
        raise InputError(f"{name} has shape {found.shape}; pass a row per example with a column per label.")
    return found


def _first(bad: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(bad.any(axis=1))[0])
