"""
Collaborative: collaborative filtering by ridge regression per user, on a kernel of items learnt from all ratings.

All users share the means m of the items and one kernel of the items, K = V diag(e^power) Vᵀ: e and V are the largest
eigenvalues and eigenvectors of EᵀE, E the ratings minus the means of items and the levels of users (0 for missing
ratings). A user with ratings r of the items J minimises over b and g

    ‖r − m_J − b − g_J‖² + alpha ‖g‖²_K,    scores = m + b + K_{·J} (K_JJ + alpha I)⁻¹ (r − m_J − b).

One truncated decomposition serves all users: O(q · ratings) per Lanczos step for q directions. A user with k ratings
costs O(k² q + k³), or O(k q² + q³) for k > q; new users need no refit.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import svds

from corank.base.docs import shared_parameters
from corank.base.solvers.choice import choose as best_of
from corank.core.models.user_ridge import ridge_users
from corank.errors import InputError
from corank.models.ratings.ranker import FittedRatings, Floats, RatingsRanker, item_means, residuals, user_levels
from corank.models.ratings.ratings import Ids
from corank.parameters import Rules, integer, n_jobs, none, number, seed

ALPHAS = tuple(2.0**power for power in range(-2, 6))
POWERS = (1.0, 1.5, 2.0)
ALPHA, POWER = 2.0, 1.5
"""Defaults if there are too few users to choose on; close to the choice on MovieLens."""
BLOCK = 10
"""Each rating is predicted from the others of its block, as for a new user with few ratings."""
_MIN_USERS = 20
_MAX_HELD_OUT = 300
_BATCH = 1000
# all eigenvalues are computed if the smaller side of the matrix is at most this multiple of n_basis
_FEW = 3
# rows of a dense block
_DENSE_ROWS = 4096


@dataclass(frozen=True, eq=False)
class ItemSpectrum:
    """The largest eigenvalues and eigenvectors of EᵀE, E the residuals of the ratings, 0 for missing ratings."""

    values: Floats  # (q,): eigenvalues, descending
    directions: Floats  # (N, q): eigenvectors, one row per item
    shares: Floats  # (N,): share of each item in the ratings

    @classmethod
    def of(cls, residuals: Any, n_basis: int) -> ItemSpectrum:
        """
        Decompose the residuals, by a dense Gram matrix of the smaller side if it is small, else by Lanczos iterations.
        """
        if min(residuals.shape) <= _FEW * n_basis:
            values, directions = _by_gram(residuals)
        else:
            # a fixed start, so that the same data give the same bits
            start = np.random.default_rng(0).standard_normal(min(residuals.shape))
            _, sigmas, V = svds(residuals, n_basis, v0=start, return_singular_vectors="vh")
            values, directions = sigmas**2, V.T
        order = np.argsort(-values, kind="stable")[:n_basis]
        order = order[values[order] > 1e-12 * values.max(initial=0.0)]
        counts = np.bincount(residuals.indices, minlength=residuals.shape[1])
        return cls(values[order], np.ascontiguousarray(directions[:, order]), counts / counts.sum())

    def features(self, power: float) -> Floats:
        """
        Return features Z (N, q) of the items, with ZZᵀ = K = V diag(values^power) Vᵀ.

        K is scaled so that the mean of K_ii over ratings is 1.
        """
        if not len(self.values):
            return np.zeros((len(self.directions), 0))
        Z = self.directions * (self.values / self.values[0]) ** (power / 2.0)
        return np.asarray(Z / np.sqrt(self.shares @ np.einsum("ij,ij->i", Z, Z)))


def _by_gram(E: Any) -> tuple[Floats, Floats]:
    """All eigenvalues of EᵀE above rounding errors, and their eigenvectors."""
    tall = E if E.shape[0] >= E.shape[1] else E.T.tocsr()
    G = np.zeros((tall.shape[1], tall.shape[1]))
    for first in range(0, tall.shape[0], _DENSE_ROWS):
        block = tall[first : first + _DENSE_ROWS].toarray()
        G += block.T @ block
    values, V = np.linalg.eigh(G)
    kept = values > 1e-12 * values.max(initial=0.0)
    values, V = values[kept], V[:, kept]
    return values, (V if tall is E else np.asarray(E.T @ V) / np.sqrt(values))


def choose(
    ratings: Any, shrink: float, n_basis: int, alphas: tuple[float, ...], powers: tuple[float, ...],
    rng: np.random.Generator,
) -> tuple[float, float, str]:  # fmt: skip
    """
    Choose by the squared error on held-out users.

    A fifth of the users is held out, 300 at most; means and kernel come from the others. The ratings of a held-out user
    are split into random blocks of ten, and each rating is predicted from the others of its block.
    """
    n_users = ratings.shape[0]
    if len(alphas) == len(powers) == 1:
        return alphas[0], powers[0], "given"
    default = (alphas[0] if len(alphas) == 1 else ALPHA), (powers[0] if len(powers) == 1 else POWER), "default"
    if n_users < _MIN_USERS:
        return default
    order = rng.permutation(n_users)
    held, rest = np.split(order, [min(n_users // 5, _MAX_HELD_OUT)])
    m = item_means(ratings[np.sort(rest)], shrink)
    spectrum = ItemSpectrum.of(residuals(ratings[np.sort(rest)], m), n_basis)
    blocks = _blocks(ratings[held], m, rng)
    if not blocks or not len(spectrum.values):
        return default
    errors = np.array([_errors(spectrum.features(power), blocks, alphas) for power in powers])
    power, alpha = best_of(-errors, alphas, np.reshape(powers, (-1, 1)), size=0.0)
    return alphas[alpha], powers[power], "held-out users"


def leave_one_out(K: Floats, t: Floats, alpha: float) -> Floats:
    """
    Leave-one-out residuals of kernel ridge regression with a free level, by one inverse per problem.

    t (B, k): targets, k ≥ 2.
    """
    G = np.linalg.inv(K + alpha * np.eye(K.shape[1]))
    g = G.sum(axis=2)
    s = g.sum(axis=1, keepdims=True)
    a = np.einsum("bij,bj->bi", G, t) - g * ((g * t).sum(axis=1, keepdims=True) / s)
    return np.asarray(a / (np.diagonal(G, axis1=1, axis2=2) - g**2 / s))


def _blocks(ratings: Any, m: Floats, rng: np.random.Generator) -> list[tuple[NDArray[np.int64], Floats]]:
    """Items (B, k) and residuals (B, k) of B blocks of equal size k."""
    blocks: dict[int, list[tuple[Any, Any]]] = {}
    for start, stop in zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True):
        shuffled = rng.permutation(np.arange(start, stop))
        for first in range(0, len(shuffled) - 1, BLOCK):
            entries = shuffled[first : first + BLOCK]
            if len(entries) > 1:
                items = ratings.indices[entries]
                blocks.setdefault(len(entries), []).append((items, ratings.data[entries] - m[items]))
    return [
        (np.array([items for items, _ in part]), np.array([t for _, t in part]))
        for k in sorted(blocks)
        for part in (blocks[k][first : first + _BATCH] for first in range(0, len(blocks[k]), _BATCH))
    ]


def _errors(Z: Floats, blocks: list[tuple[NDArray[np.int64], Floats]], alphas: tuple[float, ...]) -> list[float]:
    grams = [Z[items] @ Z[items].transpose(0, 2, 1) for items, _ in blocks]
    return [
        sum(float((leave_one_out(K, t, alpha) ** 2).sum()) for K, (_, t) in zip(grams, blocks, strict=True))
        for alpha in alphas
    ]


@shared_parameters
@dataclass(eq=False, repr=False)
class Collaborative(RatingsRanker):
    """
    Rank items for each of many users from few ratings per user: collaborative filtering by ridge regression.

    ``fit(X, y, qid=user)`` takes one row for each rating: X holds item ids (numbers or strings, a vector or one
    column), y the ratings, qid the users. A user is a query, so every metric and splitter applies. ``fit(R)`` takes a
    scipy.sparse matrix of users × items instead: every stored entry is a rating, including zeros; ids are row and
    column numbers. ``predict(X, qid)`` scores items for users of ``fit``; `predict_user` scores all items for a new
    user.

    Parameters
    ----------
    alpha : float, optional
        Weight of the penalty against the sum over a user's ratings (not their mean, so the penalty matters less for
        users with many ratings). K is scaled so that the mean of K_ii over ratings is 1: alpha is the variance of the
        noise of a rating relative to that of g. None chooses it.
    power : float, optional
        Power of the eigenvalues: 0 is a projection, 1 the covariance of the ratings; higher powers favour the leading
        directions. None chooses it.
    n_basis : int
        Largest number of directions.
    shrink : float
        Number of neutral ratings added to each item before its mean is taken.
    {n_jobs}
    random_state : int, optional
        Random seed of the users that alpha and power are chosen on: a fifth of the users, 300 at most, by the squared
        error of ratings that are each predicted from nine others. With fewer than 20 users, or if no drawn user has
        two ratings, alpha is 2 and power 1.5.

    Attributes
    ----------
    items_, users_ : arrays of numbers or strings
        The ids, in order.
    ratings_ : CSR array of shape (n_users, n_items)
        The ratings.
    item_means_ : array of shape (n_items,)
        m: mean of an item's ratings relative to the users' levels.
    level_ : float
        Mean level of the users, used for users without ratings.
    item_features_ : array of shape (n_items, q)
        Z with K = ZZᵀ.
    alpha_, power_ : float
        The values in use.
    alpha_from_ : str
        Source of alpha and power: "given", "held-out users" or "default".

    Notes
    -----
    All other methods work as in any `Ranker`, except that item ids are not features: weights, pairs, scaling and
    kernels do not apply. Pass the ratings of new users to `predict_user`, not to ``predict``.

    Examples
    --------
    >>> items, user = ["tea", "milk", "ale", "rum"] * 3, [1] * 4 + [2] * 4 + [3] * 4
    >>> y = [5, 4, 1, 2, 4, 5, 2, 1, 1, 2, 5, 4]
    >>> model = Collaborative(alpha=0.1).fit(items, y, qid=user)
    >>> model.recommend_user(["ale", "tea"], [5, 2], n=1)
    array(['rum'], dtype='<U4')
    """

    _rules: ClassVar[Rules] = {
        "alpha": number(0, inside="()") | none,
        "power": number(0) | none,
        "n_basis": integer(1),
        "shrink": number(0),
        "n_jobs": n_jobs,
        "random_state": seed,
    }

    item_features_: Floats = field(init=False)
    alpha_: float = field(init=False)
    power_: float = field(init=False)
    alpha_from_: str = field(init=False)

    alpha: float | None = None
    power: float | None = None
    n_basis: int = 100
    _: KW_ONLY
    shrink: float = 2.0
    n_jobs: int | None = None
    random_state: Any = None

    def _fit_ratings(self, ratings: Any, users: Ids, rng: np.random.Generator) -> FittedRatings:
        alphas = ALPHAS if self.alpha is None else (float(self.alpha),)
        powers = POWERS if self.power is None else (float(self.power),)
        alpha, power, source = choose(ratings, self.shrink, int(self.n_basis), alphas, powers, rng)
        m = item_means(ratings, self.shrink)
        Z = ItemSpectrum.of(residuals(ratings, m), int(self.n_basis)).features(power)
        level = float(user_levels(ratings, m).mean())
        return FittedRatings(users, ratings, m, level, Z, alpha, power, source)

    def _user_coefs(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        coefs = np.zeros((len(levels), self.item_features_.shape[1]))
        t = ratings.data - self.item_means_[ratings.indices]
        items, starts = ratings.indices.astype(np.int64, copy=False), ratings.indptr.astype(np.int64, copy=False)
        try:
            ridge_users(self.item_features_, items, starts, t, self.alpha_, coefs, levels)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"alpha_ is {self.alpha_:g}, so small that the weights of a user are not determined; fit with a larger "
                "alpha."
            ) from error
        return self.item_features_, coefs
