"""Rows that learning is watched on: an `eval_set` of the user's, or judgements that were set aside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.scaled import ScaledRows, factors_of
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.held_out import HeldOut
from corank.lambdarank.trees import Watched
from corank.metrics import evaluate, parse_metric

Floats = NDArray[np.float64]


def of_eval_set(given: Any, data: RankingData, metric: str) -> Watched:
    """
    Read an `eval_set`.

    given: (X, y, qid), (X, y, qid, prior), or a RankingData.
    data: what is learnt from; its columns are those of the rows to watch, and are scaled alike.
    metric: what judges.
    """
    if not isinstance(given, RankingData):
        if not isinstance(given, tuple | list) or len(given) not in (3, 4):
            raise InputError("eval_set is no tuple (X, y, qid); pass rows, grades and query ids of one set to watch.")
        given = RankingData.of(*given[:3]).on_top_of(*given[3:] or (None,))
    if given.y is None or given.n_features != data.n_features:
        raise InputError(
            f"eval_set has {given.n_features} features"
            + (" and no grades" if given.y is None else "")
            + f", but X has {data.n_features}; pass graded rows of the same columns."
        )
    if (given.prior is None) != (data.prior is None):
        raise InputError("prior came with only one of X and eval_set; pass eval_set=(X, y, qid, prior), or no prior.")
    factors = factors_of(data.X)
    rows = given.scored_rows
    X = given.X[rows] if factors is None else ScaledRows(given.X[rows], factors)
    return Watched(X, _error(given, rows, metric))


def of_held_out(held: HeldOut, metric: str) -> Watched:
    """
    Watch judgements that were set aside.

    metric: what judges; preferences are judged by the disagreement error.
    """
    X, rows, test = held.test.X, held.rows, held.test
    factors = factors_of(X)
    X = X[rows] if factors is None else ScaledRows(X.X[rows], factors)
    if test.y is None:
        return Watched(X, held.error)
    return Watched(X, _error(test, rows, metric))


def _error(data: RankingData, rows: NDArray[np.int64], metric: str) -> Callable[[Floats], float]:
    assert data.y is not None
    y, qid, known = data.y[rows], data.queries.codes[rows], data.prior_of(rows)
    rises = parse_metric(metric).measure.larger_is_better

    def error(scores: Floats) -> float:
        mean = evaluate(y, known + scores, qid, metric)[metric].mean
        if np.isnan(mean):
            raise InputError(
                f"{metric} is not defined for any of the queries that learning is watched on; choose another metric, "
                "or watch more queries."
            )
        return 1.0 - mean if rises else mean

    return error
