"""Statistics of differences: signed-rank test, correction for several tests, bootstrap interval, standard error."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# resampled entries held in memory at once
_BLOCK = 4_000_000


def wilcoxon(differences: ArrayLike) -> float:
    """
    Test whether paired differences lie around zero, by Wilcoxon's signed ranks, on both sides.

    Parameters
    ----------
    differences : array-like of shape (n,)
        One for each pair.

    Returns
    -------
    float
        The p-value; 1 where nothing differs.

    Examples
    --------
    >>> wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0])
    0.0625
    """
    # scipy.stats takes longer to import than everything else here: only a test pays for it
    from scipy import stats

    values = np.asarray(differences, dtype=np.float64)
    return float(stats.wilcoxon(values).pvalue) if values.any() else 1.0


def rank_balance(differences: ArrayLike) -> float:
    """
    Say to which side the signed ranks of Wilcoxon's test lean: the rank-biserial correlation of paired differences.

    Returns: (W₊ − W₋) / (W₊ + W₋), where W₊ and W₋ are the sums of the ranks of the sizes of differences above and
        below zero, those of zero left out: from −1, all are below, to 1; 0 where nothing differs.

    >>> rank_balance([1.0, 2.0, 3.0, -4.0])
    0.2
    """
    from scipy import stats

    values = np.asarray(differences, dtype=np.float64)
    values = values[values != 0.0]
    ranks = stats.rankdata(np.abs(values))
    return float(np.sign(values) @ ranks / ranks.sum()) if len(values) else 0.0


def holm(p_values: ArrayLike) -> Floats:
    """
    Correct p-values for the number of tests that were made together (Holm, 1979).

    Rejecting what is at most 0.05 after the correction rejects any true hypothesis at all with probability at most
    0.05, however the tests depend on each other.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        Of m tests.

    Returns
    -------
    array of shape (m,)
        In ascending order of p, max over the tests up to it of (m − place) · p, place from 0, and 1 at most.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def bootstrap_interval(
    values: ArrayLike, rng: np.random.Generator, level: float = 0.95, n_resamples: int = 5000
) -> tuple[float, float]:
    """
    Find an interval of a mean by resampling.

    Parameters
    ----------
    values : array-like of shape (n,)
        One or more numbers, such as a metric of each query.
    rng : numpy.random.Generator
        Dice.
    level : float
        Level of the interval.
    n_resamples : int
        Number of samples.

    Returns
    -------
    low, high : float
        Percentiles of the means of the samples.

    Examples
    --------
    >>> bootstrap_interval([2.0, 2.0], np.random.default_rng(0))
    (2.0, 2.0)
    """
    drawn = np.asarray(values, dtype=np.float64)
    means = np.empty(n_resamples)
    step = max(1, _BLOCK // len(drawn))
    for begin in range(0, n_resamples, step):
        block = means[begin : begin + step]
        block[:] = drawn[rng.integers(len(drawn), size=(len(block), len(drawn)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def standard_error(values: ArrayLike, axis: int = 0) -> Floats:
    """
    Return the standard error of the mean over repeats.

    Parameters
    ----------
    values : array-like
        One value per repeat, and perhaps per further axis.
    axis : int
        Axis of the repeats.

    Returns
    -------
    array
        Without that axis; NaN for a single repeat.

    Examples
    --------
    >>> standard_error([[1.0, 2.0], [3.0, 2.0]]).tolist()
    [1.0, 0.0]
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[axis]
    if n < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    return np.asarray(values.std(axis=axis, ddof=1) / np.sqrt(n))
