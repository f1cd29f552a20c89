"""Checks of label targets: positions in rankings, indicators of relevance, lists and pairs of label numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.errors import InputError

Floats = NDArray[np.float64]


def as_positions(table: Any, name: str) -> Floats:
    """
    Check positions of labels.

    table (n, d): numbers; NaN if unknown.
    name: name of the argument.
    """
    values = _table(table, name)
    if np.isinf(values).any():
        raise InputError(f"{name} is infinite at example {_first(np.isinf(values))}; pass positions from 1, or NaN.")
    return values


def as_indicator(table: Any) -> Floats:
    """
    Check an indicator matrix.

    table (n, d): 0, 1, or NaN if unknown; may be sparse.
    """
    values = _table(table.toarray() if sparse.issparse(table) else table, "indicator")
    bad = ~(np.isnan(values) | (values == 0.0) | (values == 1.0))
    if bad.any():
        raise InputError(
            f"indicator is {values[bad][0]:g} at example {_first(bad)}; pass 1 for relevant labels, else 0."
        )
    return values


def levels_of(positions: Floats) -> NDArray[np.int32]:
    """Convert positions, 1 for the best, to levels 0, 1, ... without gaps, 0 for the worst; −1 for NaN."""
    order = np.argsort(positions, axis=1, kind="stable")
    ascending = np.take_along_axis(positions, order, axis=1)
    steps = np.cumsum(np.diff(ascending, axis=1, prepend=ascending[:, :1]) > 0.0, axis=1)
    known = ~np.isnan(ascending)
    highest = np.where(known, steps, 0).max(axis=1, initial=0)
    levels = np.empty(positions.shape, np.int32)
    np.put_along_axis(levels, order, np.where(known, highest[:, None] - steps, -1).astype(np.int32), axis=1)
    return levels


def sides_of(indicator: Floats) -> NDArray[np.int8]:
    """Convert 1, 0 and NaN to relevant, irrelevant and unknown."""
    return np.where(np.isnan(indicator), 0, np.where(indicator == 1.0, 1, -1)).astype(np.int8)


def as_labels(row: Any, n_labels: int, i: int) -> NDArray[np.int64]:
    """Check a list of distinct label numbers of example i."""
    labels = np.asarray(row)
    labels = labels.astype(np.int64) if not labels.size else labels
    is_list = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not is_list or (labels.size and not 0 <= labels.min() <= labels.max() < n_labels):
        raise InputError(f"example {i} lists {row!r}; pass label numbers from 0 to {n_labels - 1}.")
    if len(np.unique(labels)) < len(labels):
        raise InputError(f"example {i} lists a label twice; list each once.")
    return np.asarray(labels, dtype=np.int64)


def as_pairs(row: ArrayLike, n_labels: int, i: int) -> NDArray[np.uint32]:
    """Check preferences of example i and drop duplicates."""
    pairs = np.asarray(row)
    if not pairs.size:
        return np.empty((0, 2), np.uint32)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InputError(f"the preferences of example {i} have shape {pairs.shape}; pass two label numbers each.")
    if not 0 <= pairs.min() <= pairs.max() < n_labels:
        raise InputError(f"example {i} prefers labels {pairs.tolist()}; labels are numbered 0 to {n_labels - 1}.")
    return np.unique(pairs, axis=0).astype(np.uint32)


def indicator_of(
    relevant: Iterable[Sequence[int]], irrelevant: Iterable[Sequence[int]] | None, n_labels: int
) -> Floats:
    """Convert sets of label numbers to an indicator; by default, all other labels are irrelevant."""
    relevant_rows = [as_labels(row, n_labels, i) for i, row in enumerate(relevant)]
    irrelevant_rows = None if irrelevant is None else [as_labels(row, n_labels, i) for i, row in enumerate(irrelevant)]
    if irrelevant_rows is not None and len(irrelevant_rows) != len(relevant_rows):
        raise InputError(
            f"there are {len(relevant_rows)} sets of relevant and {len(irrelevant_rows)} of irrelevant labels; pass "
            "one of each per example."
        )
    indicator = np.full((len(relevant_rows), n_labels), 0.0 if irrelevant_rows is None else np.nan)
    for i, row in enumerate(relevant_rows):
        if irrelevant_rows is not None:
            indicator[i, irrelevant_rows[i]] = 0.0
            if np.isin(row, irrelevant_rows[i]).any():
                raise InputError(f"example {i} has a label that is relevant and irrelevant; keep it in one set.")
        indicator[i, row] = 1.0
    return indicator


def _table(table: Any, name: str) -> Floats:
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as a table of numbers; pass one number per label.") from error
    if values.ndim != 2 or not values.shape[1]:
        raise InputError(f"{name} has shape {values.shape}; pass a row per example with a column per label.")
    return values


def _first(bad: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(bad.any(axis=1))[0])
