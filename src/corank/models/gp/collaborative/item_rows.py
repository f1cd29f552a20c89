"""Features of items: checks, the order of the items, scaling and similarities."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.kernels import as_kernel
from corank.base.kernels.grams import is_precomputed
from corank.core.rows.scaled import ScaledRows
from corank.data.column_scales import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows
from corank.errors import InputError
from corank.models.ratings.ratings import id_codes, positions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def item_rows(item_features: Any) -> Any:
    """Check features like rows of X; messages name `item_features`."""
    try:
        return as_rows(item_features)
    except InputError as error:
        raise type(error)(re.sub(r"\bX\b", "item_features", str(error))) from error


def with_levels(K: Floats, gram: Floats, start: str) -> Floats:
    """Kernel with a mean diagonal of 1; half of it is the variance of a user's level if `start` is "levels"."""
    normalised = np.asarray(K / np.diagonal(gram).mean())
    return 0.5 * (normalised + 1.0) if start == "levels" else normalised


def match_items(X: Any, items: Any, n: int) -> tuple[Integers, Integers]:
    """Match n rows of features with items."""
    if sparse.issparse(X):
        if items is not None:
            raise InputError("items was given with a matrix of ratings, whose columns are the items; leave it out.")
        if n != X.shape[1]:
            raise InputError(f"item_features has {n} rows for {X.shape[1]} columns of X; pass one row for each item.")
        return np.arange(n), np.arange(n)
    if items is None:
        raise InputError("item_features was given without items; pass the item id of each row.")
    ids, codes = id_codes(items)
    if len(codes) != n or len(ids) != n:
        raise InputError(f"items holds {len(ids)} distinct ids for {n} rows of item_features; pass one id per row.")
    rated, _ = id_codes(X.X if isinstance(X, RankingData) else X)
    places = positions(ids, rated)
    if (places < 0).any():
        raise InputError(
            f"item {rated[places < 0].tolist()[0]!r} of X has no row in item_features; pass one for each item."
        )
    row = np.argsort(codes)
    return row[places], row[places] if isinstance(X, RankingData) else row


def with_unrated(X: Any, y: Any, qid: Any, prior: Any, rated: Integers, items: Any) -> tuple[Any, Any, Any, Any]:
    """Append a row without a rating (NaN) for each unrated item."""
    if sparse.issparse(X) or isinstance(X, RankingData) or y is None or qid is None:
        return X, y, qid, prior
    ids, codes = id_codes(items)
    unrated = np.setdiff1d(np.arange(len(codes)), rated)
    rated_ids, of_rating = id_codes(X)
    any_user = next(iter(qid), None)
    X = np.concatenate([rated_ids[of_rating], ids[codes[unrated]]])
    y = np.concatenate([np.asarray(y, dtype=np.float64), np.full(len(unrated), np.nan)])
    prior = None if prior is None else np.concatenate([np.asarray(prior, dtype=np.float64), np.zeros(len(unrated))])
    return X, y, [*qid, *[any_user] * len(unrated)], prior


def reordered(rows: Any, order: Integers, kernel: Any) -> Any:
    """Features in another order; for a precomputed kernel, rows and columns."""
    if not is_precomputed(kernel):
        return rows[order]
    if rows.shape[0] != rows.shape[1]:
        raise InputError(f"item_features has shape {rows.shape}; a precomputed kernel needs a square matrix.")
    return rows[np.ix_(order, order)]


def scaled(rows: Any, kernel: Any) -> Any:
    """Features divided by their standard deviation, if the kernel scales columns."""
    if not as_kernel(kernel).scales_columns:
        return rows
    n = rows.shape[0]
    return ScaledRows(rows, column_factors(RankingData.of_checked(rows, np.zeros(n), Queries.of(None, n))))
