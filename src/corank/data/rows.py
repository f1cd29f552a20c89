"""Rows as the core wants them: a float array or CSR matrix of finite numbers, copied only when it must be."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.errors import InputError


def as_rows(X: Any) -> Any:
    """
    Check rows and return them as a C-ordered float32/float64 array or a CSR matrix.

    Parameters
    ----------
    X : ndarray, sparse matrix, pandas or polars DataFrame, or nested list
        The rows.

    Returns
    -------
    ndarray or CSR matrix
        X itself when it already has the wanted form.
    """
    if sparse.issparse(X):
        rows = X if X.format == "csr" else X.tocsr()
        if rows.dtype not in (np.float32, np.float64):
            rows = rows.astype(np.float64)
        if not rows.has_sorted_indices:
            rows = rows.sorted_indices()
    else:
        rows = _as_dense(X)
    if rows.ndim != 2:
        raise InputError(f"X has shape {rows.shape}; pass a table of shape (n_rows, n_features).")
    require_finite(rows)
    return rows


def require_finite(X: Any) -> None:
    """
    Raise one sentence that names the first NaN or infinity of X.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The rows.
    """
    values = X.data if sparse.issparse(X) else X
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        total = values.sum(dtype=np.float64)
    # a finite sum has finite terms; an infinite one may still come from finite terms, so look closer then
    if np.isfinite(total) or np.isfinite(values).all():
        return
    row, column = _first_bad(X)
    value = float(X[row, column])
    kind = "NaN" if np.isnan(value) else "infinity"
    raise InputError(
        f"X contains {kind} at row {row}, column {column}; pass finite numbers (fill or drop missing values first)."
    )


def _first_bad(X: Any) -> tuple[int, int]:
    if not sparse.issparse(X):
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        return row, int(np.flatnonzero(~np.isfinite(X[row]))[0])
    at = int(np.flatnonzero(~np.isfinite(X.data))[0])
    return int(np.searchsorted(X.indptr, at, side="right") - 1), int(X.indices[at])


def _as_dense(X: Any) -> NDArray[Any]:
    try:
        rows = np.asarray(X)
        if rows.dtype not in (np.float32, np.float64):
            rows = rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must hold numbers ({error}).") from error
    return np.ascontiguousarray(rows) if rows.ndim == 2 else rows
