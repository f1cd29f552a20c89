"""Many small pursuits in two views, in compiled loops: one semi-supervised model per user, over one catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.pairs.losses import query_factors
from corank.core.threads import cut, n_threads, parallel_map
from corank.data.inputs import as_scores, require_squares
from corank.data.queries import Queries
from corank.errors import InputError
from corank.models.pursuit import CoRankingPursuit
from corank.models.pursuit.co_ranking_pursuit import Residual
from corank.models.pursuit.path import as_n_terms
from corank.parameters import QueryWeight, check_values, rules_of
from experiments.ranking_pursuit.many import LEAST, Floats, as_items, catalogue_gram, scores_by_problem
from experiments.ranking_pursuit.many_views_kernels import SmallTwoViewProblems, copursue_many, coscore_many

BOTH = 2
"""Instead of the number of a view: the row is in both dictionaries."""


@dataclass(frozen=True, eq=False)
class ManyCoPursuits:
    """
    Fitted models of two views, one for each problem.

    Attributes
    ----------
    ids : array of shape (B,)
        Ids of the problems, in order of first appearance.
    grams : tuple of two arrays of shape (N, N)
        Gram matrix of the catalogue in each view.
    chosen : array of int64, shape (B, P, 2)
        Item that each view chose at each step; −1 after the last.
    coefs : array of shape (B, P, 2)
        Its coefficient.
    """

    ids: NDArray[Any]
    grams: tuple[Floats, Floats]
    chosen: NDArray[np.int64]
    coefs: Floats

    @property
    def n_terms(self) -> NDArray[np.int64]:
        """Number of steps of each model."""
        return np.asarray((self.chosen >= 0).any(axis=2).sum(axis=1), dtype=np.int64)

    def predict(self, items: ArrayLike, problem: ArrayLike, n_terms: int | None = None) -> Floats:
        """
        Score items, each by the mean of the views of its problem's model.

        Parameters
        ----------
        items : array-like of int, shape (m,)
            Rows of the catalogue.
        problem : array-like of shape (m,)
            The problem of each item.
        n_terms : int, optional
            Number of steps to use; all by default.

        Returns
        -------
        array of shape (m,)
            Scores in input order.
        """
        p = as_n_terms(n_terms, self.chosen.shape[1], "these models have")
        return self.predict_path(items, problem)[:, p]

    def predict_path(self, items: ArrayLike, problem: ArrayLike, n_jobs: int | None = None) -> Floats:
        """
        Score items by the mean of the views, after every number of steps.

        Parameters
        ----------
        items, problem : array-like of shape (m,)
            As in `predict`.
        n_jobs : int, optional
            Number of threads; all processors by default.

        Returns
        -------
        array of shape (m, P + 1)
            Column p holds the scores after p steps.
        """
        rows = as_items(items, len(self.grams[0]))
        score = partial(coscore_many, *self.grams, self.chosen, self.coefs)
        return scores_by_problem(score, rows, self.ids, problem, self.chosen.shape[1] + 1, n_jobs)


def fit_many_views(
    X: Any,
    items: ArrayLike,
    y: ArrayLike,
    problem: ArrayLike,
    view: ArrayLike | None = None,
    *,
    coupling: float,
    n_basis: int = 50,
    kernel: Any = "gaussian",
    residual: Residual = "shared",
    query_weight: QueryWeight = "pairs",
    tol: float = 1e-10,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> ManyCoPursuits:
    """
    Fit one semi-supervised pursuit of two views per problem, in compiled loops and threads.

    Each model equals that of `CoRankingPursuit` with joint search on the rows of its problem as one query. Views differ
    in the features of an item (`X`), in the candidates for terms (`view`), or in both.

    Parameters
    ----------
    X : array-like, CSR matrix, or DataFrame, shape (N, d), or tuple of two
        The catalogue, or one catalogue per view; with ``kernel="precomputed"`` its Gram matrix.
    items : array-like of int, shape (m,)
        Rows of X.
    y : array-like of shape (m,)
        Their scores; NaN marks an unscored row, on which the views must agree.
    problem : array-like of shape (m,)
        The problem of each row; any hashable ids, in any order.
    view : array-like of shape (m,), optional
        0 or 1: the view whose dictionary contains the row; both by default.
    coupling : float
        ν, the weight of the disagreement.
    n_basis, kernel, residual, query_weight, tol, random_state
        As in `CoRankingPursuit`.
    n_jobs : int, optional
        Number of threads; all processors by default.

    Returns
    -------
    ManyCoPursuits
        The models.
    """
    parts = X if isinstance(X, tuple) else (X, X)
    if len(parts) != 2:
        raise InputError(
            f"X is a tuple of {len(parts)}; pass one catalogue, or a tuple of two catalogues of the same items."
        )
    values = {
        "n_basis": n_basis, "kernel": kernel, "coupling": coupling, "residual": residual, "query_weight": query_weight,
        "tol": tol, "random_state": random_state,
    }  # fmt: skip
    check_values(values, rules_of(CoRankingPursuit))
    first = catalogue_gram(parts[0], kernel, random_state)
    grams = (first, first if parts[1] is parts[0] else catalogue_gram(parts[1], kernel, random_state))
    if len(grams[0]) != len(grams[1]):
        raise InputError(f"the views have {len(grams[0])} and {len(grams[1])} items; pass the same items in both.")
    rows = as_items(items, len(first))
    if not len(rows):
        raise InputError("items is empty; pass one row of X for each score.")
    scores = as_scores(y, len(rows))
    require_squares(scores)
    sides = np.full(len(rows), BOTH) if view is None else np.asarray(view)
    if view is not None and (sides.shape != rows.shape or not np.isin(sides, (0, 1)).all()):
        raise InputError("view has other values or another length than items; pass 0 or 1 for each item.")
    queries = Queries.of(problem, len(rows))
    unscored = np.isnan(scores)
    order = queries.order[np.lexsort((unscored[queries.order], queries.codes[queries.order]))]
    n_scored = np.bincount(queries.codes[~unscored], minlength=len(queries))
    factor = np.stack(
        [query_factors(n_scored, query_weight), query_factors(queries.sizes - n_scored, query_weight)], axis=1
    )
    small = SmallTwoViewProblems(
        rows[order].view(np.uint64), queries.starts.view(np.uint64), n_scored.astype(np.uint64), scores[order],
        sides[order].astype(np.uint64), factor,
    )  # fmt: skip
    shape = (len(queries), int(n_basis), 2)
    chosen, coefs = np.empty(shape, dtype=np.int64), np.empty(shape)
    parallel_map(
        lambda first, last: copursue_many(
            *grams, small, float(coupling), residual == "separate", tol, LEAST[0], chosen, coefs, first, last
        ),
        cut(queries.starts, 4 * n_threads(n_jobs)),
        n_jobs,
    )
    return ManyCoPursuits(queries.ids, grams, chosen, coefs)
