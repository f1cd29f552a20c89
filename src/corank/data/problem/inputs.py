"""Scores and preferences as users give them, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.problem.queries import is_missing
from corank.data.problem.rows import require_whole
from corank.errors import InputError, reason

# squares of such scores, summed over all pairs there may be, can still be held
_LARGEST = 1e130


def as_scores(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """
    Check scores: a vector of numbers, one per row, NaN for unscored rows.

    n_rows: number of rows of X.
    """
    if y is None:
        raise InputError(
            "ranking requires y to be passed, but the target y is None; pass one score per row, NaN where unscored."
        )
    scores = as_numbers(y, "y", "score")
    if len(scores) != n_rows:
        raise InputError(f"y has {len(scores)} scores for {n_rows} rows of X; pass one score per row.")
    if np.isinf(scores).any():
        row = int(np.flatnonzero(np.isinf(scores))[0])
        raise InputError(f"y contains infinity at row {row}; pass a finite score, or NaN for an unscored row.")
    return scores


def as_numbers(values: ArrayLike, name: str, what: str) -> NDArray[np.float64]:
    """
    Check a vector of numbers, one per row; what is missing (None, NaN, pandas.NA) is NaN.

    values: A vector, or a table of one column.
    name: how the caller calls it, for the message.
    what: what one number is, for the message.
    """
    require_whole(values)
    try:
        given = np.asarray(values)
        if given.dtype.kind in "cmM":
            raise TypeError(f"they are of type {given.dtype}")
        if given.dtype.kind in "OTU":
            given = given.astype(object)
            given = np.where(np.asarray(np.frompyfunc(is_missing, 1, 1)(given), dtype=bool), np.nan, given)
        numbers = given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers ({reason(error)}); pass one {what} per row.") from error
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1:
        raise InputError(f"{name} has shape {numbers.shape}; pass one {what} per row, a vector of numbers.")
    return numbers


def as_prior(prior: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """
    Check scores known before learning: a finite number for every row, scored or not.

    n_rows: number of rows of X.
    """
    scores = as_numbers(prior, "prior", "score")
    if len(scores) != n_rows:
        raise InputError(f"prior has {len(scores)} scores for {n_rows} rows of X; pass one score per row.")
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise InputError(f"prior is {scores[bad[0]]} at row {bad[0]}; pass a finite score for every row.")
    require_squares(scores)
    return scores


def require_squares(s: NDArray[np.float64]) -> None:
    """
    Raise one sentence where scores cannot be squared and summed.

    s: scores, or their distances from a mean; NaN does not count.
    """
    largest = float(np.max(np.abs(s), where=~np.isnan(s), initial=0.0))
    if largest > 0.0 and not 1.0 / _LARGEST < largest < _LARGEST:
        raise InputError(
            f"the scores reach {largest:.3g}, which is too large or too small to be squared; multiply them by a power "
            "of ten."
        )


def as_pairs(pairs: ArrayLike, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """
    Check preferences: row numbers, the preferred row first, both of one query.

    codes (n_rows,): query of each row.
    """
    try:
        values = np.asarray(pairs)
    except ValueError as error:
        raise InputError("pairs has rows of different lengths; pass integers of shape (n_pairs, 2).") from error
    if values.size == 0:
        raise InputError("pairs is empty; pass at least one preference.")
    if values.ndim != 2 or values.shape[1] != 2 or values.dtype.kind not in "iu":
        raise InputError(
            f"pairs has shape {values.shape} and type {values.dtype}; "
            "pass integers of shape (n_pairs, 2), the preferred row first."
        )
    values = values.astype(np.int64, copy=False)
    if values.min() < 0 or values.max() >= len(codes):
        outlier = values.min() if values.min() < 0 else values.max()
        raise InputError(f"pairs names row {outlier}, but X has rows 0 to {len(codes) - 1}; pass row numbers.")
    selves = np.flatnonzero(values[:, 0] == values[:, 1])
    if len(selves):
        raise InputError(f"pairs compares row {values[selves[0], 0]} with itself at pair {selves[0]}; remove it.")
    strangers = np.flatnonzero(codes[values[:, 0]] != codes[values[:, 1]])
    if len(strangers):
        raise InputError(f"pairs joins rows of two queries at pair {strangers[0]}; compare rows of one query only.")
    return values
