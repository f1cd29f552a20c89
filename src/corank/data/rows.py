"""Rows as the core wants them: a float array or CSR matrix of finite numbers, copied only when it must be."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

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
    try:
        rows = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C",
            ensure_all_finite=False, ensure_2d=True, input_name="X",
        )  # fmt: skip
    except ValueError as error:
        raise InputError(_one_sentence(X, error)) from error
    if sparse.issparse(rows) and not rows.has_sorted_indices:
        rows = rows.sorted_indices()
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


def _one_sentence(X: Any, error: ValueError) -> str:
    shape = np.shape(X)
    if len(shape) != 2:
        return f"X has shape {shape}; pass a table of shape (n_rows, n_features). Reshape your data."
    return str(error)
