"""
The compared methods; each scores the test items of many users for a grid of parameters.

A method takes the Gram matrices of the catalogue and the users. It returns scores of all test items, one column per
point of its grid, and the share of the training items that each model uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.threads import cut, n_threads, parallel_map
from corank.models.ratings import Collaborative, ItemMean
from corank.parameters import QueryWeight
from experiments.ranking_pursuit.grams import Grams
from experiments.ranking_pursuit.many import fit_many
from experiments.ranking_pursuit.many_rankings import errors_many, score_alike, svm_path
from experiments.ranking_pursuit.many_views import fit_many_views
from experiments.ranking_pursuit.ridge import ridge, sparse_ridge
from experiments.ranking_pursuit.users import Users, UsersRepeat

Floats = NDArray[np.float64]
Scoring = Callable[[Grams, Users], tuple[Floats, Floats]]
Solve = Callable[[Floats, Floats], tuple[Floats, Floats]]

N_TERMS = 60
PENALTIES = tuple(4.0**power for power in range(2, -13, -1))
SVM_PENALTIES = tuple(4.0**power for power in range(0, -10, -1))
COUPLINGS = (0.01, 0.1, 1.0, 10.0, 100.0)
CRRP_MIX = 0.5
_USERS_AT_ONCE = 100


@dataclass(frozen=True)
class Method:
    """
    A method and its grid.

    name: as in the paper's tables.
    grid: description of each column of the scores.
    scores: takes the Gram matrices and the users, returns scores (n_test, C) and shares (B, C).
    by_squares: whether parameters are chosen by the squared error rather than the disagreement error.
    sees_unscored: whether it also uses items with hidden ratings.
    """

    name: str
    grid: tuple[str, ...]
    scores: Scoring
    by_squares: bool = False
    sees_unscored: bool = False


def errors_of(scores: Floats, users: Users) -> tuple[Floats, Floats]:
    """
    Compute errors per user.

    scores (n_test, C): scores of all test items.
    Returns: errors of each user.
    """
    disagreement, squares = np.empty((2, len(users), scores.shape[1]))
    starts = users.test_starts.view(np.uint64)
    parallel_map(
        lambda first, last: errors_many(scores, users.y_test, starts, disagreement, squares, first, last),
        cut(users.test_starts, 4 * n_threads()),
    )
    return disagreement, squares


def pursuit(mix: float, query_weight: QueryWeight = "pairs", fit_intercept: bool = False) -> Scoring:
    """
    Return a pursuit as a method; its grid is the number of terms.

    mix: share of regression.
    query_weight {"pairs", "rows"}: whether pairs outweigh rows, as in the paper, or both have equal weight.
    fit_intercept: whether to subtract the mean of a user's ratings first; the paper does not.
    Returns: see `Method.scores`.
    """

    def scoring(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        models = fit_many(
            grams.whole, users.train, users.y, users.train_user, kernel="precomputed", n_basis=N_TERMS, mix=mix,
            query_weight=query_weight, fit_intercept=fit_intercept,
        )  # fmt: skip
        scores = models.predict_path(users.test, users.test_user)[:, 1:]
        return scores, _distinct(models.chosen) / _sizes(users)

    return scoring


def co_pursuit(couplings: tuple[float, ...], *, by_users: bool = False) -> Scoring:
    """
    Return a pursuit in two views as a method; its grid is couplings times numbers of terms.

    couplings: weights of the agreement.
    by_users: whether the features of each view are half of the reference users, its dictionary has all items, and
        whole views must agree; otherwise each has half of the items in its dictionary, and steps must agree, as in the
        paper.
    Returns: see `Method.scores`.
    """

    def scoring(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        scores, shares = [], []
        for coupling in couplings:
            models = fit_many_views(
                grams.halves if by_users else grams.whole, users.train, users.y, users.train_user,
                None if by_users else users.side, coupling=coupling, kernel="precomputed", n_basis=N_TERMS,
                residual="separate" if by_users else "shared",
            )  # fmt: skip
            scores.append(models.predict_path(users.test, users.test_user)[:, 1:])
            flat = models.chosen.reshape(len(users), -1)
            shares.append(_distinct(flat)[:, 1::2] / _sizes(users))
        return np.hstack(scores), np.hstack(shares)

    return scoring


def one_by_one(solve: Solve) -> Scoring:
    """
    Return a method that learns from each user's Gram matrix, for many penalties at once.

    solve: takes the Gram matrix and the ratings of a user's training items; returns coefficients of the first items (r,
        C), and the share of the items that each model uses (C,).
    Returns: see `Method.scores`.
    """

    def scoring(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        K = grams.whole

        def score(b: int) -> tuple[Floats, Floats]:
            own = slice(users.train_starts[b], users.train_starts[b + 1])
            train, test = users.train[own], users.test[users.test_starts[b] : users.test_starts[b + 1]]
            coefs, share = solve(K[np.ix_(train, train)], users.y[own])
            return score_alike(K[np.ix_(test, train[: len(coefs)])], np.ascontiguousarray(coefs)), share

        runs = cut(users.train_starts, 4 * n_threads())
        parts = parallel_map(lambda first, last: [score(b) for b in range(first, last)], runs)
        results = [item for part in parts for item in part]
        return np.vstack([rows for rows, _ in results]), np.vstack([share for _, share in results])

    return scoring


def shared(model_of: Callable[[UsersRepeat], ItemMean | Collaborative]) -> Scoring:
    """
    Return a model of the other users' ratings as a method; its grid has one point, because it chooses its parameters.

    model_of: takes a repeat and returns the model.
    Returns: see `Method.scores`.
    """

    def scoring(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        model = model_of(grams.drawn)
        return scores_by(model, users)[:, None], np.full((len(users), 1), float(isinstance(model, Collaborative)))

    return scoring


def scores_by(model: ItemMean | Collaborative, users: Users) -> Floats:
    """
    Score the test items of new users from their training ratings.

    users: all of whose training ratings are known.
    Returns: one score for each test item.
    """
    known = sparse.csr_array((users.y, users.train, users.train_starts), shape=(len(users), len(model.items_)))
    scores = np.empty(len(users.test))
    for first in range(0, len(users), _USERS_AT_ONCE):
        block = model.predict_users(known[first : first + _USERS_AT_ONCE])
        own = slice(users.test_starts[first], users.test_starts[min(first + _USERS_AT_ONCE, len(users))])
        scores[own] = block[users.test_user[own] - first, users.test[own]]
    return scores


def _rls(K: Floats, y: Floats, *, centred: bool) -> tuple[Floats, Floats]:
    return ridge(K, y, PENALTIES, centred=centred), np.ones(len(PENALTIES))


def _sparse_rank_rls(K: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The first half of the items is the basis: they were shuffled."""
    r = (len(y) + 1) // 2
    return sparse_ridge(K[:, :r], y, PENALTIES), np.full(len(PENALTIES), r / len(y))


def _rank_svm(K: Floats, y: Floats) -> tuple[Floats, Floats]:
    coefs, partners = np.empty((2, len(y), len(SVM_PENALTIES)))
    svm_path(K, y, np.array(SVM_PENALTIES), coefs, partners)
    return coefs, (partners > 0).mean(axis=0)


_TERMS = tuple(f"{p} terms" for p in range(1, N_TERMS + 1))
_ALPHAS = tuple(f"alpha={x:g}" for x in PENALTIES)
_COUPLED = tuple(f"coupling={nu:g}, {terms}" for nu in COUPLINGS for terms in _TERMS)

METHODS = {
    method.name: method
    for method in (
        Method("RLS", _ALPHAS, one_by_one(partial(_rls, centred=False)), by_squares=True),
        Method("Matching pursuit", _TERMS, pursuit(1.0), by_squares=True),
        Method("RankSVM", tuple(f"alpha={x:g}" for x in SVM_PENALTIES), one_by_one(_rank_svm)),
        Method("RankRLS", _ALPHAS, one_by_one(partial(_rls, centred=True))),
        Method("Sparse RankRLS", _ALPHAS, one_by_one(_sparse_rank_rls)),
        Method("Ranking pursuit", _TERMS, pursuit(0.0)),
        Method("CRRP", _TERMS, pursuit(CRRP_MIX)),
        Method("CRRP, rows and pairs of equal weight", _TERMS, pursuit(CRRP_MIX, "rows")),
        Method("CRRP with the mean first", _TERMS, pursuit(CRRP_MIX, fit_intercept=True)),
        Method("Two dictionaries, scored items", _TERMS, co_pursuit((0.0,))),
        Method("Two dictionaries, not coupled", _TERMS, co_pursuit((0.0,)), sees_unscored=True),
        Method("SS ranking pursuit", _COUPLED, co_pursuit(COUPLINGS), sees_unscored=True),
        Method("Two sets of users, not coupled", _TERMS, co_pursuit((0.0,), by_users=True), sees_unscored=True),
        Method("SS pursuit, two sets of users", _COUPLED, co_pursuit(COUPLINGS, by_users=True), sees_unscored=True),
        Method("Item mean", ("",), shared(lambda drawn: drawn.item_mean)),
        Method("Collaborative", ("",), shared(lambda drawn: drawn.collaborative)),
    )
}
"""Every method by name."""


def _sizes(users: Users) -> Floats:
    return np.diff(users.train_starts)[:, None].astype(np.float64)


def _distinct(chosen: NDArray[np.int64]) -> Floats:
    """Number of distinct items among the first 1, 2, ... chosen ones."""
    earlier = np.tril(np.ones((chosen.shape[1],) * 2, dtype=bool), k=-1)
    again = ((chosen[:, :, None] == chosen[:, None, :]) & earlier).any(axis=2)
    return np.cumsum(~again & (chosen >= 0), axis=1).astype(np.float64)
