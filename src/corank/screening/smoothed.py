"""Smoothed text: a record's place among all records, averaged with that of its nearest neighbours, judged or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

RANK, NEIGHBOURS = 200, 10
EXACT = 3000
"""Rows up to which the directions are exact; beyond, they are found by random projections."""
FITTED = 10_000
"""Rows, at most, that directions are fitted to and that may be neighbours; beyond, a random choice of them."""
BLOCK = 20_000_000
"""Similarities held at once."""

Rows = NDArray[np.float32]


def smoothed(text: Any) -> Rows:
    """
    Average each row's low-rank image with the mean of those of its nearest other rows.

    text: sparse rows of norm 1, or empty.
    Returns: dense rows of norm 1; empty ones stay 0.
    """
    n = text.shape[0]
    fitted = np.arange(n)
    if n > FITTED:
        fitted = np.sort(np.random.default_rng(0).choice(n, FITTED, replace=False))
    images = _images(text, fitted)
    among = images[fitted]
    place = np.full(n, -1)
    place[fitted] = np.arange(len(fitted))
    k = min(NEIGHBOURS, len(fitted) - 1)
    found = np.empty_like(images)
    step = max(1, BLOCK // len(fitted))
    for begin in range(0, n, step):
        rows = np.arange(begin, min(begin + step, n))
        nearness = images[rows] @ among.T
        itself = np.flatnonzero(place[rows] >= 0)
        nearness[itself, place[rows[itself]]] = -2.0
        near = np.argpartition(nearness, -k, axis=1)[:, -k:]
        mean = np.zeros_like(images[rows])
        for column in near.T:
            mean += among[column]
        found[rows] = 0.5 * images[rows] + 0.5 / k * mean
    # a row without words has no neighbours
    found[np.diff(text.indptr) == 0] = 0.0
    return np.asarray(normalize(found), dtype=np.float32)


def _images(text: Any, fitted: NDArray[np.intp]) -> Rows:
    """Rows of norm 1 in the directions in which the fitted rows differ most."""
    n = text.shape[0]
    if n <= EXACT:
        gram = (text @ text.T).toarray().astype(np.float64)
        # Lanczos' method needs fewer directions than rows
        values, vectors = eigsh(gram, min(RANK, n // 2), v0=np.ones(n)) if n > 2 else np.linalg.eigh(gram)
        return np.asarray(normalize(vectors * np.sqrt(np.maximum(values, 0.0))), dtype=np.float32)
    features = text[:, np.bincount(text.indices, minlength=text.shape[1]) >= 2]
    _, _, directions = randomized_svd(features[fitted], RANK, n_iter=2, random_state=0)
    return np.asarray(normalize(features @ directions.T.astype(np.float32)), dtype=np.float32)
