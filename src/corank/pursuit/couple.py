"""The views of a problem, over the rows they learn from, must agree on, or are judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.kernels import Basis
from corank.pairwise import Laplacian
from corank.pursuit.coupled import Coupled
from corank.pursuit.dictionary import Dictionary, kernel_columns
from corank.pursuit.inner import Goal


def couple(views: list[Basis], data: RankingData, goal: Goal, query_weight: str, coupling: float) -> Coupled:
    """
    Make views ready to be searched.

    views: the rows that the terms of each view may stand for.
    data: the problem; unscored rows of weight zero need no agreement.
    goal: what to approximate.
    query_weight {"pairs", "equal", "rows"}: how much the unscored rows of a query count.
    """
    rows = data.unscored_rows
    queries = Queries.of(data.queries.codes[rows], len(rows))
    # rows that are compared with nobody cannot disagree
    couples = bool((queries.sizes > 1).any())
    w = None if data.weights is None or not couples else data.weights[rows]
    agreement = Laplacian.per_query(queries, query_weight, weights=w)
    scored, unscored = (_columns(views, data.X, one) for one in (goal.rows, rows))
    return Coupled(scored, unscored, goal.inner, agreement, float(coupling) if couples else 0.0)


def side_by_side(views: list[Basis], X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """
    Put the dictionaries of all views beside each other, so that one sum over them is the mean of the views.

    views: the rows that the terms of each view may stand for.
    rows: those that the columns run over.
    Returns: columns of the first view, then of the second, ...
    """
    return Dictionary(np.hstack([part.D / len(views) for part in _columns(views, X, rows)]))


def _columns(views: list[Basis], X: Any, rows: NDArray[np.int64]) -> list[Dictionary]:
    return [kernel_columns(basis, X, rows) for basis in views]
