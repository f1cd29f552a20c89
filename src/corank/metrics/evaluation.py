"""evaluate: metrics of a ranking under one convention, with values per query and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError, import_extra
from corank.metrics.conventions import Convention, find_convention
from corank.metrics.judgements import Judgements
from corank.metrics.measure import MetricResult
from corank.metrics.names import parse_metric
from corank.tables import ReportTable


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, MetricResult]):
    """
    Result of `evaluate`: a mapping from metric names to `MetricResult`, and counts.

    convention: Convention of the metrics.
    query_ids: The queries in the order in which they first appear.
    results: By canonical name; indexing the evaluation accepts any spelling.
    n_rows: Number of rows.
    n_unjudged_rows: Rows with grade NaN.
    n_unjudged_queries: Queries whose rows are all unjudged; every metric leaves them out.
    n_single_grade: Queries whose judged rows all have the same grade.
    """

    convention: Convention
    query_ids: NDArray[Any]
    results: Mapping[str, MetricResult]
    n_rows: int
    n_unjudged_rows: int
    n_unjudged_queries: int
    n_single_grade: int

    def __getitem__(self, name: str) -> MetricResult:
        if name in self.results:
            return self.results[name]
        canonical = str(parse_metric(name))
        if canonical not in self.results:
            raise KeyError(f"{canonical} was not evaluated, only {', '.join(self.results)}")
        return self.results[canonical]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
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
        return "\n".join([*lines, self._counts()])

    def _counts(self) -> str:
        return (
            f"convention {self.convention.name}; {self.n_queries} queries, {self.n_single_grade} of a single grade, "
            f"{self.n_unjudged_queries} unjudged; {self.n_rows} rows, {self.n_unjudged_rows} unjudged"
        )

    def _table(self) -> ReportTable:
        rows = tuple((name, one.mean, one.micro, one.n_used, one.n_empty) for name, one in self.results.items())
        # only metrics of pairs and rows have a micro average
        kept = [0, 1, *([2] if any(row[2] is not None for row in rows) else []), 3, 4]
        columns = ("metric", "mean", "micro", "queries", "empty")
        return ReportTable(
            "",
            tuple(columns[at] for at in kept),
            tuple(tuple(row[at] for at in kept) for row in rows),
            note=self._counts(),
        )

    def to_frame(self, per_query: bool = False) -> Any:
        """Return the evaluation as a pandas DataFrame."""
        if not per_query:
            return self._table().to_frame().set_index("metric")
        pandas = import_extra("pandas", "frames")
        values = {name: result.values for name, result in self.results.items()}
        index = pandas.Index(self.query_ids, name="query", tupleize_cols=False)  # an id may be a tuple
        return pandas.DataFrame(values, index=index)

    def to_latex(self) -> str:
        """Return the means as a LaTeX table; the rules are those of the package ``booktabs``."""
        return self._table().to_latex()

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        return self._table().html()


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
        False marks a judged row that was not retrieved; see `Judgements.of`.
    n_jobs : int, optional
        Number of threads; all processors by default.

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
        raise InputError("metrics is empty; pass at least one, such as nDCG@10.")
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
