"""RatingsRanker: the base class of rankers of ratings, from checking ratings to recommending items; ItemMean."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from corank.base.base import Ranker
from corank.base.held_out import HeldOut
from corank.base.solvers.conjugate import conjugate_gradients
from corank.core.threads import cut, n_threads, parallel_map
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError, warn
from corank.fitted import Predictions, Relations, Shapes, is_ascending
from corank.models.ratings.ratings import (
    Ids,
    as_ratings,
    cells_of,
    id_codes,
    positions,
    ratings_matrix,
    ratings_problem,
)
from corank.parameters import Rules, check_values, integer, number

Floats = NDArray[np.float64]

# scores computed in one part
_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class FittedRatings:
    """The fitted attributes of `Collaborative`."""

    users: Ids
    ratings: Any
    item_means: Floats
    level: float
    item_features: Floats | None = None
    alpha: float | None = None
    power: float | None = None
    alpha_from: str | None = None


class RatingsRanker(Ranker):
    """
    Base class of rankers of ratings: a query is a user, a row is an item id.

    A subclass fits the matrix of ratings in `_fit_ratings` and returns the coefficients of users in `_user_coefs`.
    """

    _shapes: ClassVar[Shapes] = {
        "items_": ("items",),
        "users_": ("users",),
        "ratings_": ("users", "items"),
        "item_means_": ("items",),
        "item_features_": ("items", "q"),
    }
    _relations: ClassVar[Relations] = {
        "items_ and users_ ascend": lambda m: _are_ids(m.items_) and _are_ids(m.users_),
        "ratings_ is a matrix of numbers": lambda m: sparse.issparse(m.ratings_) and m.ratings_.dtype == np.float64,
        "n_features_in_ is 1": lambda m: m.n_features_in_ == 1,
    }
    _predictions: ClassVar[Predictions] = {
        "predict": lambda model, X: model.predict(X, model.users_[:1].tolist() * len(X)),
        "predict_user": lambda model, X: model.predict_user(X[:1], [model.level_]),
        "predict_users": lambda model, X: model.predict_users(sparse.csr_array((1, len(model.items_)))),
    }

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}
    # X holds item ids, so laws about columns do not apply
    _reads_ids: ClassVar[bool] = True

    items_: Ids

    @abstractmethod
    def _fit_ratings(self, ratings: Any, users: Ids, rng: np.random.Generator) -> FittedRatings:
        """Learn from a CSR matrix of users × items; every user has a rating."""

    @abstractmethod
    def _user_coefs(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        """Compute the coefficients of users."""

    def predict(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """
        Score items for users, on the scale of the ratings.

        X: item ids; an unrated item is scored like an item of mean 0.
        qid: the user of each row; users without ratings in ``fit``, and all rows without qid, are scored by the items'
            means.
        """
        check_is_fitted(self)
        items = self._item_indices(X)
        queries = Queries.of(qid, len(items))
        users = self._user_indices(queries) if qid is not None else np.full(len(queries), -1)
        scores = np.empty(len(items))

        def score(first: int, last: int) -> None:
            levels, Z, W = self._user_parts(self._rows(users[first:last]))
            rows = queries.order[queries.starts[first] : queries.starts[last]]
            user, item = queries.codes[rows] - first, items[rows]
            part = levels[user] + np.where(item < 0, 0.0, self.item_means_[item])
            if W.any():
                part += np.where(item < 0, 0.0, np.einsum("ij,ij->i", Z[item], W[user]))
            scores[rows] = part

        self._in_parallel(score, queries.starts)
        return self._add_prior(scores, prior)

    def _predict_queries(self, X: Any, qid: ArrayLike | None, prior: ArrayLike | None) -> Floats:
        return self.predict(X, qid, prior=prior)

    def predict_user(self, items: ArrayLike, ratings: ArrayLike) -> Floats:
        """Score `items_` for a new user from a few ratings; items without ratings in ``fit`` are ignored."""
        return np.asarray(self._scores(self._row(items, ratings))[0])

    def predict_users(self, ratings: Any) -> Floats:
        """Score `items_` for many users, who may be new, from their ratings in that order; stored zeros are ratings."""
        return self._scores(self._checked_ratings(ratings))

    def recommend(self, user: Any, n: int = 10) -> Ids:
        """
        Return at most n items that a user of ``fit`` has not rated, best first; an unknown user gets the highest means.
        """
        check_is_fitted(self)
        return self._best(self._rows(self._user_indices(Queries.of([user], 1))), n)

    def recommend_user(self, items: ArrayLike, ratings: ArrayLike, n: int = 10) -> Ids:
        """Return at most n items that a new user has not rated, best first, from a few ratings."""
        return self._best(self._row(items, ratings), n)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedRatings:
        ratings, users = ratings_matrix(data)
        return self._fit_ratings(ratings, users, rng)

    def _problem(self, X: Any, y: Any, qid: Any, pairs: Any) -> tuple[RankingData, dict[str, Any]]:
        if pairs is not None:
            raise InputError("pairs were given, but this ranker learns from ratings; pass y, one rating per row.")
        data, items = ratings_problem(X, y, qid)
        return data, {"items_": items, "n_features_in_": 1}

    def _user_parts(self, ratings: Any) -> tuple[Floats, Floats, Floats]:
        """Levels of users, features of items, and coefficients of users."""
        levels = np.full(ratings.shape[0], self.level_)
        return levels, *self._user_coefs(ratings, levels)

    def _item_indices(self, X: Any) -> NDArray[np.int64]:
        ids, codes = id_codes(X)
        indices = positions(self.items_, ids)
        if len(indices) and indices.max() < 0:
            warn(
                f"none of the {len(ids)} items of X was rated in fit, so all get the same score; fit has ids such as "
                f"{self.items_.tolist()[0]!r}."
            )
        return indices[codes]

    def _user_indices(self, queries: Queries) -> NDArray[np.int64]:
        """Index of each user of ``fit``, −1 for others."""
        return positions(self.users_, queries.plain_ids(type(self).__name__))

    def _rows(self, users: NDArray[np.int64]) -> Any:
        """Ratings of users of ``fit``, none for −1."""
        is_known = users >= 0
        counts = np.zeros(len(users), dtype=np.int64)
        counts[is_known] = np.diff(self.ratings_.indptr)[users[is_known]]
        rows = self.ratings_[users[is_known]]
        return sparse.csr_array(
            (rows.data, rows.indices, np.append(0, np.cumsum(counts))), shape=(len(users), rows.shape[1])
        )

    def _row(self, items: ArrayLike, ratings: ArrayLike) -> Any:
        """One user's ratings of known items as a matrix of one row."""
        check_is_fitted(self)
        ids, codes = id_codes(items)
        values = as_ratings(ratings)
        if len(values) != len(codes):
            raise InputError(f"ratings has {len(values)} values for {len(codes)} items; pass one rating per item.")
        if len(ids) < len(codes):
            raise InputError("items contains an item more than once; pass one rating of each.")
        indices = positions(self.items_, ids)[codes]
        kept = (indices >= 0) & ~np.isnan(values)
        cells = (values[kept], indices[kept], [0, int(kept.sum())])
        return sparse.csr_array(cells, shape=(1, len(self.items_)))

    def _checked_ratings(self, ratings: Any) -> Any:
        """Check new ratings; CSR, without NaN."""
        check_is_fitted(self)
        if not sparse.issparse(ratings) or ratings.shape[1:] != (len(self.items_),):
            raise InputError(
                f"ratings is a {type(ratings).__name__} of shape {np.shape(ratings)}; pass a scipy.sparse matrix with "
                f"a column for each of the {len(self.items_)} items."
            )
        user, item, values = cells_of(ratings)
        kept = ~np.isnan(values)
        rows = sparse.csr_array((values[kept], (user[kept], item[kept])), shape=ratings.shape)
        if rows.nnz < kept.sum():  # duplicate entries were summed
            raise InputError("ratings contains a user's rating of an item more than once; pass one of them.")
        return rows

    def _scores(self, rows: Any) -> Floats:
        self._check_prior(None)  # a prior of all items cannot be passed
        scores = np.empty(rows.shape)

        def score(first: int, last: int) -> None:
            levels, Z, W = self._user_parts(rows[first:last] if last - first < len(scores) else rows)
            np.dot(W, Z.T, out=scores[first:last])
            scores[first:last] += self.item_means_ + levels[:, None]

        self._in_parallel(score, np.arange(len(scores) + 1) * rows.shape[1])
        return scores

    def _best(self, row: Any, n: int) -> Ids:
        check_values({"n": n}, {"n": integer(1)})
        scores = self._scores(row)[0]
        scores[row.indices] = -np.inf
        best = np.argsort(-scores, kind="stable")[: min(n, len(scores) - row.nnz)]
        return np.asarray(self.items_[best])

    def _in_parallel(self, score: Any, starts: NDArray[np.int64]) -> None:
        """Call `score` for parts of the users, of about `_AT_ONCE` scores each, in threads."""
        pieces = max(1, min(len(starts) - 1, int(starts[-1]) // _AT_ONCE))
        parallel_map(score, cut(starts, pieces), n_threads(getattr(self, "n_jobs", None) or 1))


_TOL = 1e-10


def item_means(ratings: Any, shrink: float) -> Floats:
    """
    Minimise Σ (r_ui − level_u − m_i)² + shrink Σ m_i² over the ratings, by conjugate gradients in O(ratings) per step.

    The simpler m_i = Σ_u (r_ui − r̄_u)/(n_i + shrink), with the users' means as levels, would penalise items that are
    rated together with good ones.
    """
    n_items, sizes = ratings.shape[1], np.diff(ratings.indptr)
    rated = sparse.csr_array((np.ones(ratings.nnz), ratings.indices, ratings.indptr), shape=ratings.shape)
    diagonal = np.bincount(ratings.indices, minlength=n_items) + shrink
    diagonal[diagonal == 0.0] = 1.0
    gaps = ratings.data - np.repeat(user_levels(ratings, np.zeros(n_items)), sizes)
    return conjugate_gradients(
        lambda m: diagonal * m - rated.T @ ((rated @ m) / sizes),
        np.bincount(ratings.indices, gaps, n_items).astype(np.float64),
        lambda m: m / diagonal,
        _TOL**2,
        10 * n_items,
    ).x


def user_levels(ratings: Any, m: Floats) -> Floats:
    """Mean difference between each user's ratings and the items' means."""
    n = np.diff(ratings.indptr)
    user = np.repeat(np.arange(len(n)), n)
    return np.asarray(np.bincount(user, ratings.data - m[ratings.indices], len(n)) / np.maximum(n, 1))


def residuals(ratings: Any, m: Floats) -> Any:
    """Subtract the means of items and the levels of users."""
    rest = ratings.copy()
    rest.data = ratings.data - m[ratings.indices] - np.repeat(user_levels(ratings, m), np.diff(ratings.indptr))
    return rest


class ItemMean(RatingsRanker):
    """
    Rank items by their mean ratings, in the same order for all users: a baseline for personalised rankers.

    Minimises Σ (r_ui − level_u − m_i)² + shrink Σ m_i² over all ratings. A user's own ratings change only the level of
    the scores. Takes the same input as `Collaborative`. Fitting takes some tens of steps of O(ratings).

    Parameters
    ----------
    shrink : float
        Number of neutral ratings added to each item.

    Attributes
    ----------
    items_, users_, ratings_, item_means_, level_
        As in `Collaborative`.

    Examples
    --------
    >>> items, y, user = ["tea", "milk", "tea", "ale", "milk", "ale"], [5, 3, 4, 1, 4, 2], [1, 1, 2, 2, 3, 3]
    >>> model = ItemMean().fit(items, y, qid=user)
    >>> model.rank(["ale", "tea", "milk"])
    array([3, 1, 2])
    """

    _rules: ClassVar[Rules] = {"shrink": number(0)}

    def __init__(self, shrink: float = 2.0) -> None:
        self.shrink = shrink

    def _fit_ratings(self, ratings: Any, users: Ids, rng: np.random.Generator) -> FittedRatings:
        m = item_means(ratings, self.shrink)
        return FittedRatings(users, ratings, m, float(user_levels(ratings, m).mean()))

    def _user_coefs(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        rated = np.diff(ratings.indptr) > 0
        levels[rated] = user_levels(ratings, self.item_means_)[rated]
        return np.zeros((len(self.item_means_), 0)), np.zeros((len(levels), 0))


def _are_ids(ids: NDArray[Any]) -> bool:
    return ids.dtype.kind in "biufO" and is_ascending(ids)
