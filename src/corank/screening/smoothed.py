"""Smoothed text: a record's place among all records, averaged with that of its nearest neighbours, judged or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from corank.core.neighbours import averaged, unit

RANK, NEIGHBOURS = 200, 10
EXACT = 3000
"""Rows up to which the directions are exact; beyond, they are found by random projections."""
FITTED = 10_000
"""Rows, at most, that directions are fitted to and that may be neighbours; beyond, a random choice of them."""

Rows = NDArray[np.float32]


def smoothed(text: Any) -> Rows:
    """
    Average each row's low-rank image with the mean of those of its nearest other rows.

    text: sparse rows of norm 1, or empty.
    Returns: dense rows of norm 1; empty ones stay 0.
    """
    n = text.shape[0]
    fitted = np.arange(n) if n <= FITTED else np.sort(np.random.default_rng(0).choice(n, FITTED, replace=False))
    images = _images(text, fitted).astype(np.float32, copy=False)
    images[np.diff(text.indptr) == 0] = 0.0  # of a row without words there is nothing but rounding
    images, among = unit(images), images[fitted]
    return averaged(images, among[among.any(axis=1)], NEIGHBOURS)


def _images(text: Any, fitted: NDArray[np.intp]) -> NDArray[Any]:
    """Rows in the directions in which the fitted rows differ most."""
    n = text.shape[0]
    if n <= EXACT:
        gram = (text @ text.T).toarray().astype(np.float64)
        # Lanczos' method needs fewer directions than rows
        values, vectors = eigsh(gram, min(RANK, n // 2), v0=np.ones(n)) if n > 2 else np.linalg.eigh(gram)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    from sklearn.utils.extmath import randomized_svd  # takes longer to import than few records to read

    features = text[:, np.bincount(text.indices, minlength=text.shape[1]) >= 2]
    _, _, directions = randomized_svd(features[fitted], RANK, n_iter=2, random_state=0)
    return np.asarray(features @ directions.T.astype(np.float32))
