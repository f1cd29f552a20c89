"""Many small pursuits in compiled loops: one model per user, over one catalogue of items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.kernels import as_kernel
from corank.base.kernels.kernel import require_similarities
from corank.base.kernels.views import View
from corank.base.pairs.losses import query_factors
from corank.core.threads import cut, n_threads, parallel_map
from corank.data.inputs import as_scores, require_squares
from corank.data.queries import Queries
from corank.errors import InputError
from corank.memory import require_memory
from corank.models.pursuit import RankingPursuit
from corank.models.pursuit.path import as_n_terms
from corank.models.pursuit.ranking_pursuit import Fitting
from corank.parameters import QueryWeight, check_values, rng_of, rules_of
from experiments.ranking_pursuit.many_kernels import BACK, BASIC, PRE, SmallProblems, pursue_many, score_many

Floats = NDArray[np.float64]

LEAST = np.array([(64.0 * np.finfo(np.float64).eps) ** 2, 1e4 * np.finfo(np.float64).eps])
"""Norms below these shares are rounding errors (see `dictionary` and `fits` of `corank.models.pursuit`)."""

_FITTINGS = {"basic": BASIC, "back": BACK, "pre": PRE}


@dataclass(frozen=True, eq=False)
class ManyPursuits:
    """
    Fitted models, one for each problem.

    Attributes
    ----------
    ids : array of shape (B,)
        Ids of the problems, in order of first appearance.
    K : array of shape (N, N)
        Gram matrix of the catalogue.
    chosen : array of int64, shape (B, P)
        Items chosen by each model, in order; −1 after its last term.
    path : array of shape (B, P, P), or (B, 1, P)
        ``path[b, p - 1, :p]`` are the coefficients of the first p terms; a model with fewer terms repeats its last.
        With ``fitting="basic"`` coefficients do not change: ``path[b, 0, :p]``.
    levels : array of shape (B,)
        Intercept of each problem: its mean judgement, or 0.
    """

    ids: NDArray[Any]
    K: Floats
    chosen: NDArray[np.int64]
    path: Floats
    levels: Floats

    @property
    def n_terms(self) -> NDArray[np.int64]:
        """Number of terms of each model."""
        return np.asarray((self.chosen >= 0).sum(axis=1), dtype=np.int64)

    def predict(self, items: ArrayLike, problem: ArrayLike, n_terms: int | None = None) -> Floats:
        """
        Score items, each by the model of its problem.

        Parameters
        ----------
        items : array-like of int, shape (m,)
            Rows of the catalogue.
        problem : array-like of shape (m,)
            The problem of each item.
        n_terms : int, optional
            Number of terms to use; all by default.

        Returns
        -------
        array of shape (m,)
            Scores in input order.
        """
        p = as_n_terms(n_terms, self.chosen.shape[1], "these models have")
        last = self.path[:, :, :p] if self.path.shape[1] == 1 else self.path[:, max(p - 1, 0) : max(p, 1), :p]
        short = ManyPursuits(self.ids, self.K, self.chosen[:, :p], last, self.levels)
        return short.predict_path(items, problem)[:, p]

    def predict_path(self, items: ArrayLike, problem: ArrayLike, n_jobs: int | None = None) -> Floats:
        """
        Score items by the models of every length.

        Parameters
        ----------
        items, problem : array-like of shape (m,)
            As in `predict`.
        n_jobs : int, optional
            Number of threads; all processors by default.

        Returns
        -------
        array of shape (m, P + 1)
            Column p holds the scores by the first p terms.
        """
        rows = as_items(items, len(self.K))
        score = partial(score_many, self.K, self.chosen, self.path, self.levels)
        return scores_by_problem(score, rows, self.ids, problem, self.chosen.shape[1] + 1, n_jobs)


def fit_many(
    X: Any,
    items: ArrayLike,
    y: ArrayLike,
    problem: ArrayLike,
    *,
    n_basis: int = 50,
    kernel: Any = "gaussian",
    mix: float = 0.0,
    fitting: Fitting = "basic",
    query_weight: QueryWeight = "pairs",
    fit_intercept: bool = True,
    tol: float = 1e-10,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> ManyPursuits:
    """
    Fit one ranking pursuit per problem, in compiled loops and threads.

    Each model equals that of `RankingPursuit` with ``scale=False`` on the rows of its problem as one query; a width of
    "median" is computed from the catalogue. A problem without pairs scores 0 (with mix > 0 it is a regression). The
    Gram matrix of the catalogue is computed once, O(N²) memory; a problem of n rows then costs O(n² P).

    Parameters
    ----------
    X : array-like, CSR matrix, or DataFrame, shape (N, d)
        The catalogue; with ``kernel="precomputed"`` its Gram matrix.
    items : array-like of int, shape (m,)
        The row of X of each judgement.
    y : array-like of shape (m,)
        The judgements; NaN is ignored.
    problem : array-like of shape (m,)
        The problem (such as the user) of each judgement; any hashable ids, in any order.
    n_basis, kernel, mix, fitting, query_weight, fit_intercept, tol, random_state
        As in `RankingPursuit`.
    n_jobs : int, optional
        Number of threads; all processors by default.

    Returns
    -------
    ManyPursuits
        The models.

    Examples
    --------
    >>> items, y, user = [0, 1, 2, 0, 2], [1.0, 2.0, 3.0, 1.0, 0.0], ["ann", "ann", "ann", "bob", "bob"]
    >>> models = fit_many([[0.0], [1.0], [2.0]], items, y, user, n_basis=1, kernel="linear")
    >>> models.predict([2, 2], ["ann", "bob"])
    array([ 2., -1.])
    """
    values = {
        "n_basis": n_basis, "kernel": kernel, "mix": mix, "fitting": fitting, "query_weight": query_weight,
        "fit_intercept": fit_intercept, "tol": tol, "random_state": random_state,
    }  # fmt: skip
    check_values(values, rules_of(RankingPursuit))
    K = catalogue_gram(X, kernel, random_state)
    rows = as_items(items, len(K))
    if not len(rows):
        raise InputError("items is empty; pass one row of X for each score.")
    scores = as_scores(y, len(rows))
    require_squares(scores)
    queries = Queries.of(problem, len(rows))
    order = queries.order[~np.isnan(scores[queries.order])]
    n_b = np.bincount(queries.codes[order], minlength=len(queries))
    starts = np.append(0, np.cumsum(n_b)).astype(np.int64)
    factor = (1.0 - mix) * query_factors(n_b, query_weight)
    levels = np.zeros(len(queries))
    if fit_intercept and mix > 0.0:
        codes = queries.codes[order]
        levels = np.bincount(codes, weights=scores[order], minlength=len(queries)) / np.maximum(n_b, 1)
        scores = scores - levels[queries.codes]
    small = SmallProblems(rows[order].view(np.uint64), starts.view(np.uint64), scores[order], float(mix), factor)
    P = int(n_basis)
    chosen = np.empty((len(queries), P), dtype=np.int64)
    path = np.empty((len(queries), 1 if fitting == "basic" else P, P))
    parallel_map(
        lambda first, last: pursue_many(K, small, _FITTINGS[fitting], tol, LEAST, chosen, path, first, last),
        cut(starts, 4 * n_threads(n_jobs)),
        n_jobs,
    )
    return ManyPursuits(queries.ids, K, chosen, path, levels)


def catalogue_gram(X: Any, kernel: Any, random_state: Any = None) -> Floats:
    """
    Compute the Gram matrix of a catalogue in float64.

    kernel: see `corank.base.kernels.as_kernel`.
    random_state: seed of the kernel's "median".
    """
    view = View(None, as_kernel(kernel)).fit(X, rng_of(random_state))
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    require_memory(n, 16.0 * n * n, "pass a catalogue of fewer items", "items")
    K = np.ascontiguousarray(view.kernel(X), dtype=np.float64)
    require_similarities(K, view.kernel)
    if K.shape[0] != K.shape[1]:
        raise InputError(f"the Gram matrix has shape {K.shape}; pass a square matrix, one row and column per item.")
    return K


def as_items(items: ArrayLike, N: int) -> NDArray[np.int64]:
    """Check row numbers of a catalogue of N rows."""
    rows = np.asarray(items)
    if not rows.size:
        return np.empty(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError(f"items has shape {rows.shape} and type {rows.dtype}; pass one row of X for each score.")
    if len(rows) and (rows.min() < 0 or rows.max() >= N):
        worst = rows.min() if rows.min() < 0 else rows.max()
        raise InputError(f"items contains row {worst}; pass rows of X, from 0 to {N - 1}.")
    return rows.astype(np.int64)


def scores_by_problem(
    score: Callable[..., None],
    rows: NDArray[np.int64],
    ids: NDArray[Any],
    problem: ArrayLike,
    n_columns: int,
    n_jobs: int | None,
) -> Floats:
    """
    Score rows, each by the models of its problem, in threads.

    score: takes rows grouped by problem, the problems' first rows, an output array, and a range of problems.
    rows (m,): from `as_items`.
    ids (B,): problems with models.
    problem (m,): the problem of each row.
    n_columns: number of models of each problem.
    n_jobs: number of threads; all processors by default.
    Returns: scores in input order.
    """
    queries = Queries.of(problem, len(rows))
    positions = {name: i for i, name in enumerate(ids.tolist())}
    unknown = [name for name in queries.ids.tolist() if name not in positions]
    if unknown:
        raise InputError(f"problem contains {unknown[0]!r}, which has no fitted model; pass problems of fit_many.")
    codes = np.array([positions[name] for name in queries.ids.tolist()], dtype=np.int64)[queries.codes]
    starts = np.append(0, np.cumsum(np.bincount(codes, minlength=len(ids)))).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    grouped, ends = rows[order].view(np.uint64), starts.view(np.uint64)
    scores = np.empty((len(rows), n_columns))
    parallel_map(
        lambda first, last: score(grouped, ends, scores, first, last), cut(starts, 4 * n_threads(n_jobs)), n_jobs
    )
    out = np.empty_like(scores)
    out[order] = scores
    return out
