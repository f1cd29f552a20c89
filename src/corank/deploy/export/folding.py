"""Folding: put the column scaling of a pipeline into the scorer, so that it takes unscaled columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from corank.core.models.trees import DEFAULT_LEFT, MISSING_NAN
from corank.deploy.export.scorers import (
    CalibratedScorer,
    KernelScorer,
    LinearScorer,
    PerceptronScorer,
    Scorer,
    SumScorer,
    TreeScorer,
    missing_goes_left,
)
from corank.errors import InputError

Floats = NDArray[np.float64]


def fold_columns(scaler: Any, scorer: Scorer) -> Scorer:
    """Return the scorer of unscaled columns."""
    if getattr(scaler, "clip", False):
        raise InputError("MinMaxScaler(clip=True) cannot be folded into a model; fit with clip=False.")
    a, b = _factors(scaler)
    if isinstance(scorer, LinearScorer):
        return LinearScorer(scorer.weights * a, float(scorer.intercept + scorer.weights @ b))
    if isinstance(scorer, PerceptronScorer):
        return replace(scorer, scale=scorer.scale * a, shift=scorer.shift + scorer.scale * b)
    if isinstance(scorer, KernelScorer):
        own = scorer.columns
        return replace(scorer, scale=scorer.scale * a[own], shift=scorer.shift + scorer.scale * b[own])
    if isinstance(scorer, TreeScorer):
        return _fold_trees(scaler, scorer)
    if isinstance(scorer, SumScorer):
        return replace(scorer, parts=tuple((weight, fold_columns(scaler, part)) for weight, part in scorer.parts))
    assert isinstance(scorer, CalibratedScorer)
    return replace(scorer, inner=fold_columns(scaler, scorer.inner))


def _factors(scaler: Any) -> tuple[Floats, Floats]:
    """Return a and b with scaled = x a + b."""
    n = scaler.n_features_in_
    if isinstance(scaler, StandardScaler):
        a = 1.0 / scaler.scale_ if scaler.with_std else np.ones(n)
        return a, (-scaler.mean_ * a if scaler.with_mean else np.zeros(n))
    if isinstance(scaler, MinMaxScaler):
        return np.asarray(scaler.scale_), np.asarray(scaler.min_)
    return 1.0 / scaler.scale_, np.zeros(n)


def _fold_trees(scaler: Any, scorer: TreeScorer) -> TreeScorer:
    """Replace each threshold by the largest value that the scaler puts at or below it."""
    if scorer.has_missing_zeros:
        raise InputError(
            "trees with zero_as_missing after a scaler cannot be exported, since a scaled zero is another value; fit "
            "without the scaler, which trees do not need."
        )
    trees = scorer.trees
    columns = trees.features.astype(np.int64)

    def scaled(values: Floats) -> Floats:
        # the scaler's own arithmetic, on one column at a time
        if isinstance(scaler, StandardScaler):
            centred = values - scaler.mean_[columns] if scaler.with_mean else values
            return np.asarray(centred / scaler.scale_[columns] if scaler.with_std else centred)
        if isinstance(scaler, MinMaxScaler):
            return np.asarray(values * scaler.scale_[columns] + scaler.min_[columns])
        return np.asarray(values / scaler.scale_[columns])

    result = _largest_below(scaled, trees.thresholds)
    # a missing value stays missing, and goes where a scaled zero would
    left = missing_goes_left(trees.flags, trees.thresholds)
    flags = np.where(left, MISSING_NAN | DEFAULT_LEFT, MISSING_NAN).astype(np.uint8)
    return replace(scorer, trees=replace(trees, thresholds=result, flags=flags))


def _largest_below(function: Callable[[Floats], Floats], limits: Floats) -> Floats:
    """Return the largest float64 x with f(x) ≤ limit, for an increasing f, by bisection over all float64."""
    largest = np.full(len(limits), np.finfo(np.float64).max)
    low, high = _ordinal(-largest), _ordinal(largest)
    with np.errstate(over="ignore", invalid="ignore"):
        while (low < high).any():
            # the upper middle, without overflow of the sum
            middle = low // 2 + high // 2 + (low % 2 + high % 2 + 1) // 2
            is_below = function(_number(middle)) <= limits
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle - 1)
            high = np.maximum(low, high)
    return _number(low)


def _ordinal(values: Floats) -> NDArray[np.int64]:
    """Return integers in the order of float64 numbers."""
    bits = np.ascontiguousarray(values).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _number(ordinals: NDArray[np.int64]) -> Floats:
    bits = np.where(ordinals >= 0, ordinals, np.int64(-(2**63)) - ordinals)
    return np.ascontiguousarray(bits).view(np.float64)
