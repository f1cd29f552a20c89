"""Use a fitted model over parts: scores, ranks and metrics, each query where it is whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.routing import predict_with_qid
from corank.distributed.parts import Parts
from corank.distributed.tasks import WholeQueries, laid_out_for
from corank.metrics import Convention, Evaluation, MetricResult, evaluate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def predict_parts(model: Any, parts: Any, client: Any = None) -> Floats:
    """
    Score rows in many places.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted model.
    parts : Parts, path, sequence, or Dask's collections
        The rows, see `Parts`.
    client : distributed.Client, Engine or None
        Where tasks run; None is this machine.

    Returns
    -------
    array of shape (n_rows,)
        Scores in the order of the parts and of the rows in them; they are all that comes here.
    """
    return np.asarray(_in_order(model, parts, client, _scores_part, "scores", np.float64))


def rank_parts(model: Any, parts: Any, client: Any = None) -> Integers:
    """
    Rank rows in many places inside their queries, also those that straddle parts.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted model.
    parts : Parts, path, sequence, or Dask's collections
        The rows, see `Parts`.
    client : distributed.Client, Engine or None
        Where tasks run; None is this machine.

    Returns
    -------
    array of int64, shape (n_rows,)
        1 for the best row of each query; equal scores keep the order of the rows.
    """
    return np.asarray(_in_order(model, parts, client, _ranks_part, "ranks", np.int64))


def evaluate_parts(
    model: Any,
    parts: Any,
    metrics: str | Sequence[str] = ("nDCG@10", "AP"),
    client: Any = None,
    *,
    convention: str | Convention = "corank",
) -> Evaluation:
    """
    Evaluate a model on rows in many places, query by query.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted model.
    parts : Parts, path, sequence, or Dask's collections
        The rows, see `Parts`.
    metrics : str or sequence of str
        Names such as ``nDCG@10``.
    client : distributed.Client, Engine or None
        Where tasks run; None is this machine.
    convention : str or Convention
        How the names are read.

    Returns
    -------
    Evaluation
        Values per query, queries by rising id; one number a query and metric comes here. Means over pairs or rows
        (`micro`) are left out.
    """
    parts = parts if isinstance(parts, Parts) else Parts(parts, client)
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    handles = parts.over(_evaluate_part, (model, names, convention), "metrics")
    found: list[Evaluation] = [one for some in parts.engine.gather(handles) for one in some]
    ids = np.concatenate([one.query_ids for one in found])
    order = np.argsort(ids, kind="stable")
    results = {name: _together([one.results[name] for one in found], order) for name in found[0].results}
    counts = ("n_rows", "n_unjudged_rows", "n_unjudged_queries", "n_single_grade")
    totals = {name: sum(getattr(one, name) for one in found) for name in counts}
    return Evaluation(found[0].convention, ids[order], MappingProxyType(results), **totals)


def _in_order(model: Any, parts: Any, client: Any, task: Any, name: str, dtype: Any) -> Any:
    parts = parts if isinstance(parts, Parts) else Parts(parts, client)
    out = np.empty(parts.n_rows, dtype=dtype)
    for some in parts.engine.gather(parts.over(task, model, name)):
        for numbers, values in some:
            out[numbers] = values
    return out


def _scores_part(problems: Iterator[WholeQueries], model: Any) -> list[tuple[Integers, Floats]]:
    return [(problem.numbers, _scores(model, problem)) for problem in problems]


def _ranks_part(problems: Iterator[WholeQueries], model: Any) -> list[tuple[Integers, Integers]]:
    return [(problem.numbers, problem.data.queries.ranks(_scores(model, problem))) for problem in problems]


def _evaluate_part(problems: Iterator[WholeQueries], told: tuple[Any, tuple[str, ...], Any]) -> list[Evaluation]:
    model, names, convention = told
    found = []
    for problem in problems:
        data, queries = problem.data, problem.data.queries
        assert data.y is not None
        one = evaluate(data.y, _scores(model, problem), queries.codes, names, convention=convention)
        found.append(replace(one, query_ids=queries.ids[one.query_ids], results=dict(one.results)))
    return found


def _scores(model: Any, problem: WholeQueries) -> Floats:
    return predict_with_qid(model, laid_out_for(model, problem.data.X), problem.data.queries.codes)


def _together(results: list[MetricResult], order: Integers) -> MetricResult:
    values = np.concatenate([one.values for one in results])[order]
    used = values[~np.isnan(values)]
    mean = math.fsum(used) / len(used) if len(used) else float("nan")
    return MetricResult(results[0].metric, values, mean, None, len(used), sum(one.n_empty for one in results))
