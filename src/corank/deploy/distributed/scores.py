"""Scores, ranks and metrics of a fitted model over parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.routing import predict_with_qid
from corank.deploy.distributed.parts import Parts
from corank.deploy.distributed.tasks import WholeQueries, laid_out_for
from corank.errors import InputError
from corank.metrics import Convention, Evaluation, MetricResult, evaluate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def predict_parts(model: Any, parts: Any, client: Any = None) -> Floats:
    """
    Score the rows of parts.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted model.
    parts : Parts, path, sequence, or Dask collections
        The rows, see `Parts`.
    client : distributed.Client, Engine or None
        Where tasks run; None means this machine. Dask unpickles what workers send: use trusted clusters only.

    Returns
    -------
    array of shape (n_rows,)
        Scores in the order of the parts and of the rows in them.
    """
    return np.asarray(_in_order(model, parts, client, _scores_part, "scores", np.float64))


def rank_parts(model: Any, parts: Any, client: Any = None) -> Integers:
    """
    Rank the rows of parts inside their queries, also of queries that are spread over parts.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted model.
    parts : Parts, path, sequence, or Dask collections
        The rows, see `Parts`.
    client : distributed.Client, Engine or None
        Where tasks run; None means this machine. Dask unpickles what workers send: use trusted clusters only.

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
    Evaluate a model on parts, query by query.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted model.
    parts : Parts, path, sequence, or Dask collections
        The rows, see `Parts`.
    metrics : str or sequence of str
        Names of metrics such as ``nDCG@10``.
    client : distributed.Client, Engine or None
        Where tasks run; None means this machine. Dask unpickles what workers send: use trusted clusters only.
    convention : str or Convention
        Convention of the metrics.

    Returns
    -------
    Evaluation
        Values per query, in ascending order of query ids, without means over pairs or rows (`micro`).
    """
    parts = _checked(model, parts, client)
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    handles = parts.over(_evaluate_part, (model, names, convention), "metrics")
    evaluations: list[Evaluation] = [one for some in parts.engine.gather(handles) for one in some]
    ids = np.concatenate([one.query_ids for one in evaluations])
    order = np.argsort(ids, kind="stable")
    results = {name: _together([one.results[name] for one in evaluations], order) for name in evaluations[0].results}
    counts = ("n_rows", "n_unjudged_rows", "n_unjudged_queries", "n_single_grade")
    totals = {name: sum(getattr(one, name) for one in evaluations) for name in counts}
    return Evaluation(evaluations[0].convention, ids[order], MappingProxyType(results), **totals)


def _checked(model: Any, parts: Any, client: Any) -> Parts:
    """Return parts with the columns of the model; raise `InputError` for other names, or another order of them."""
    checked = parts if isinstance(parts, Parts) else Parts(parts, client)
    known, names = getattr(model, "feature_names_in_", None), checked.feature_names
    if known is None or names is None or list(known) == list(names):
        return checked
    if len(known) != len(names):
        raise InputError(
            f"the parts have {len(names)} columns, but the model was fitted on {len(known)}; pass parts with the same "
            "columns."
        )
    at = next(k for k, (one, other) in enumerate(zip(names, known, strict=True)) if one != other)
    raise InputError(
        f"the parts have {names[at]!r} as column {at + 1}, but the model was fitted on {known[at]!r}; pass parts with "
        "the same columns in the same order."
    )


def _in_order(model: Any, parts: Any, client: Any, task: Any, name: str, dtype: Any) -> Any:
    parts = _checked(model, parts, client)
    out = np.empty(parts.n_rows, dtype=dtype)
    for some in parts.engine.gather(parts.over(task, model, name)):
        for numbers, values in some:
            out[numbers] = values
    return out


def _scores_part(problems: Iterator[WholeQueries], model: Any) -> list[tuple[Integers, Floats]]:
    return [(problem.numbers, _scores(model, problem)) for problem in problems]


def _ranks_part(problems: Iterator[WholeQueries], model: Any) -> list[tuple[Integers, Integers]]:
    return [(problem.numbers, problem.data.queries.ranks(_scores(model, problem))) for problem in problems]


def _evaluate_part(problems: Iterator[WholeQueries], settings: tuple[Any, tuple[str, ...], Any]) -> list[Evaluation]:
    model, names, convention = settings
    evaluations = []
    for problem in problems:
        data, queries = problem.data, problem.data.queries
        assert data.y is not None
        one = evaluate(data.y, _scores(model, problem), queries.codes, names, convention=convention)
        evaluations.append(replace(one, query_ids=queries.ids[one.query_ids], results=dict(one.results)))
    return evaluations


def _scores(model: Any, problem: WholeQueries) -> Floats:
    return predict_with_qid(model, laid_out_for(model, problem.data.X), problem.data.queries.codes)


def _together(results: list[MetricResult], order: Integers) -> MetricResult:
    values = np.concatenate([one.values for one in results])[order]
    used = values[~np.isnan(values)]
    mean = math.fsum(used) / len(used) if len(used) else float("nan")
    return MetricResult(results[0].metric, values, mean, None, len(used), sum(one.n_empty for one in results))
