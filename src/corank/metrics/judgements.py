"""Judgements: grades and scores grouped by query; Metric, BoundMetric with its parameters, and MetricResult."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.rows.blocks import sort_blocks
from corank.core.threads import cut, n_threads, parallel_map, threads_for
from corank.data.inputs import as_numbers, as_scores
from corank.data.queries import Queries
from corank.errors import InputError
from corank.metrics.conventions import Convention, find_convention


class Ranked(NamedTuple):
    """The rows of each query in order of falling score."""

    grades: NDArray[np.float64]  # grades, scores: aligned with each other
    scores: NDArray[np.float64]


class PerQuery(NamedTuple):
    """
    Values of a metric for each query.

    weights (n_queries,): number of pairs or rows of each query, for metrics with a micro average.
    """

    values: NDArray[np.float64]  # (n_queries,): NaN if undefined
    weights: NDArray[np.float64] | None = None


def ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return part/whole, NaN where whole ≤ 0."""
    out = np.full(len(whole), np.nan)
    np.divide(part, whole, out=out, where=whole > 0)
    return out


@dataclass(frozen=True, eq=False)
class Judgements:
    """
    The input of metrics: query q has the entries ``starts[q]`` to ``starts[q + 1]``.

    starts (n_queries + 1,): first entry of each query; the range of a query without judged rows is empty.
    grades, scores: finite grades, and scores; score -inf marks a row that was not retrieved.
    unjudged: mask of unjudged rows that the convention treats as irrelevant; None if there are none.
    """

    ids: NDArray[Any]  # (n_queries,): query ids in the order in which they first appear
    starts: NDArray[np.int64]
    grades: NDArray[np.float64]
    scores: NDArray[np.float64]
    convention: Convention
    unjudged: NDArray[np.bool_] | None
    n_unjudged_rows: int  # number of rows with grade NaN
    n_jobs: int | None  # number of threads

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        qid: ArrayLike | None,
        convention: Convention,
        *,
        docids: ArrayLike | None = None,
        retrieved: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Judgements:
        """
        Check and group rows.

        y (n_rows,): grades; NaN marks an unjudged row.
        qid (n_rows,): one query id per row; None puts all rows in one query.
        docids (n_rows,): document ids, needed if the convention orders ties by them.
        retrieved (n_rows,): False marks a judged row that was not retrieved: it counts for ideal orders and recall,
            and its score is ignored.
        n_jobs: number of threads; all processors by default.
        """
        numbers = as_numbers(scores, "scores", "number")
        n_rows = len(numbers)
        if np.ndim(y) and len(y) != n_rows:  # type: ignore[arg-type]
            raise InputError(f"y has {len(y)} grades and scores has {n_rows} numbers; pass one of each per row.")  # type: ignore[arg-type]
        grades = as_scores(y, n_rows)
        if n_rows == 0:
            raise InputError("y and scores are empty; pass at least one row.")
        numbers = _comparable_scores(numbers, retrieved, convention)
        queries = Queries.of(qid, n_rows)
        codes = queries.codes
        by_docid = convention.ties == "docid"
        if by_docid or not (codes[1:] >= codes[:-1]).all():
            order = _by_docid(codes, docids) if by_docid else queries.order
            grades, numbers = grades[order], numbers[order]
        unjudged = np.isnan(grades)
        n_unjudged = int(np.count_nonzero(unjudged))
        judged = cls(queries.ids, queries.starts, grades, numbers, convention, None, n_unjudged, n_jobs)
        if n_unjudged and convention.unjudged == "irrelevant":
            return replace(judged, grades=np.where(unjudged, 0.0, grades), unjudged=unjudged)
        return judged.only(~unjudged) if n_unjudged else judged

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each query."""
        return np.diff(self.starts)

    @cached_property
    def extremes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lowest and highest grade of each query that has rows."""
        begins = self.starts[:-1][self.sizes > 0]
        if len(begins) == 0:
            return np.empty(0), np.empty(0)
        return np.minimum.reduceat(self.grades, begins), np.maximum.reduceat(self.grades, begins)

    @cached_property
    def ranked(self) -> Ranked:
        """The rows of each query by falling score, ties in input order; computed on first use."""
        order = np.arange(len(self.grades), dtype=np.int64)
        keys = -self.scores
        self.run(lambda first, last: sort_blocks(keys, order, self.starts, first, last))
        return Ranked(self.grades[order], self.scores[order])

    def only(self, kept: NDArray[np.bool_]) -> Judgements:
        """Return the judgements without some rows; all queries stay."""
        before = np.concatenate([[0], np.cumsum(kept)])
        return replace(
            self, starts=before[self.starts], grades=self.grades[kept], scores=self.scores[kept], unjudged=None
        )

    def walk(
        self, kernel: Callable[..., None], values: NDArray[Any], *options: Any, columns: tuple[int, ...] = ()
    ) -> NDArray[np.float64]:
        """Run a kernel over the ranked rows of every query, on threads."""
        scores, out = self.ranked.scores, np.empty((len(self.ids), *columns))
        self.run(lambda first, last: kernel(values, scores, self.starts, first, last, *options, out))
        return out

    def run(self, function: Callable[[int, int], object]) -> None:
        """Call ``function(first, last)`` for ranges of queries, on threads."""
        n_jobs = threads_for(16 * int(self.starts[-1])) if self.n_jobs is None else self.n_jobs
        parallel_map(function, cut(self.starts, 4 * n_threads(n_jobs)), n_jobs)


def _comparable_scores(
    numbers: NDArray[np.float64], retrieved: ArrayLike | None, convention: Convention
) -> NDArray[np.float64]:
    """Return the scores to compare: finite, or -inf for rows that were not retrieved."""
    mask = np.ones(len(numbers), dtype=bool) if retrieved is None else np.asarray(retrieved)
    if mask.shape != numbers.shape or mask.dtype != bool:
        raise InputError(
            f"retrieved has shape {mask.shape} and type {mask.dtype}; pass {len(numbers)} booleans, one per row."
        )
    finite = np.isfinite(numbers)
    if not (finite | ~mask).all():
        row = int(np.flatnonzero(~finite & mask)[0])
        kind = "NaN" if np.isnan(numbers[row]) else "infinite"
        raise InputError(f"scores is {kind} at row {row}; pass a finite number for every row.")
    if convention.single_precision:
        limit = float(np.finfo(np.float32).max)
        numbers = np.clip(numbers, -limit, limit).astype(np.float32).astype(np.float64)
    return numbers if retrieved is None else np.where(mask, numbers, -np.inf)


def _by_docid(codes: NDArray[np.int64], docids: ArrayLike | None) -> NDArray[np.int64]:
    if docids is None:
        raise InputError(
            "this convention orders ties by document id; pass docids, one per row, "
            "or a convention with ties='input' or ties='expectation'."
        )
    names = np.asarray(docids).astype(str)
    if names.shape != codes.shape:
        raise InputError(f"docids has shape {names.shape} for {len(codes)} rows; pass one document id per row.")
    ranks = np.unique(names, return_inverse=True)[1]
    return np.asarray(np.lexsort((-ranks, codes)), dtype=np.int64)


class Metric:
    """
    A kind of metric; calling it returns the mean over queries.

    The signature of `compute` defines the syntax of the name: a parameter ``k`` is the depth ``@k`` (required without a
    default), and all others are parameters in parentheses.

    compute: Function of `Judgements`, ``k`` if a depth is allowed, and the parameters; returns `PerQuery`.
    name: Canonical name.
    aliases: Other names, in addition to the name of the function.
    larger_is_better: Direction of the metric.
    fills_empty: Whether undefined queries get the value of the convention (`Convention.empty`); if not, they are left
        out.

    cut: Whether ``@k`` is allowed or required.
    params: Parameters and their defaults.
    """

    def __init__(
        self,
        compute: Callable[..., PerQuery],
        name: str,
        aliases: tuple[str, ...] = (),
        *,
        larger_is_better: bool = True,
        fills_empty: bool = True,
    ) -> None:
        self.compute = compute
        self.name = name
        self.spellings = (name, compute.__name__, *aliases)
        self.larger_is_better = larger_is_better
        self.fills_empty = fills_empty
        options = dict(list(inspect.signature(compute).parameters.items())[1:])
        depth = options.pop("k", None)
        self.cut: Literal["none", "optional", "needed"] = (
            "none" if depth is None else "needed" if depth.default is depth.empty else "optional"
        )
        self.params: tuple[tuple[str, float | None], ...] = tuple((key, item.default) for key, item in options.items())
        # the measure replaces the decorated function
        self.__name__, self.__module__, self.__doc__ = compute.__name__, compute.__module__, compute.__doc__

    def __call__(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        k: int | None = None,
        convention: str | Convention = "corank",
        **params: float | None,
    ) -> float:
        """Return the mean over queries; `params` are those of the metric, such as ``rel=2``."""
        if k is None and self.cut == "needed":
            raise InputError(f"{self.__name__} needs a depth; pass k=10, for example.")
        metric = self.metric(k, {key: value for key, value in params.items() if value is not None}, self.__name__)
        return metric.result(Judgements.of(y, scores, qid, find_convention(convention))).mean

    def __repr__(self) -> str:
        return f"<{self.__module__}.{self.__name__}: {self.name}>"

    def __reduce__(self) -> str:
        return self.__name__

    def metric(self, k: int | None, changed: Mapping[str, float], text: str) -> BoundMetric:
        """Return the metric with a depth and parameters."""
        if k is not None and self.cut == "none":
            raise InputError(f"{text!r} has a depth, but {self.name} has none; drop the depth {k}.")
        if k is None and self.cut == "needed":
            raise InputError(f"{text!r} needs a depth; use {self.name}@10, for example.")
        if k is not None and (k < 1 or k != int(k)):
            raise InputError(f"{text!r} has the depth {k}; pass a whole number of rows, 1 or more.")
        params = dict(self.params)
        for key, value in changed.items():
            if key not in params:
                allowed = f"use {', '.join(params)}" if params else "it has no parameters"
                raise InputError(f"{text!r} has the parameter {key!r}, which {self.name} does not have; {allowed}.")
            if not math.isfinite(value):
                raise InputError(f"{text!r} has {key}={value!r}; pass a finite number, such as {key}=2.")
            params[key] = float(value)
        return BoundMetric(self, None if k is None else int(k), tuple(params.items()))


def measure(
    name: str, *aliases: str, larger_is_better: bool = True, fills_empty: bool = True
) -> Callable[[Callable[..., PerQuery]], Metric]:
    """Turn the decorated function into a `Metric`."""
    return lambda compute: Metric(compute, name, aliases, larger_is_better=larger_is_better, fills_empty=fills_empty)


@dataclass(frozen=True)
class BoundMetric:
    """A measure with its depth and parameters; `str` returns its canonical name."""

    measure: Metric  # kind of metric
    cut: int | None  # the k of ``@k``
    params: tuple[tuple[str, float | None], ...]  # all parameters, defaults included

    def __str__(self) -> str:
        changed = [pair for pair in self.params if pair not in self.measure.params]
        inside = ",".join(f"{key}={value!r}".removesuffix(".0") for key, value in changed)
        return self.measure.name + (f"({inside})" if inside else "") + ("" if self.cut is None else f"@{self.cut}")

    def result(self, judged: Judgements) -> MetricResult:
        """Compute the metric for every query and its means."""
        depth = {} if self.measure.cut == "none" else {"k": self.cut}
        values, weights = self.measure.compute(judged, **depth, **dict(self.params))
        undefined = np.isnan(values) & (judged.sizes > 0)
        micro = None
        if weights is not None:
            defined = ~np.isnan(values)
            total = float(weights[defined].sum())
            micro = float(weights[defined] @ values[defined]) / total if total > 0 else float("nan")
        if self.measure.fills_empty and judged.convention.empty != "skip":
            values = np.where(undefined, 0.0 if judged.convention.empty == "zero" else 1.0, values)
        used = ~np.isnan(values)
        n_used = int(np.count_nonzero(used))
        mean = float(values[used].mean()) if n_used else float("nan")
        values.setflags(write=False)
        return MetricResult(self, values, mean, micro, n_used, int(np.count_nonzero(undefined)))


@dataclass(frozen=True, eq=False)
class MetricResult:
    """
    Result of one metric.

    values: One value per query, in the order of the evaluation's `query_ids`; NaN for queries that are left out.
    n_empty: Queries with judged rows for which the metric is undefined (no relevant row or no pair). They are left out,
        or get the value of the convention.
    """

    metric: BoundMetric  # the metric
    values: NDArray[np.float64]
    mean: float  # mean over the queries that are not left out; NaN if there is none
    micro: float | None  # mean weighted by pairs (pairwise metrics) or rows (MSE, MAE); None for the others
    n_used: int  # queries in the mean
    n_empty: int
