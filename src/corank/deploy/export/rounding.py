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

from corank.deploy.export.scorers import LinearScorer, PerceptronScorer, Scorer, TreeScorer

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


def gamma(n: int, unit: float = UNIT) -> float:
    """Return n u / (1 − n u), the relative error of n roundings; infinity if n u reaches 1."""
    return n * unit / (1.0 - n * unit) if n * unit < 1.0 else np.inf


def single_bound(scorer: Scorer, rows: Floats, normalised: bool = False) -> Floats:
    """Bound the error of a score that is summed in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(scorer, LinearScorer):
            error, size = _linear(scorer, rows, normalised)
        elif isinstance(scorer, TreeScorer):
            size = scorer.size(rows)
            error = gamma(scorer.trees.n_trees + 2) * size + TINY * (scorer.trees.n_trees + 2)
        else:
            assert isinstance(scorer, PerceptronScorer)
            error, size = _perceptron(scorer, rows)
        return np.where(size < 0.25 * LARGEST, error, np.inf)


def _linear(scorer: LinearScorer, rows: Floats, normalised: bool) -> tuple[Floats, Floats]:
    filled = np.abs(np.nan_to_num(rows))
    n = rows.shape[1]
    if not normalised or scorer.normaliser is None:
        size = filled @ np.abs(scorer.weights) + abs(scorer.intercept)
        return gamma(n + 3) * size + TINY * (2 * n + 2 + filled.sum(axis=1)), size
    norm = scorer.normaliser
    spread = norm.second if norm.kind == "standard" else norm.second - norm.first
    # relative error of a divisor, and what a rounded mean changes
    divisor = UNIT + (UNIT * (np.abs(norm.first) + np.abs(norm.second)) / spread if norm.kind == "min_max" else 0.0)
    gaps, steep = np.abs(np.nan_to_num(rows) - norm.first), np.abs(norm.weights / spread)
    terms = gaps * steep
    size = terms.sum(axis=1) + abs(norm.intercept) + np.abs(norm.first) @ steep
    slack = 1.0 + gamma(n + 8)
    error = gamma(n + 8) * terms.sum(axis=1) + slack * (terms @ (2.0 * divisor * np.ones(n)))
    error = error + slack * UNIT * (np.abs(norm.first) @ steep) + gamma(n + 3) * abs(norm.intercept)
    small = TINY * (2 * n + 2 + (gaps / np.abs(spread)).sum(axis=1) + np.abs(norm.weights).sum() + steep.sum())
    return error + small, size


def _perceptron(scorer: PerceptronScorer, rows: Floats) -> tuple[Floats, Floats]:
    """Propagate errors through the layers; tanh and symlog change a difference by at most its size."""
    scaled = np.abs(np.nan_to_num(rows) * scorer.scale)
    out = np.abs(scorer.inputs(np.nan_to_num(rows)))
    error = gamma(4) * (scaled + np.abs(scorer.shift)) + 8 * UNIT * (1.0 + out) + 4 * TINY
    size = scaled.max(axis=1, initial=0.0) + np.abs(scorer.shift).max(initial=0.0)
    last = len(scorer.weights) - 1
    for i, (W, b) in enumerate(zip(scorer.weights, scorer.biases, strict=True)):
        n = W.shape[0]
        sums = (out + error) @ np.abs(W) + np.abs(b)
        error = error @ np.abs(W) + gamma(n + 3) * sums + TINY * (2 * n + 2)
        size = np.maximum(size, sums.max(axis=1))
        if i < last:
            # tanh is at most 1, and its result is rounded
            error = error + 4 * UNIT
            out = np.minimum(sums, 1.0)
    return error[:, 0], size


def double_bound(scorer: Scorer, rows: Floats, single_output: bool = False) -> Floats:
    """Bound the difference of two float64 evaluations of a score, far above both errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = DOUBLE * scorer.size(rows) + 1e-290
        if single_output:
            scores = np.abs(scorer.score(rows))
            error = error + np.where(scores < LARGEST, UNIT * (scores + error) + TINY, np.inf)
    return np.where(np.isfinite(error), error, np.inf)
