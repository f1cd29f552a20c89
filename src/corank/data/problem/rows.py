"""Rows as learners want them: a float array or CSR matrix of finite numbers, or any objects."""

from __future__ import annotations

from collections.abc import Iterable
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from corank.core.rows.structure import ASCENDING, BAD_COLUMN, BAD_POINTERS, all_finite, csr_structure
from corank.errors import InputError, InputTypeError, reason


def as_rows(X: Any) -> Any:
    """
    Check rows and return them as a C-ordered float32/float64 array or a CSR matrix, each entry stored once.

    Returns: X itself when it already has the wanted form.
    """
    require_whole(X)
    rises = sparse.issparse(X) and require_structure(X)
    try:
        rows = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C",
            ensure_all_finite=False, ensure_2d=True, input_name="X",
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(_one_sentence(X, error)) from error
    if sparse.issparse(rows) and not (rises if X.format == "csr" else rows.has_canonical_format):
        # norms of rows would be wrong where an entry is stored in two parts
        rows = rows.copy()
        rows.has_canonical_format = rows.has_sorted_indices = False  # whatever was said of it
        rows.sum_duplicates()
    require_finite(rows)
    return rows


def is_table(X: Any) -> bool:
    """
    Tell a table of numbers from a sequence of objects.

    X: what the user gave as rows.
    Returns: whether X is a sparse matrix, a data frame, or an array or nested list of numbers in two dimensions.
    """
    if sparse.issparse(X) or hasattr(X, "columns"):
        return True
    try:
        values = np.asarray(X)
    except ValueError:
        return False
    return values.ndim == 2 and values.dtype.kind in "biuf"


def as_objects(X: Any) -> NDArray[np.object_]:
    """Return a sequence of objects as an array with one object a row."""
    if not isinstance(X, Iterable):
        raise InputError(f"X is of type {type(X).__name__}; pass a sequence with one object a row.")
    items = list(X)
    rows = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        rows[i] = item
    return rows


def columns_of(X: Any, rows: Any) -> Any:
    """
    Choose what scikit-learn should read column names and their number from.

    X: rows as the user gave them.
    rows: what `as_rows` made of them.
    Returns: the frame itself where X is one, else `rows`.
    """
    return X if hasattr(X, "columns") else rows


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """
    Return some rows of X, in the form of X.

    X: array, sparse matrix, pandas or polars frame or series, or sequence.
    rows: their numbers.
    """
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "__array__") or sparse.issparse(X):
        return X[rows]
    return [X[row] for row in rows.tolist()]


def require_columns(estimator: Any, X: Any, rows: Any) -> None:
    """
    Raise one sentence where rows have another number of columns than those of ``fit``; a frame is known by its names.

    estimator: fitted.
    X, rows: as in `columns_of`.
    """
    wanted, found = estimator.n_features_in_, rows.shape[1]
    if found != wanted and not hasattr(X, "columns"):
        # the first words are those of scikit-learn, whose contract asks for them
        raise InputError(
            f"X has {found} features, but {type(estimator).__name__} is expecting {wanted} features as input; pass the "
            "columns that it was fitted on."
        )


def require_structure(X: Any, name: str = "X") -> bool:
    """
    Raise one sentence where a sparse matrix names rows or columns that it does not have.

    X: of any format; scipy follows CSR and CSC without a look, and checks others as they are made.
    name: how the user calls it.
    Returns: whether it is CSR with columns that rise inside rows, each once.
    """
    if X.format not in ("csr", "csc") or X.ndim != 2:
        return False
    is_csr = X.format == "csr"
    (n, d), (line, cross) = (X.shape, ("row", "column")) if is_csr else (X.shape[::-1], ("column", "row"))
    kind, at = BAD_POINTERS, 0
    are_vectors = all(part.ndim == 1 for part in (X.data, X.indices, X.indptr))
    if are_vectors and len(X.data) == len(X.indices) and len(X.indptr) == n + 1 and _are_signed(X.indices, X.indptr):
        kind, at = csr_structure(X.indptr, X.indices, d)
    if kind in (BAD_POINTERS, BAD_COLUMN):
        fault = "does not end among its entries" if kind == BAD_POINTERS else f"names a {cross} that is none of its {d}"
        raise InputError(f"{name} is a damaged {X.format.upper()} matrix: {line} {at} {fault}; build it anew.")
    return is_csr and kind == ASCENDING


def _are_signed(*arrays: NDArray[Any]) -> bool:
    return all(array.dtype.kind == "i" and array.dtype.isnative for array in arrays)


def require_whole(*arrays: Any) -> None:
    """
    Raise one sentence where an array is mapped from a file that was cut since: to read it would end the process.

    arrays: arrays or sparse matrices; anything else is passed over.
    """
    for array in arrays:
        is_compressed = sparse.issparse(array) and array.format in ("csr", "csc")
        for part in (array.data, array.indices, array.indptr) if is_compressed else (array,):
            while part is not None and not isinstance(part, mmap):
                part = getattr(part, "base", None)
            if part is not None and (size := _file_size(part)) < len(part):
                raise InputError(
                    f"a file that rows are read from was cut from {len(part)} to {size} bytes since it was opened; "
                    "write it again and open it anew."
                )


def _file_size(part: mmap) -> int:
    try:
        return part.size()
    except (OSError, ValueError):  # memory of no file
        return len(part)


def require_finite(X: Any) -> None:
    """Raise one sentence that names the first NaN or infinity of X."""
    # a CSR matrix may have room behind its last entry
    values = X.data[: X.indptr[-1]] if sparse.issparse(X) else X
    if all_finite(values):
        return
    row, column, value = _first_bad(X)
    kind = "NaN" if np.isnan(value) else "infinity"
    raise InputError(
        f"X contains {kind} at row {row}, column {column}; pass finite numbers (fill or drop missing values first)."
    )


def _first_bad(X: Any) -> tuple[int, int, float]:
    """Row, column and value of the first NaN or infinity; read as it stands, since a sum of some NaN warns."""
    if not sparse.issparse(X):
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        column = int(np.flatnonzero(~np.isfinite(X[row]))[0])
        return row, column, float(X[row, column])
    at = int(np.flatnonzero(~np.isfinite(X.data))[0])
    return int(np.searchsorted(X.indptr, at, side="right") - 1), int(X.indices[at]), float(X.data[at])


def _one_sentence(X: Any, error: Exception) -> str:
    try:
        shape = np.shape(X)
    except ValueError:
        return "X has rows of different lengths; pass a table of shape (n_rows, n_features)."
    if hasattr(X, "collect"):
        return f"X is a {type(X).__name__}, a plan that holds no rows yet; pass X.collect()."
    if len(shape) != 2:
        # the last words are those that scikit-learn's contract asks for
        return f"X has shape {shape}; pass a table of shape (n_rows, n_features). Reshape your data."
    if 0 in shape:
        return f"X is empty: {error}"
    return f"X cannot be read as a table of numbers ({reason(error)}); convert or drop what is not a number."
