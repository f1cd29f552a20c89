"""Rows: check X and convert it to a float array, a CSR matrix or an array of objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank._lazy import is_sparse
from corank.core.rows.structure import ASCENDING, BAD_COLUMN, BAD_POINTERS, all_finite, csr_structure
from corank.data.durable.files import require_unchanged
from corank.errors import InputError, InputTypeError, reason, warn

_TYPES = [np.float64, np.float32]
_DTYPES = {np.dtype(np.float64), np.dtype(np.float32)}


class NamedRows:
    """
    Base class of objects that hold rows and the names of their columns; estimators take one in place of X.

    X: the rows.
    names: one per column, or None.
    """

    X: Any
    names: Sequence[str] | None


@dataclass(frozen=True, eq=False)
class CheckedRows(NamedRows):
    """Rows whose columns were checked, for an estimator inside another one."""

    X: Any
    names: Sequence[str] | None


def with_names(rows: Any, names: Sequence[str] | None) -> Any:
    """Return rows with the names of their columns, or the rows themselves without names."""
    return rows if names is None else CheckedRows(rows, tuple(names))


def as_rows(X: Any, *, missing: bool = False) -> Any:
    """Check rows and return them as a C-ordered float32/float64 array or a CSR matrix in canonical format."""
    X = X.X if isinstance(X, NamedRows) else X
    require_unchanged(X)
    _require_different_names(X)
    if (values := _frame_values(X)) is not None:
        X = values
    ascends = is_sparse(X) and require_structure(X)
    is_ready = ascends or (type(X) is np.ndarray and X.ndim == 2 and X.flags.c_contiguous)
    # check_array would take ten times as long as a small prediction
    if is_ready and X.dtype in _TYPES and 0 not in X.shape:
        require_finite(X, missing=missing)
        return X
    from sklearn.utils import check_array  # takes seconds to import

    try:
        rows = check_array(
            X, accept_sparse="csr", dtype=_TYPES, order="C",
            ensure_all_finite=False, ensure_2d=True, input_name="X",
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(_explain(X, error)) from error
    if is_sparse(rows) and not (ascends if getattr(X, "format", "") == "csr" else rows.has_canonical_format):
        # duplicate entries would give wrong norms
        rows = rows.copy()
        rows.has_canonical_format = rows.has_sorted_indices = False  # do not trust flags set by the caller
        rows.sum_duplicates()
    require_finite(rows, missing=missing)
    return rows


def _require_different_names(X: Any) -> None:
    """Raise `InputError` if two columns of a pandas frame have the same name."""
    if type(X).__name__ != "DataFrame" or X.columns is None or getattr(X.columns, "is_unique", True):
        return
    name = X.columns[X.columns.duplicated()][0]
    n = sum(other == name for other in X.columns)
    raise InputError(f"X has {n} columns named {str(name)!r}; rename them, or leave some out.")


def _frame_values(X: Any) -> NDArray[Any] | None:
    """
    Return a frame whose columns are all float32 or float64 as an array in C order, or None for other frames.

    `check_array` would need a millisecond for the same array. Sparse and nullable columns of pandas have other types.
    """
    library = type(X).__module__.partition(".")[0]
    if type(X).__name__ != "DataFrame" or library not in ("pandas", "polars"):
        return None
    if library == "pandas" and not set(X.dtypes) <= _DTYPES:
        return None
    values = X.to_numpy()
    return np.ascontiguousarray(values) if values.dtype in _DTYPES else None


MAX_CATEGORIES = 256
"""Largest number of categories of a column, each of which becomes a column of 0 and 1."""


def encode_categories(X: Any) -> Any:
    """
    Return the rows of a pandas frame with its columns of categories as columns of 0 and 1, as `pandas.get_dummies`.

    The new columns are last and have names such as ``color=red``, by which `encode_like` encodes rows for a prediction.
    """
    if not _is_pandas(X):
        return X
    _require_different_names(X)
    chosen = {name: X[name].cat.categories.tolist() for name, kind in X.dtypes.items() if str(kind) == "category"}
    if not chosen:
        return X
    categories = {name: category_names(name, values, list(X.columns)) for name, values in chosen.items()}
    warn_of_categories(categories)
    return _encoded(X, categories)


def encode_like(X: Any, known: Iterable[Any] | None) -> Any:
    """
    Return the rows of a pandas frame with the columns of categories of ``fit`` as columns of 0 and 1.

    A column was one of categories if the columns of ``fit`` (`known`) have names such as ``color=red`` instead of its
    name. Its type does not matter; missing values and categories that were not in ``fit`` are 0 in all columns.
    """
    if known is None or not _is_pandas(X):
        return X
    categories = known_categories(X.columns.tolist(), list(known))
    return _encoded(X, categories) if categories else X


def category_names(name: Any, values: Sequence[Any], columns: Sequence[Any]) -> list[str]:
    """Return the names of the columns of 0 and 1 of a column of categories; raise `InputError` if they are unclear."""
    names = [f"{name}={_category_text(value)}" for value in values]
    if not 0 < len(names) <= MAX_CATEGORIES:
        raise InputError(
            f"column {name!r} has {len(names)} categories, but between 1 and {MAX_CATEGORIES} are allowed; group rare "
            "ones, replace them by numbers, or drop the column."
        )
    alike = [other for other in columns if str(other).startswith(f"{name}=")]
    if alike or len(set(names)) < len(names):
        reasons = f"there is a column {alike[0]!r}" if alike else "two of its categories look the same"
        raise InputError(
            f"the categories of column {name!r} cannot be named {names[0]!r}, ..., as {reasons}; rename it."
        )
    return names


def known_categories(columns: Sequence[Any], known: Sequence[Any]) -> dict[Any, list[str]]:
    """Return the columns that were columns of categories in ``fit``, with the names of their columns of 0 and 1."""
    rest = set(known).difference(columns)
    unknown = set(columns).difference(known) if rest else ()
    result = {name: [item for item in known if item in rest and item.startswith(f"{name}=")] for name in unknown}
    order = {item: i for i, item in enumerate(known)}
    return dict(sorted(((k, v) for k, v in result.items() if v), key=lambda pair: order[pair[1][0]]))


def category_columns(name: Any, values: Sequence[Any], names: Sequence[str]) -> NDArray[np.float64]:
    """Return columns of 0 and 1, one per category; None and other values are 0 in all of them."""
    places = {item: j for j, item in enumerate(names)}
    try:
        known = {value: places.get(f"{name}={_category_text(value)}", -1) for value in set(values)} | {None: -1}
    except TypeError as error:
        raise InputTypeError(f"column {name!r} holds lists or other containers; pass one category per row.") from error
    codes = np.array([known[value] for value in values])
    return np.asarray(codes[:, None] == np.arange(len(names)), dtype=np.float64)


def warn_of_categories(categories: Mapping[Any, Sequence[str]]) -> None:
    """Say what was made of columns of categories."""
    made = [f"{name!r} became {len(items)} ({items[0]!r}, ...)" for name, items in categories.items()]
    more = f" and {len(made) - 5} more" if len(made) > 5 else ""
    warn(
        f"columns of categories became columns of 0 and 1: {', '.join(made[:5])}{more}; missing and new categories are "
        "0 in all of them."
    )


def _category_text(value: Any) -> str:
    """Return a category as text; 2.0 is the category 2, as missing values turn integers into floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_pandas(X: Any) -> bool:
    return type(X).__name__ == "DataFrame" and type(X).__module__.partition(".")[0] == "pandas"


def _encoded(X: Any, categories: Mapping[Any, Sequence[str]]) -> CheckedRows:
    _require_different_names(X)
    numbers = [name for name in X.columns if name not in categories]
    parts = [as_rows(X[numbers], missing=True)] if numbers else []
    for name, items in categories.items():
        pairs = zip(X[name].tolist(), X[name].isna().tolist(), strict=True)
        parts.append(category_columns(name, [None if is_missing else value for value, is_missing in pairs], items))
    dense = [part.toarray() if is_sparse(part) else part for part in parts]
    return CheckedRows(np.hstack(dense), [*numbers, *(item for items in categories.values() for item in items)])


def is_table(X: Any) -> bool:
    """
    Return whether X is a sparse matrix, a data frame, or a two-dimensional array or nested list of numbers.

    Otherwise X is treated as a sequence of objects.
    """
    if is_sparse(X) or hasattr(X, "columns") or isinstance(X, NamedRows):
        return True
    try:
        values = np.asarray(X)
    except ValueError:
        return False
    return values.ndim == 2 and values.dtype.kind in "biuf"


def as_objects(X: Any) -> NDArray[np.object_]:
    """Return a sequence of objects as an array with one object per row."""
    if not isinstance(X, Iterable):
        raise InputError(f"X is of type {type(X).__name__}; pass a sequence with one object per row.")
    items = list(X)
    rows = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        rows[i] = item
    return rows


def columns_of(X: Any, rows: Any) -> Any:
    """Return the object from which scikit-learn reads the column names: the frame itself, otherwise `rows`."""
    return X if hasattr(X, "columns") else rows


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of X, with the type of X."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "__array__") or is_sparse(X):
        return X[rows]
    return [X[row] for row in rows.tolist()]


def require_columns(estimator: Any, X: Any, rows: Any) -> None:
    """Raise `InputError` if the number of columns differs from that in ``fit``; frames are checked by their names."""
    wanted, result = estimator.n_features_in_, rows.shape[1]
    if result != wanted and not hasattr(X, "columns"):
        # scikit-learn's estimator checks require the first words
        raise InputError(
            f"X has {result} features, but {type(estimator).__name__} is expecting {wanted} features as input; pass "
            "the columns that were used in fit."
        )


def require_structure(X: Any, name: str = "X") -> bool:
    """Raise `InputError` if a CSR or CSC matrix has invalid pointers or indices, which scipy does not check."""
    if X.format not in ("csr", "csc") or X.ndim != 2:
        return False
    is_csr = X.format == "csr"
    (n, d), (line, cross) = (X.shape, ("row", "column")) if is_csr else (X.shape[::-1], ("column", "row"))
    kind, i = BAD_POINTERS, 0
    are_vectors = all(part.ndim == 1 for part in (X.data, X.indices, X.indptr))
    if are_vectors and len(X.data) == len(X.indices) and len(X.indptr) == n + 1 and _are_signed(X.indices, X.indptr):
        kind, i = csr_structure(X.indptr, X.indices, d)
    if kind in (BAD_POINTERS, BAD_COLUMN):
        fault = "has an invalid pointer" if kind == BAD_POINTERS else f"has a {cross} index outside 0 to {d - 1}"
        raise InputError(f"{name} is an invalid {X.format.upper()} matrix: {line} {i} {fault}; rebuild the matrix.")
    return is_csr and kind == ASCENDING


def _are_signed(*arrays: NDArray[Any]) -> bool:
    return all(array.dtype.kind == "i" and array.dtype.isnative for array in arrays)


def require_finite(X: Any, *, missing: bool = False) -> None:
    """Raise `InputError` with the position of the first NaN or infinity of X."""
    values = _stored(X)
    if all_finite(values) or (missing and not np.isinf(values).any()):
        return
    bad = np.isinf if missing else _is_not_finite
    if is_sparse(X):
        i = int(np.flatnonzero(bad(values))[0])
        row, column, value = int(np.searchsorted(X.indptr, i, side="right") - 1), int(X.indices[i]), values[i]
    else:
        row = int(np.flatnonzero(bad(X).any(axis=1))[0])
        column = int(np.flatnonzero(bad(X[row]))[0])
        value = X[row, column]
    kind = "NaN" if np.isnan(value) else "infinity"
    raise InputError(
        f"X contains {kind} at row {row}, column {column}; pass finite numbers (fill or drop missing values first)."
    )


def has_missing(X: Any) -> bool:
    """Return whether checked rows contain NaN."""
    return X.ndim == 2 and not all_finite(_stored(X))


def count_missing(X: Any) -> int:
    """Return the number of NaN in checked rows."""
    return int(np.isnan(_stored(X)).sum())


def _stored(X: Any) -> Any:
    # the arrays of a CSR matrix may be longer than its last pointer
    return X.data[: X.indptr[-1]] if is_sparse(X) else X


def _is_not_finite(values: Any) -> Any:
    return ~np.isfinite(values)


def _explain(X: Any, error: Exception) -> str:
    try:
        shape = np.shape(X)
    except ValueError:
        return "X has rows of different lengths; pass a table of shape (n_rows, n_features)."
    if hasattr(X, "collect"):
        return f"X is a {type(X).__name__}, which has not been evaluated; pass X.collect()."
    if len(shape) != 2:
        # scikit-learn's estimator checks require the last words
        return f"X has shape {shape}; pass a table of shape (n_rows, n_features). Reshape your data."
    if 0 in shape:
        return f"X is empty: {error}"
    result = f"X cannot be read as a table of numbers ({reason(error)})"
    if _is_pandas(X):
        texts = X.select_dtypes(exclude="number")
        names = [name for name in texts if any(isinstance(value, str) for value in texts[name])]
        if names:
            return (
                f"{result}; encode columns by pandas.get_dummies(X) or, for a ranker, by "
                f"X.astype({dict.fromkeys(names[:5], 'category')}), or drop them."
            )
    return f"{result}; convert or drop values that are not numbers."
