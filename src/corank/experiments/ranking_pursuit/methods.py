"""
The methods that are compared on many users at once: each scores the test items for a whole grid of parameters.

A method takes the Gram matrices of the catalogue and the users, and gives scores of all test items, one column for each
point of its grid, and the share of its training items that each model of each user rests on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from corank.core.many_rankings import errors_many, score_columns, svm_many
from corank.core.threads import cut, n_threads, spread
from corank.experiments.ranking_pursuit.grams import Grams
from corank.experiments.ranking_pursuit.ridge import solve_shifted
from corank.experiments.ranking_pursuit.users import Users
from corank.pursuit import fit_many, fit_many_views

Floats = NDArray[np.float64]
Run = Callable[[Grams, Users], tuple[Floats, Floats]]

N_TERMS = 60
PENALTIES = tuple(4.0**power for power in range(2, -13, -1))
SVM_PENALTIES = tuple(4.0**power for power in range(0, -10, -1))
COUPLINGS = (0.01, 0.1, 1.0, 10.0, 100.0)
CRRP_MIX = 0.5

# added to the diagonal of a basis' Gram matrix, which is near singular for wide kernels
_JITTER = 1e-10


@dataclass(frozen=True)
class Method:
    """
    A method and its grid.

    Attributes
    ----------
    name : str
        As the paper's tables call it.
    grid : tuple of str
        What each column of the scores stands for.
    run : callable
        Takes the Gram matrices and the users, returns scores (n_test, C) and shares (B, C).
    by_squares : bool
        Whether parameters are chosen by the squared error rather than the disagreement error.
    sees_unscored : bool
        Whether it learns from items whose rating is hidden, too.
    """

    name: str
    grid: tuple[str, ...]
    run: Run
    by_squares: bool = False
    sees_unscored: bool = False


def errors_of(scores: Floats, users: Users) -> tuple[Floats, Floats]:
    """
    Judge scores user by user.

    Parameters
    ----------
    scores : array of shape (n_test, C)
        Scores of all test items.
    users : Users
        The users.

    Returns
    -------
    disagreement, squares : arrays of shape (B, C)
        Errors of each user.
    """
    disagreement, squares = np.empty((2, len(users), scores.shape[1]))
    starts = users.test_starts.view(np.uint64)
    spread(
        lambda first, last: errors_many(scores, users.y_test, starts, disagreement, squares, first, last),
        cut(users.test_starts, 4 * n_threads()),
    )
    return disagreement, squares


def pursuit(mix: float, query_weight: str = "pairs", fit_intercept: bool = False) -> Run:
    """
    Return a pursuit as a method; its grid is the number of terms.

    Parameters
    ----------
    mix : float
        Share of regression.
    query_weight : {"pairs", "rows"}
        Whether the pairs outweigh the rows, as in the paper, or both weigh alike.
    fit_intercept : bool
        Whether the mean of a user's ratings is subtracted first; the paper has no such thing.

    Returns
    -------
    callable
        See `Method.run`.
    """

    def run(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        models = fit_many(
            grams.whole, users.train, users.y, users.train_user, kernel="precomputed", n_basis=N_TERMS, mix=mix,
            query_weight=query_weight, fit_intercept=fit_intercept,
        )  # fmt: skip
        scores = models.predict_path(users.test, users.test_user)[:, 1:]
        return scores, _distinct(models.chosen) / _sizes(users)

    return run


def co_pursuit(couplings: tuple[float, ...], *, by_users: bool = False) -> Run:
    """
    Return a pursuit in two views as a method; its grid is couplings times numbers of terms.

    Parameters
    ----------
    couplings : tuple of float
        Weights of the agreement.
    by_users : bool
        Whether each view sees the ratings of half of the reference users, has all items in its dictionary, and whole
        views must agree; otherwise each has half of the items in its dictionary, and steps must agree, as in the paper.

    Returns
    -------
    callable
        See `Method.run`.
    """

    def run(grams: Grams, users: Users) -> tuple[Floats, Floats]:
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

    return run


def svm(grams: Grams, users: Users) -> tuple[Floats, Floats]:
    """
    Run RankSVM with the squared hinge; its grid is the penalty.

    Parameters
    ----------
    grams : Grams
        The catalogue.
    users : Users
        The users.

    Returns
    -------
    scores, shares : arrays
        See `Method.run`.
    """
    rows, starts = users.train.view(np.uint64), users.train_starts.view(np.uint64)
    coefs, partners = np.empty((2, len(rows), len(SVM_PENALTIES)))
    alphas = np.array(SVM_PENALTIES)
    spread(
        lambda first, last: svm_many(grams.whole, rows, starts, users.y, alphas, coefs, partners, first, last),
        cut(users.train_starts, 4 * n_threads()),
    )
    shares = np.add.reduceat((partners > 0).astype(np.float64), users.train_starts[:-1]) / _sizes(users)
    return _scores(grams.whole, users, coefs), shares


def ridge(centred: bool, basis: float = 1.0) -> Run:
    """
    Return regularised least squares as a method, on ratings or on their differences; its grid is the penalty.

    On ratings that is kernel ridge regression; on differences RankRLS, with each row of weight 1. With a basis of a
    part of the training items (the first ones: they were shuffled) it is the sparse RankRLS.

    Parameters
    ----------
    centred : bool
        Whether differences are learnt.
    basis : float
        Share of the training items in the basis.

    Returns
    -------
    callable
        See `Method.run`.
    """

    def run(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        coefs = np.zeros((len(users.train), len(PENALTIES)))
        sizes = np.ceil(basis * np.diff(users.train_starts)).astype(int)
        for b, m in enumerate(sizes):
            own = slice(users.train_starts[b], users.train_starts[b + 1])
            K = grams.whole[np.ix_(users.train[own], users.train[own])]
            found = _full(K, users.y[own], centred) if basis == 1.0 else _on_basis(K[:, :m], users.y[own], centred)
            coefs[own][: len(found)] = found
        shares = np.repeat(sizes[:, None] / _sizes(users), len(PENALTIES), axis=1)
        return _scores(grams.whole, users, coefs), shares

    return run


_TERMS = tuple(f"{p} terms" for p in range(1, N_TERMS + 1))
_ALPHAS = tuple(f"alpha={x:g}" for x in PENALTIES)
_COUPLED = tuple(f"coupling={nu:g}, {terms}" for nu in COUPLINGS for terms in _TERMS)

METHODS = {
    method.name: method
    for method in (
        Method("RLS", _ALPHAS, ridge(centred=False), by_squares=True),
        Method("Matching pursuit", _TERMS, pursuit(1.0), by_squares=True),
        Method("RankSVM", tuple(f"alpha={x:g}" for x in SVM_PENALTIES), svm),
        Method("RankRLS", _ALPHAS, ridge(centred=True)),
        Method("Sparse RankRLS", _ALPHAS, ridge(centred=True, basis=0.5)),
        Method("Ranking pursuit", _TERMS, pursuit(0.0)),
        Method("CRRP", _TERMS, pursuit(CRRP_MIX)),
        Method("CRRP, rows and pairs alike", _TERMS, pursuit(CRRP_MIX, "rows")),
        Method("CRRP with the mean first", _TERMS, pursuit(CRRP_MIX, fit_intercept=True)),
        Method("Two dictionaries, scored items", _TERMS, co_pursuit((0.0,))),
        Method("Two dictionaries, not coupled", _TERMS, co_pursuit((0.0,)), sees_unscored=True),
        Method("SS ranking pursuit", _COUPLED, co_pursuit(COUPLINGS), sees_unscored=True),
        Method("Two sets of users, not coupled", _TERMS, co_pursuit((0.0,), by_users=True), sees_unscored=True),
        Method("SS pursuit, two sets of users", _COUPLED, co_pursuit(COUPLINGS, by_users=True), sees_unscored=True),
    )
}
"""Every method by name."""


def _full(K: Floats, s: Floats, centred: bool) -> Floats:
    """a = C(CKC + alpha I)⁻¹Cs, C centring or the identity, for every penalty."""
    if not centred:
        return solve_shifted(K, s, PENALTIES)
    A = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    a = solve_shifted(A, s - s.mean(), PENALTIES)
    return np.asarray(a - a.mean(axis=0))


def _on_basis(K: Floats, s: Floats, centred: bool) -> Floats:
    """With K̂ = RRᵀ and Φ = KR⁻ᵀ, a = R⁻ᵀ(ΦᵀCΦ + alpha I)⁻¹ΦᵀCs, the basis being the first items."""
    m = K.shape[1]
    root = np.linalg.cholesky(K[:m] + _JITTER * np.eye(m))
    features = solve_triangular(root, K.T, lower=True, check_finite=False).T
    if centred:
        features = features - features.mean(axis=0)
    w = solve_shifted(features.T @ features, features.T @ s, PENALTIES)
    return np.asarray(solve_triangular(root, w, lower=True, trans="T", check_finite=False))


def _scores(K: Floats, users: Users, coefs: Floats) -> Floats:
    rows, starts = users.train.view(np.uint64), users.train_starts.view(np.uint64)
    wanted, ends = users.test.view(np.uint64), users.test_starts.view(np.uint64)
    out = np.empty((len(wanted), coefs.shape[1]))
    spread(
        lambda first, last: score_columns(K, rows, starts, coefs, wanted, ends, out, first, last),
        cut(users.test_starts, 4 * n_threads()),
    )
    return out


def _sizes(users: Users) -> Floats:
    return np.diff(users.train_starts)[:, None].astype(np.float64)


def _distinct(chosen: NDArray[np.int64]) -> Floats:
    """Number of different items among the first 1, 2, ... chosen ones."""
    earlier = np.tril(np.ones((chosen.shape[1],) * 2, dtype=bool), k=-1)
    again = ((chosen[:, :, None] == chosen[:, None, :]) & earlier).any(axis=2)
    return np.cumsum(~again & (chosen >= 0), axis=1).astype(np.float64)
