"""Inputs: check scores, priors, weights and preference pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.durable.files import require_unchanged
from corank.data.queries import is_missing
from corank.errors import InputError, reason

MAX_WEIGHT = 1e40
"""Largest weight, and the inverse of the smallest: squared products of three weights must not overflow."""


def as_weights(weights: ArrayLike, n: int, what: str = "row", name: str = "weights") -> NDArray[np.float64]:
    """Check weights."""
    try:
        w = np.asarray(weights, dtype=np.float64)
        w = np.full(n, w) if w.ndim == 0 else w
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers ({reason(error)}); pass one per {what}.") from error
    if w.shape != (n,):
        raise InputError(f"{name} has shape {w.shape} for {n} {what}s; pass one weight per {what}, a 1D array.")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise InputError(f"{name} is {w[bad[0]]} at {what} {bad[0]}; pass finite weights of at least 0.")
    if n and not w.any():
        raise InputError(f"{name} is zero for all {n} {what}s; give some of them a positive weight.")
    return w


def require_moderate(w: NDArray[np.float64], what: str, name: str) -> None:
    """Raise `InputError` if products of the weights could overflow or underflow; `what`, `name` as in `as_weights`."""
    bad = np.flatnonzero((w > MAX_WEIGHT) | ((w > 0.0) & (w < 1.0 / MAX_WEIGHT)))
    if len(bad):
        raise InputError(
            f"{name} is {w[bad[0]]:g} at {what} {bad[0]}, which could overflow or underflow in products; keep "
            f"weights between {1.0 / MAX_WEIGHT:g} and {MAX_WEIGHT:g}, or 0."
        )


def require_weight(total: float, what: str) -> None:
    """Raise `InputError` if no weight is positive."""
    if not total > 0.0:
        raise InputError(f"no {what} has a positive weight; give some rows a weight above zero.")


MAX_VALUE = 1e15
"""Largest absolute value of a feature or prior in online learning and the service; integers up to it are exact."""
# the squares of smaller scores can be summed over all pairs without overflow
_LARGEST_SCORE = 1e130


def as_scores(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Check scores: a vector of numbers, one per row, NaN for unjudged rows."""
    if y is None:
        raise InputError(
            "ranking requires y to be passed, but the target y is None; pass one score per row, NaN where unjudged."
        )
    scores = as_numbers(y, "y", "score")
    if len(scores) != n_rows:
        raise InputError(f"y has {len(scores)} scores for {n_rows} rows of X; pass one score per row.")
    if np.isinf(scores).any():
        row = int(np.flatnonzero(np.isinf(scores))[0])
        raise InputError(f"y contains infinity at row {row}; pass a finite score, or NaN for an unjudged row.")
    return scores


def as_numbers(values: ArrayLike, name: str, what: str) -> NDArray[np.float64]:
    """Check a vector of numbers, one per row; missing values (None, NaN, pandas.NA) become NaN."""
    require_unchanged(values)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM":
            raise TypeError(f"they are of type {array.dtype}")
        if array.dtype.kind in "OTU":
            array = array.astype(object)
            array = np.where(np.asarray(np.frompyfunc(is_missing, 1, 1)(array), dtype=bool), np.nan, array)
        numbers = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers ({reason(error)}); pass one {what} per row.") from error
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1:
        raise InputError(f"{name} has shape {numbers.shape}; pass one {what} per row, a vector of numbers.")
    _require_exact(array.reshape(-1), numbers, name)
    return numbers


def _require_exact(values: NDArray[Any], numbers: NDArray[np.float64], name: str) -> None:
    """Raise `InputError` if an integer is not a float64, such as -1 in an unsigned type, which is 2^64 - 1."""
    if values.dtype.kind not in "iuO":
        return
    for row in np.flatnonzero(np.abs(numbers) >= 2.0**53):
        value = values[row]
        if isinstance(value, int | np.integer) and int(value) != int(numbers[row]):
            raise InputError(
                f"{name} is {value} at row {row}, an integer beyond 2^53 that would be rounded; pass smaller numbers, "
                "and NaN for missing ones."
            )


def as_prior(prior: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Check prior scores: a finite number for every row."""
    scores = as_numbers(prior, "prior", "score")
    if len(scores) != n_rows:
        raise InputError(f"prior has {len(scores)} scores for {n_rows} rows of X; pass one score per row.")
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise InputError(f"prior is {scores[bad[0]]} at row {bad[0]}; pass a finite score for every row.")
    require_squares(scores)
    return scores


def require_range(rows: Any, prior: NDArray[np.float64] | None = None) -> None:
    """Raise `InputError` if a feature or a prior is not from −`MAX_VALUE` to `MAX_VALUE`."""
    largest = largest_value(rows)
    if not largest <= MAX_VALUE:
        raise InputError(f"X holds the value {largest:.3g}; pass values from -1e15 to 1e15, or scale the columns.")
    if prior is not None and not (largest := largest_value(prior)) <= MAX_VALUE:
        raise InputError(f"prior holds the value {largest:.3g}; pass scores from -1e15 to 1e15, or scale them.")


def largest_value(rows: Any) -> float:
    """Return the largest absolute value of rows, dense or sparse; NaN if there is a NaN."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def require_squares(s: NDArray[np.float64]) -> None:
    """Raise `InputError` if sums of squared scores could overflow or underflow."""
    largest = float(np.max(np.abs(s), where=~np.isnan(s), initial=0.0))
    if largest > 0.0 and not 1.0 / _LARGEST_SCORE < largest < _LARGEST_SCORE:
        raise InputError(
            f"the scores reach {largest:.3g}, which is too large or too small to be squared; multiply them by a power "
            "of ten."
        )


def as_pairs(pairs: ArrayLike, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Check preferences: pairs of row numbers of the same query, the preferred row first."""
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
    same = np.flatnonzero(values[:, 0] == values[:, 1])
    if len(same):
        raise InputError(f"pairs compares row {values[same[0], 0]} with itself at pair {same[0]}; remove it.")
    mixed = np.flatnonzero(codes[values[:, 0]] != codes[values[:, 1]])
    if len(mixed):
        raise InputError(f"pairs joins rows of two queries at pair {mixed[0]}; compare rows of one query only.")
    return values
