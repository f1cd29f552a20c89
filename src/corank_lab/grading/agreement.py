"""Krippendorff's alpha with a bootstrap interval over the documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corank.data import krippendorff

RESAMPLES = 1000
LEAST_DOCUMENTS = 10
"""Number of documents below which resampling says nothing about the error."""


class AlphaInterval(NamedTuple):
    """
    Agreement of judges.

    alpha: Krippendorff's alpha; NaN if it is undefined.
    low, high: 95 % bootstrap interval over the documents; NaN with fewer than ten documents.
    n_documents: Number of documents with two grades or more.
    """

    alpha: float
    low: float
    high: float
    n_documents: int


def alpha_interval(
    grades: Sequence[Sequence[float]], level: str = "ordinal", *, resamples: int = RESAMPLES, random_state: int = 0
) -> AlphaInterval:
    """
    Compute Krippendorff's alpha with a bootstrap interval.

    Documents are drawn with replacement. A sample in which all grades are equal has no alpha and is left out.

    >>> found = alpha_interval([[0, 0], [1, 1], [2, 2], [2, 1], [0, 0], [1, 1]] * 2)
    >>> round(found.alpha, 2), found.low < found.alpha <= found.high, found.n_documents
    (0.88, True, 12)
    """
    shared = [np.asarray(one, dtype=np.float64) for one in grades if len(one) > 1]
    n = len(shared)
    nan = float("nan")
    if not n:
        return AlphaInterval(nan, nan, nan, 0)
    sizes = np.array([len(one) for one in shared])
    values, starts = np.concatenate(shared), np.cumsum(sizes) - sizes
    alpha = krippendorff(np.repeat(np.arange(n), sizes), values, level)
    rng = np.random.default_rng(random_state)
    found = []
    for _ in range(resamples if n >= LEAST_DOCUMENTS else 0):
        drawn = rng.integers(n, size=n)
        # rows of the drawn documents, one after another
        ends = np.cumsum(sizes[drawn])
        rows = np.arange(ends[-1]) + np.repeat(starts[drawn] - (ends - sizes[drawn]), sizes[drawn])
        found.append(krippendorff(np.repeat(np.arange(n), sizes[drawn]), values[rows], level))
    kept = np.array([one for one in found if one == one])
    if not len(kept):
        return AlphaInterval(alpha, nan, nan, n)
    low, high = np.quantile(kept, [0.025, 0.975])
    return AlphaInterval(alpha, float(low), float(high), n)
