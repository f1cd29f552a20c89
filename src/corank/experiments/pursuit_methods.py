"""
The methods that are compared on many users at once: each scores the test items for a whole grid of parameters.

A method takes the Gram matrix of the catalogue and the users, and gives scores of all test items, one column for each
point of its grid, and the share of its training items that each model of each user rests on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from corank.core.threads import cut, n_threads, spread
from corank.core.trials import errors_many, score_columns, svm_many
from corank.experiments.pursuit_users import Users
from corank.pursuit import fit_many, fit_many_views

Floats = NDArray[np.float64]

N_TERMS = 60
PENALTIES = tuple(4.0**power for power in range(2, -13, -1))
SVM_PENALTIES = tuple(4.0**power for power in range(0, -10, -1))
COUPLINGS = (0.001, 0.01, 0.1, 1.0)
CRRP_MIX = 0.5

# users of similar numbers of items whose systems are solved together
_CHUNK = 25
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
        Takes the Gram matrix and the users, returns scores (n_test, C) and shares (B, C).
    by_squares : bool
        Whether parameters are chosen by the squared error rather than the disagreement error.
    sees_unscored : bool
        Whether it learns from items whose rating is hidden, too.
    """

    name: str
    grid: tuple[str, ...]
    run: Callable[[Floats, Users], tuple[Floats, Floats]]
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


def pursuit(mix: float) -> Callable[[Floats, Users], tuple[Floats, Floats]]:
    """
    Return a pursuit as a method; its grid is the number of terms.

    Parameters
    ----------
    mix : float
        Share of regression.

    Returns
    -------
    callable
        See `Method.run`.
    """

    def run(K: Floats, users: Users) -> tuple[Floats, Floats]:
        models = fit_many(K, users.train, users.y, users.train_user, kernel="precomputed", n_basis=N_TERMS, mix=mix)
        scores = models.predict_path(users.test, users.test_user)[:, 1:]
        return scores, _distinct(models.chosen) / np.diff(users.train_starts)[:, None]

    return run


def co_pursuit(couplings: tuple[float, ...]) -> Callable[[Floats, Users], tuple[Floats, Floats]]:
    """
    Return the semi-supervised pursuit as a method; its grid is couplings times numbers of terms.

    Parameters
    ----------
    couplings : tuple of float
        Weights of the agreement; with 0 the views share the residue and nothing else.

    Returns
    -------
    callable
        See `Method.run`.
    """

    def run(K: Floats, users: Users) -> tuple[Floats, Floats]:
        scores, shares = [], []
        for coupling in couplings:
            models = fit_many_views(
                K, users.train, users.y, users.train_user, users.side, coupling=coupling, kernel="precomputed",
                n_basis=N_TERMS,
            )  # fmt: skip
            scores.append(models.predict_path(users.test, users.test_user)[:, 1:])
            flat = models.chosen.reshape(len(users), -1)
            shares.append(_distinct(flat)[:, 1::2] / np.diff(users.train_starts)[:, None])
        return np.hstack(scores), np.hstack(shares)

    return run


def svm(K: Floats, users: Users) -> tuple[Floats, Floats]:
    """
    Run RankSVM with the squared hinge; its grid is the penalty.

    Parameters
    ----------
    K : array of shape (N, N)
        Gram matrix.
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
        lambda first, last: svm_many(K, rows, starts, users.y, alphas, coefs, partners, first, last),
        cut(users.train_starts, 4 * n_threads()),
    )
    shares = np.add.reduceat((partners > 0).astype(np.float64), users.train_starts[:-1]) / _sizes(users)
    return _scores(K, users, coefs), shares


def ridge(centred: bool, basis: float = 1.0) -> Callable[[Floats, Users], tuple[Floats, Floats]]:
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

    def run(K: Floats, users: Users) -> tuple[Floats, Floats]:
        coefs = np.zeros((len(users.train), len(PENALTIES)))
        by_size = np.argsort(np.diff(users.train_starts), kind="stable")
        ends = [*range(0, len(users), _CHUNK), len(users)]

        def work(first: int, last: int) -> None:
            _solve_chunk(K, users, by_size[first:last], centred, basis, coefs)

        spread(work, list(pairwise(ends)))
        shares = np.full((len(users), len(PENALTIES)), 1.0)
        if basis < 1.0:
            shares = np.repeat(np.ceil(basis * _sizes(users)) / _sizes(users), len(PENALTIES), axis=1)
        return _scores(K, users, coefs), shares

    return run


METHODS = {
    method.name: method
    for method in (
        Method("RLS", tuple(f"alpha={x:g}" for x in PENALTIES), ridge(centred=False), by_squares=True),
        Method("Matching pursuit", tuple(f"{p} terms" for p in range(1, N_TERMS + 1)), pursuit(1.0), by_squares=True),
        Method("RankSVM", tuple(f"alpha={x:g}" for x in SVM_PENALTIES), svm),
        Method("RankRLS", tuple(f"alpha={x:g}" for x in PENALTIES), ridge(centred=True)),
        Method("Sparse RankRLS", tuple(f"alpha={x:g}" for x in PENALTIES), ridge(centred=True, basis=0.5)),
        Method("Ranking pursuit", tuple(f"{p} terms" for p in range(1, N_TERMS + 1)), pursuit(0.0)),
        Method("CRRP", tuple(f"{p} terms" for p in range(1, N_TERMS + 1)), pursuit(CRRP_MIX)),
        Method(
            "Two views, not coupled",
            tuple(f"{p} terms" for p in range(1, N_TERMS + 1)),
            co_pursuit((0.0,)),
            sees_unscored=True,
        ),
        Method(
            "SS ranking pursuit",
            tuple(f"coupling={nu:g}, {p} terms" for nu in COUPLINGS for p in range(1, N_TERMS + 1)),
            co_pursuit(COUPLINGS),
            sees_unscored=True,
        ),
    )
}
"""Every method by name."""


def _solve_chunk(K: Floats, users: Users, chunk: NDArray[np.int64], centred: bool, basis: float, coefs: Floats) -> None:
    """
    Solve users of about one size at once: their systems are padded with rows of zeros, which change nothing.

    With C centring (or the identity) and all items in the basis, a = C(CKC + alpha I)⁻¹Cs; with a part of them,
    K̂ = RRᵀ and Φ = K̄R⁻ᵀ, a = R⁻ᵀ(ΦᵀCΦ + alpha I)⁻¹ΦᵀCs. One small solve for each penalty: an eigendecomposition would
    serve all, but threaded linear algebra makes it many times slower for systems this small.
    """
    sizes = np.diff(users.train_starts)[chunk]
    n = sizes.max()
    inside = np.arange(n) < sizes[:, None]
    at = np.where(inside, users.train_starts[chunk][:, None] + np.arange(n), 0)
    items = users.train[at]
    s = np.where(inside, users.y[at], 0.0)[:, :, None]
    mask = inside.astype(np.float64)
    C = np.eye(n) * mask[:, :, None]
    if centred:
        C = C - mask[:, :, None] * mask[:, None, :] / sizes[:, None, None]
    G = K[items[:, :, None], items[:, None, :]] * mask[:, :, None] * mask[:, None, :]
    back = C
    if basis < 1.0:
        m = int(np.ceil(basis * n))
        held = (np.arange(m) < np.ceil(basis * sizes)[:, None]).astype(np.float64)
        gram = G[:, :m, :m] * held[:, :, None] * held[:, None, :] + np.eye(m) * (1.0 - held + _JITTER)[:, :, None]
        root = np.linalg.inv(np.linalg.cholesky(gram)) * held[:, None, :]
        features = C @ G[:, :, :m] @ np.swapaxes(root, 1, 2)
        left, right = np.swapaxes(features, 1, 2) @ features, np.swapaxes(features, 1, 2) @ s
        back = np.zeros((len(chunk), n, m))
        back[:, :m] = np.swapaxes(root, 1, 2)
    else:
        left, right = C @ G @ C, C @ s
    for c, alpha in enumerate(PENALTIES):
        found = back @ np.linalg.solve(left + alpha * np.eye(left.shape[1]), right)
        coefs[at[inside], c] = found[inside][:, 0]


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
