"""The views of a problem, over the rows they learn from, must agree on, or are judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.graphs import Laplacian
from corank.pursuit.coupled import Coupled
from corank.pursuit.dictionary import Dictionary, kernel_columns
from corank.pursuit.inner import Floats, Goal
from corank.views import View


def couple(
    views: list[View], data: RankingData, weights: Floats | None, goal: Goal, query_weight: str, coupling: float
) -> Coupled:
    """
    Make views ready to be searched.

    Parameters
    ----------
    views : list of View
        The views, fitted, each with its basis.
    data : RankingData
        The problem.
    weights : array of shape (n_rows,), optional
        Row weights; unscored rows of weight zero need no agreement.
    goal : Goal
        What to approximate.
    query_weight : {"pairs", "equal", "rows"}
        How much the unscored rows of a query count.
    coupling : float
        ν.

    Returns
    -------
    Coupled
        The views.
    """
    free = ~data.is_scored if weights is None else ~data.is_scored & (weights > 0.0)
    rows = np.flatnonzero(free) if data.pairs is None else np.empty(0, dtype=np.int64)
    queries = Queries.of(data.queries.codes[rows], len(rows))
    # rows that are compared with nobody cannot disagree
    couples = bool((queries.sizes > 1).any())
    w = None if weights is None or not couples else weights[rows]
    agreement = Laplacian.per_query(queries, query_weight, weights=w)
    scored, unscored = (_columns(views, data.X, one) for one in (goal.rows, rows))
    return Coupled(scored, unscored, goal.inner, agreement, float(coupling) if couples else 0.0)


def side_by_side(views: list[View], X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """
    Put the dictionaries of all views beside each other, so that one sum over them is the mean of the views.

    Parameters
    ----------
    views : list of View
        The views, fitted, each with its basis.
    X : ndarray or CSR matrix
        All rows.
    rows : array of int64
        Those that the columns run over.

    Returns
    -------
    Dictionary
        Columns of the first view, then of the second, ...
    """
    return Dictionary(np.hstack([part.D / len(views) for part in _columns(views, X, rows)]))


def _columns(views: list[View], X: Any, rows: NDArray[np.int64]) -> list[Dictionary]:
    return [kernel_columns(view, X, rows, view.basis_of(X)) for view in views]
