"""
Float32: neighbours of thresholds, and bounds of rounding errors that decide which changed orders float32 explains.

An engine reads features as float32 and adds up in float32. Let x̃ be a row rounded to float32, s̃ the model's score of x̃
in float64 and B(x̃) the bound below. An engine that follows its format gives a score within B of s̃. Hence a changed
order of two rows is *explained* if s̃ orders them otherwise than the model does (rounding of the inputs), or if their
scores s̃ differ by at most the sum of their bounds (rounding of the sums). Any other changed order is a fault of the
export.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.scorers import LinearScorer, Scorer, TreeScorer
from corank.errors import InputError

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

# unit roundoff and least positive number of float32
UNIT = 2.0**-24
TINY = 2.0**-149
LARGEST = float(np.finfo(np.float32).max)
# relative error that float64 engines and corank may have, far above both
DOUBLE = 2.0**-36


def floor32(values: Any) -> Singles:
    """
    Return the largest float32 at or below each number: x ≤ t is then the same for every float32 x.

    >>> float(floor32(0.1)) < 0.1, float(floor32(0.5)), float(floor32(1e300))
    (True, 0.5, 3.4028234663852886e+38)
    """
    exact = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        near = exact.astype(np.float32)
        below = np.where(near.astype(np.float64) > exact, np.nextafter(near, np.float32(-np.inf)), near)
    return np.asarray(np.minimum(below, np.float32(LARGEST)), dtype=np.float32)


def above32(values: Any) -> Singles:
    """
    Return the least float32 above each number: x < it is then x ≤ t for every float32 x.

    >>> float(above32(0.5)) > 0.5, float(above32(0.1)) == float(np.float32(0.1))
    (True, True)
    """
    with np.errstate(over="ignore"):
        next_one = np.nextafter(floor32(values), np.float32(np.inf))
    return np.asarray(np.minimum(next_one, np.float32(LARGEST)))


def to_single(rows: Floats) -> Singles:
    """Round rows to float32; numbers beyond its range become its largest."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(rows, -LARGEST, LARGEST).astype(np.float32))


def single_text(value: Any) -> str:
    """Return the shortest decimal number that reads back as the nearest float32."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if not np.isfinite(near):
        raise InputError(f"the model holds {float(value):g}, beyond the range of float32; rescale the features.")
    return str(near)


def gamma(n: int, unit: float = UNIT) -> float:
    """Return n u / (1 − n u), the relative error of n roundings; infinity if n u reaches 1."""
    return n * unit / (1.0 - n * unit) if n * unit < 1.0 else np.inf


def single_bound(scorer: Scorer, rows: Floats, shift: float) -> Floats:
    """Bound the error of a score that is summed in float32, and to which a constant is added."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(scorer, LinearScorer):
            filled = np.abs(np.nan_to_num(rows))
            n, size = rows.shape[1], filled @ np.abs(scorer.weights) + abs(scorer.intercept)
            error = gamma(n + 3) * size + TINY * (2 * n + 2 + filled.sum(axis=1))
        else:
            assert isinstance(scorer, TreeScorer)
            size = scorer.size(rows)
            error = gamma(scorer.trees.n_trees + 2) * size + TINY * (scorer.trees.n_trees + 2)
        error = error + 2.0**-23 * (abs(shift) + np.abs(scorer.score(np.nan_to_num(rows))))
        return np.where(size < 0.25 * LARGEST, error, np.inf)


def double_bound(scorer: Scorer, rows: Floats, single_output: bool = False) -> Floats:
    """Bound the difference of two float64 evaluations of a score, far above both errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = DOUBLE * scorer.size(rows) + 1e-290
        if single_output:
            scores = np.abs(scorer.score(rows))
            error = error + np.where(scores < LARGEST, UNIT * (scores + error) + TINY, np.inf)
    return np.where(np.isfinite(error), error, np.inf)
