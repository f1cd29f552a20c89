"""Synthetic ranking problems with redundant views, graded labels, noise and a known best ranker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from corank.errors import InputError
from corank.parameters import Rule, check_values, integer

_ROWS = integer(1) | Rule(
    "a tuple of two of them",
    lambda value: isinstance(value, tuple) and len(value) == 2 and all(map(integer(1).allows, value)),
)


@dataclass(frozen=True, eq=False)
class SyntheticRanking:
    """
    A synthetic ranking problem with its true utilities and best weights.

    X: The rows.
    y: Grades 0, 1, ...
    qid: Query of each row.
    utility: The latent utility; grades are its noisy discretisation.
    views: The columns of each view.
    best: Weights of the Bayes-optimal ranker: no scorer orders more pairs correctly than ``X @ best``.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    qid: NDArray[np.int64]
    utility: NDArray[np.float64]
    views: tuple[NDArray[np.int64], ...]
    best: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"SyntheticRanking({len(self.y)} rows, {len(np.unique(self.qid))} queries, X of shape {self.X.shape})"


def make_ranking(
    n_queries: int = 100,
    rows_per_query: int | tuple[int, int] = 20,
    *,
    n_latent: int = 5,
    n_views: int = 2,
    features_per_view: int = 10,
    n_grades: int = 5,
    view_noise: float = 1.0,
    label_noise: float = 0.5,
    query_shift: float = 1.0,
    random_state: int | None = None,
) -> SyntheticRanking:
    r"""
    Make a ranking problem with redundant noisy views.

    A row has latent ``z ~ N(0, I)`` and utility ``u = θᵀz`` with ``‖θ‖ = 1``. View v shows
    ``x_v = A_vᵀ(z + c_q) + τ ε`` where the rows of ``A_v`` are orthonormal, ``c_q`` shifts a whole query and τ is
    `view_noise`. The grade is the number of thresholds below ``u + ν η``, ν being `label_noise`; the thresholds are
    such that a row has grade at least g with probability 2⁻ᵍ. Given all V views, the posterior mean of u is
    ``θᵀA x/(τ² + V)`` up to a constant of the query, with the same variance for all rows: this is the best ranker.

    Parameters
    ----------
    n_queries : int
        Number of queries.
    rows_per_query : int or (int, int)
        Rows of a query, or the range they are drawn from.
    n_latent : int
        Dimension of z.
    n_views : int
        Number of views, V.
    features_per_view : int
        Columns of a view, at least `n_latent`.
    n_grades : int
        Number of grades, at least 2.
    view_noise : float
        τ, the noise of the features.
    label_noise : float
        ν, the noise of the judgements.
    query_shift : float
        Standard deviation of ``c_q``, the shift of a query, which does not affect its grades.
    random_state : int, optional
        Random seed.

    Returns
    -------
    SyntheticRanking
        The problem.

    Examples
    --------
    >>> problem = make_ranking(3, 4, random_state=0)
    >>> problem.X.shape, [view.tolist() for view in problem.views][1][:3]
    ((12, 20), [10, 11, 12])
    """
    sizes = {
        "n_queries": n_queries, "n_latent": n_latent, "n_views": n_views, "features_per_view": features_per_view,
        "n_grades": n_grades, "rows_per_query": rows_per_query,
    }  # fmt: skip
    check_values(sizes, {**dict.fromkeys(sizes, integer(1)), "n_grades": integer(2), "rows_per_query": _ROWS})
    if features_per_view < n_latent:
        raise InputError(
            f"features_per_view is {features_per_view}, less than n_latent={n_latent}; pass at least n_latent."
        )
    low, high = rows_per_query if isinstance(rows_per_query, tuple) else (rows_per_query, rows_per_query)
    if high < low:
        raise InputError(f"rows_per_query is {rows_per_query}; pass a number of rows or an ascending range.")
    rng = np.random.default_rng(random_state)
    qid = np.repeat(np.arange(n_queries), rng.integers(low, high, size=n_queries, endpoint=True))
    n_rows, n_features = len(qid), n_views * features_per_view
    theta = rng.normal(size=n_latent)
    theta /= np.linalg.norm(theta)
    A = np.hstack([_orthonormal_rows(n_latent, features_per_view, rng) for _ in range(n_views)])
    z = rng.normal(size=(n_rows, n_latent))
    c = query_shift * rng.normal(size=(n_queries, n_latent))
    X = (z + c[qid]) @ A + view_noise * rng.normal(size=(n_rows, n_features))
    utility = z @ theta
    noisy = utility + label_noise * rng.normal(size=n_rows)
    thresholds = -ndtri(0.5 ** np.arange(1, n_grades)) * np.hypot(1.0, label_noise)
    y = np.searchsorted(thresholds, noisy).astype(np.float64)
    views = tuple(np.split(np.arange(n_features), n_views))
    return SyntheticRanking(X, y, qid, utility, views, theta @ A / (view_noise**2 + n_views))


def _orthonormal_rows(n: int, d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(np.linalg.qr(rng.normal(size=(d, n)))[0].T)
