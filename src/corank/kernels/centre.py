"""Rows seen from their middle: distances by products lose what differs far from the origin."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def centre_of(Z: Any) -> Any:
    """Return what rows are seen from: the mean of each column; of a CSR matrix where few of its rows are zero there."""
    if not sparse.issparse(Z):
        return Z.mean(axis=0, dtype=np.float64)
    is_stored = Z.data != 0.0
    columns, values = Z.indices[is_stored], Z.data[is_stored].astype(np.float64)
    counts = np.bincount(columns, minlength=Z.shape[1])
    means = np.bincount(columns, values, Z.shape[1]) / np.maximum(counts, 1)
    return sparse.csr_array(np.where(2 * counts > Z.shape[0], means, 0.0)[None, :])


def about(centre: Any, rows: Any) -> Any:
    """Subtract a centre, in float64; the zeros of a CSR matrix stay where that of another is zero."""
    if not sparse.issparse(rows):
        return rows - (centre.toarray() if sparse.issparse(centre) else centre)
    if not sparse.issparse(centre):
        return rows.toarray() - centre
    if not centre.nnz:
        return rows
    n = rows.shape[0]
    repeated = (np.tile(centre.data, n), np.tile(centre.indices, n), np.arange(n + 1) * centre.nnz)
    return sparse.csr_array(rows, dtype=np.float64) - sparse.csr_array(repeated, shape=rows.shape)
