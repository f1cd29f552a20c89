"""Evaluate a ranking: any metrics, one convention, one number per query, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError
from corank.metrics.conventions import Convention, find_convention
from corank.metrics.judgements import Judgements
from corank.metrics.measure import Result
from corank.metrics.names import parse_metric


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Result]):
    """
    What `evaluate` returns: a mapping from metric names to `Result`, and counts.

    Attributes
    ----------
    convention : Convention
        How the names were read.
    query_ids : array, shape (n_queries,)
        The queries in the order in which they first appear.
    results : mapping of str to Result
        By canonical name; indexing the evaluation accepts any spelling.
    n_rows : int
        Rows that came in.
    n_unjudged_rows : int
        Rows with grade NaN.
    n_unjudged_queries : int
        Queries left without a row, because all their rows are unjudged; every metric leaves them out.
    n_single_grade : int
        Queries whose judged rows all have one grade.
    """

    convention: Convention
    query_ids: NDArray[Any]
    results: Mapping[str, Result]
    n_rows: int
    n_unjudged_rows: int
    n_unjudged_queries: int
    n_single_grade: int

    def __getitem__(self, name: str) -> Result:
        if name in self.results:
            return self.results[name]
        canonical = str(parse_metric(name))
        if canonical not in self.results:
            raise KeyError(f"{canonical} was not evaluated; there are {', '.join(self.results)}")
        return self.results[canonical]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def n_queries(self) -> int:
        """Number of queries that came in."""
        return len(self.query_ids)

    @property
    def means(self) -> dict[str, float]:
        """The mean of each metric."""
        return {name: result.mean for name, result in self.results.items()}

    def __repr__(self) -> str:
        width = max((len(name) for name in self.results), default=0)
        lines = [
            f"{name:<{width}}  {result.mean:.4f}  ({result.n_used} queries used, {result.n_empty} empty)"
            for name, result in self.results.items()
        ]
        lines.append(
            f"convention {self.convention.name}; {self.n_queries} queries, {self.n_single_grade} of a single grade, "
            f"{self.n_unjudged_queries} unjudged; {self.n_rows} rows, {self.n_unjudged_rows} unjudged"
        )
        return "\n".join(lines)


def evaluate(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    metrics: str | Sequence[str] = ("nDCG@10", "AP"),
    *,
    convention: str | Convention = "corank",
    docids: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """
    Evaluate scores against grades, query by query.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Grades, higher is better; NaN marks an unjudged row.
    scores : array-like of shape (n_rows,)
        Predicted scores, higher is better.
    qid : array-like of shape (n_rows,), optional
        One query id per row, any hashable type, any order; None puts all rows in one query.
    metrics : str or sequence of str
        Names such as ``nDCG@10``; see `corank.metrics.names.parse_metric`.
    convention : str or Convention
        One of `corank.metrics.conventions.CONVENTIONS`, or your own.
    docids : array-like of shape (n_rows,), optional
        Document ids, needed by conventions that order ties by them.
    retrieved : array-like of bool, shape (n_rows,), optional
        False marks a judged row that the ranking left out; see `Judgements.of`.
    n_jobs : int, optional
        Number of threads; every available processor by default.

    Returns
    -------
    Evaluation
        Values per query, means and counts.

    Examples
    --------
    >>> evaluate([2, 0, 1, 0, 0], [0.9, 0.5, 0.5, 0.1, 0.2], qid=[1, 1, 1, 2, 2], metrics=["nDCG@2", "RR"])
    nDCG@2  0.9131  (1 queries used, 1 empty)
    RR      1.0000  (1 queries used, 1 empty)
    convention corank; 2 queries, 1 of a single grade, 0 unjudged; 5 rows, 0 unjudged
    """
    rules = find_convention(convention)
    wanted = [parse_metric(name) for name in ([metrics] if isinstance(metrics, str) else metrics)]
    if not wanted:
        raise InputError("metrics is empty; name at least one, such as nDCG@10.")
    judged = Judgements.of(y, scores, qid, rules, docids=docids, retrieved=retrieved, n_jobs=n_jobs)
    lowest, highest = judged.extremes
    return Evaluation(
        rules,
        judged.ids,
        MappingProxyType({str(metric): metric.result(judged) for metric in wanted}),
        n_rows=int(np.size(y)),
        n_unjudged_rows=judged.n_unjudged_rows,
        n_unjudged_queries=int(np.count_nonzero(judged.sizes == 0)),
        n_single_grade=int(np.count_nonzero(lowest == highest)),
    )
