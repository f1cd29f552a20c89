"""Ratings as input, one row per rating or a sparse matrix, and the ids of users and items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.inputs import as_numbers, as_scores
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import require_structure
from corank.errors import InputError

Integers = NDArray[np.int64]
Ids = NDArray[Any]


def ratings_problem(X: Any, y: Any, qid: Any) -> tuple[RankingData, Ids]:
    """Turn ratings into a ranking problem: a query is a user, a row is the indicator vector of an item."""
    if sparse.issparse(X) and X.ndim != 2:
        raise InputError(f"X is sparse and has shape {X.shape}; pass a matrix of users × items.")
    if sparse.issparse(X) or isinstance(X, RankingData):
        if y is not None or qid is not None:
            raise InputError(f"y or qid was given with a {type(X).__name__}, which holds the ratings; leave both out.")
    elif qid is None:
        raise InputError("qid is None; pass the user of each rating.")
    prior = None
    if sparse.issparse(X):
        items = np.arange(X.shape[1])
        qid, codes, y = cells_of(X)
    else:
        if isinstance(X, RankingData):
            X.require_unchanged()
            _require_unweighted(X)
            X, y, qid, prior = X.X, X.y, X.queries.ids[X.queries.codes], X.prior
        items, codes = id_codes(X)
    scores, queries = as_scores(y, len(codes)), Queries.of(qid, len(codes))
    _require_once(queries, items, codes, ~np.isnan(scores))
    rows = sparse.csr_array(
        (np.ones(len(codes), dtype=np.float32), codes, np.arange(len(codes) + 1)), shape=(len(codes), len(items))
    )
    return RankingData.of_checked(rows, scores, queries).with_prior(prior), items


def ratings_matrix(data: RankingData) -> tuple[Any, Ids]:
    """Collect the ratings of a problem from `ratings_problem`, minus their prior."""
    _require_unweighted(data)
    assert data.targets is not None
    users, codes = sort_ids(data.queries.plain_ids("a ranker of ratings"), data.queries.codes[data.scored_rows])
    rated, rows = np.unique(codes, return_inverse=True)  # users whose ratings are all NaN are left out
    users = users[rated]
    cells = (data.targets[data.scored_rows], (rows, data.X.indices[data.scored_rows]))
    matrix = sparse.csr_array(cells, shape=(len(users), data.X.shape[1]))
    return matrix, users


def cells_of(X: Any) -> tuple[Integers, Integers, NDArray[np.float64]]:
    """Return row, column and value of each stored entry of a sparse matrix, including zeros and duplicates."""
    require_structure(X)
    cells = X.tocoo()
    return cells.row.astype(np.int64), cells.col.astype(np.int64), as_ratings(cells.data)


def as_ratings(values: Any) -> NDArray[np.float64]:
    """Check ratings: finite numbers, or NaN for no rating."""
    ratings = as_numbers(values, "ratings", "rating")
    if np.isinf(ratings).any():
        raise InputError("ratings contains infinity; pass finite ratings, or NaN for no rating.")
    return ratings


def id_codes(X: Any) -> tuple[Ids, Integers]:
    """Check item ids."""
    column = _one_column(X)
    try:
        queries = Queries.of(column, len(column))
        ids = queries.plain_ids("a ranker of ratings")
    except InputError as error:  # the message is about query ids
        raise InputError(
            str(error).replace("qid", "X").replace("a query id", "an item id").replace("query id", "item id")
        ) from error
    return sort_ids(ids, queries.codes)


def sort_ids(ids: Ids, codes: Integers) -> tuple[Ids, Integers]:
    """Sort ids, so that a model does not depend on the order of the ratings."""
    order = np.argsort(ids)
    places = np.empty(len(ids), dtype=np.int64)
    places[order] = np.arange(len(ids))
    return ids[order], places[codes]


def positions(known: Ids, ids: Ids) -> Integers:
    """Return the position of each id in `known`, which is sorted, or −1; a number never equals a string."""
    if not len(known) or isinstance(known[0], str) != (ids.dtype.kind in "OU"):
        return np.full(len(ids), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[places] == ids, places, -1).astype(np.int64)


def _require_unweighted(data: RankingData) -> None:
    if data.weights is not None:
        raise InputError("sample_weight was given, but all ratings have equal weight here; leave it out.")


def _one_column(X: Any) -> Any:
    if isinstance(X, list | tuple) and not any(isinstance(item, list | tuple) for item in X):
        return X
    try:
        values = X if sparse.issparse(X) else np.asarray(X)
    except ValueError as error:
        raise InputError("X has rows of different lengths; pass one item id per row.") from error
    if values.ndim == 2 and values.shape[1] == 1 and not sparse.issparse(values):
        return values[:, 0]
    if values.ndim != 1:
        raise InputError(
            f"X has shape {values.shape}; pass one item id per row, or the ratings as a scipy.sparse matrix of users × "
            "items."
        )
    return values


def _require_once(queries: Queries, items: Ids, codes: Integers, is_rated: NDArray[np.bool_]) -> None:
    cells = np.sort((queries.codes * len(items) + codes)[is_rated])
    twice = np.flatnonzero(np.diff(cells) == 0)
    if len(twice):
        user, item = divmod(int(cells[twice[0]]), len(items))
        raise InputError(
            f"user {queries.ids[user]} rated item {items[item]} more than once; pass one rating of each item."
        )
