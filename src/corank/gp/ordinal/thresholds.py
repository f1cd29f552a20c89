"""Thresholds: where one grade ends and the next begins, kept in order by the logarithms of their gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def thresholds_of(free: Floats) -> Floats:
    """b_1 < ... < b_{r−1} from b_1 and the logarithms of the gaps."""
    return np.asarray(free[0] + np.concatenate([[0.0], np.cumsum(np.exp(free[1:]))]))


def free_of(thresholds: Floats) -> Floats:
    """b_1 and the logarithms of the gaps."""
    return np.concatenate([thresholds[:1], np.log(np.diff(thresholds))])


def free_slopes(free: Floats, slopes: Floats) -> Floats:
    """Slopes in b_1 and the logarithms of the gaps, from those in the thresholds."""
    above = np.cumsum(slopes[::-1])[::-1]
    return np.concatenate([above[:1], np.exp(free[1:]) * above[1:]])


def ends_of(thresholds: Floats) -> tuple[Floats, Floats]:
    """Where each grade's interval begins and ends; the first and the last are open."""
    return np.concatenate([[-np.inf], thresholds]), np.concatenate([thresholds, [np.inf]])


def threshold_slopes(codes: Integers, lo_slope: Floats, hi_slope: Floats, n_levels: int) -> Floats:
    """Slopes in the thresholds, from those in the ends of intervals, one of the grade `codes` each."""
    of_hi, of_lo = np.bincount(codes, hi_slope, n_levels), np.bincount(codes, lo_slope, n_levels)
    return np.asarray(of_hi[:-1] + of_lo[1:])


def quantile_thresholds(counts: Floats, mean: float, deviation: float) -> Floats:
    """
    Thresholds that give a normal number the grades in these shares.

    counts (r,): how often each grade was seen; one that was not is taken for half a time.
    """
    seen = np.maximum(counts, 0.5)
    return np.asarray(mean + deviation * special.ndtri(np.cumsum(seen)[:-1] / seen.sum()))
