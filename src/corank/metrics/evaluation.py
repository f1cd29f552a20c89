"""evaluate, evaluate_run: metrics of rows or of a run under one convention, with values per query and counts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.collection import Dataset
from corank.data.durable.text import Source
from corank.data.io.trec import Qrels, Run, join_run, qrels_of, read_qrels, read_run, run_of
from corank.data.queries import Queries
from corank.errors import InputError, import_extra
from corank.metrics.conventions import Convention, find_convention
from corank.metrics.judgements import BoundMetric, Judgements, MetricResult
from corank.metrics.names import parse_metric
from corank.tables import ReportTable


class Holes(NamedTuple):
    """
    What unjudged documents of a run leave open: values per query, shape (n_queries,).

    judged: Judged@k, the share of judged documents among the first k. condensed: Value of the list without unjudged
    documents. low, high: Smallest and largest value if all unjudged documents among the first k are irrelevant, or have
    the highest grade of all judgements; those below k count as irrelevant. For P, RR, DCG, RBP and Success, which only
    grow with grades, no grades lead beyond.
    """

    judged: NDArray[np.float64]
    condensed: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def means(self) -> tuple[float, float, float, float]:
        """Return the means over the queries with a value."""
        return tuple(float(np.nanmean(item)) if (~np.isnan(item)).any() else float("nan") for item in self)  # type: ignore[return-value]


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
    rows: Of a run: y, scores, qid, docids and the mask of retrieved rows, from which `holes` are computed; else None.
    """

    convention: Convention
    query_ids: NDArray[Any]
    results: Mapping[str, MetricResult]
    n_rows: int
    n_unjudged_rows: int
    n_unjudged_queries: int
    n_single_grade: int
    rows: tuple[Any, ...] | None = field(default=None, repr=False)

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

    def holes(self, name: str) -> Holes | None:
        """Return what unjudged documents of a run leave open in a metric; None for rows that are not a run."""
        return None if self.rows is None else _holes(self[name].metric, self.convention, *self.rows)

    def _table(self) -> ReportTable:
        rows = tuple((name, item.mean, item.micro, item.n_used, item.n_empty) for name, item in self.results.items())
        # only metrics of pairs and rows have a micro average
        kept = [0, 1, *([2] if any(row[2] is not None for row in rows) else []), 3, 4]
        columns = ("metric", "mean", "micro", "queries", "empty")
        return ReportTable(
            "",
            tuple(columns[i] for i in kept),
            tuple(tuple(row[i] for i in kept) for row in rows),
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
        rows=None if retrieved is None else (y, scores, qid, docids, retrieved),
    )


def _holes(
    metric: BoundMetric, rules: Convention, y: Any, scores: Any, qid: Any, docids: Any, retrieved: NDArray[np.bool_]
) -> Holes:
    grades, mask = np.asarray(y, dtype=np.float64), np.asarray(retrieved)
    is_open = np.isnan(grades) & mask
    queries = Queries.of(qid, len(grades))
    order = np.lexsort([-np.asarray(scores, dtype=np.float64), ~mask, queries.codes])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - queries.starts[:-1][queries.codes[order]]
    top = mask if metric.cut is None else mask & (rank < metric.cut)
    n_top, n_judged = (np.bincount(queries.codes[x], minlength=len(queries)) for x in (top, top & ~is_open))
    judged = np.divide(n_judged, n_top, out=np.full(len(queries), np.nan), where=n_top > 0)

    def values(grades: NDArray[np.float64], rules: Convention) -> NDArray[np.float64]:
        return metric.result(Judgements.of(grades, scores, qid, rules, docids=docids, retrieved=mask)).values

    condensed = values(grades, replace(rules, unjudged="drop"))
    if not is_open.any():
        return Holes(judged, condensed, condensed, condensed)
    lowest, highest = 0.0, max(float(np.nanmax(grades)), rules.relevant_from)
    cases = [values(np.where(is_open, np.where(top, grade, lowest), grades), rules) for grade in (lowest, highest)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a query without a value in every case
        low, high = np.nanmin(cases, axis=0), np.nanmax(cases, axis=0)
    # a query that nobody judged is not in the mean
    skipped = np.bincount(queries.codes[~np.isnan(grades)], minlength=len(queries)) == 0
    low[skipped] = high[skipped] = np.nan
    return Holes(judged, condensed, low, high)


def evaluate_run(
    qrels: Source | Qrels | Dataset | Any,
    run: Source | Run | Any,
    metrics: str | Sequence[str] = ("nDCG@10", "AP"),
    *,
    convention: str | Convention = "corank",
    n_jobs: int | None = None,
) -> Evaluation:
    """
    Evaluate a run against judgements, query by query.

    As in trec_eval, only queries in both files are evaluated, and judged documents that were not retrieved count for
    recall and ideal orders. Ids of queries and documents are compared as strings.

    Parameters
    ----------
    qrels : path, Qrels, Dataset or object of another library
        Judged documents: a TREC qrels file, the result of `corank.data.io.trec.read_qrels`, a collection with
        document ids, or what `corank.data.qrels_of` accepts: a dictionary, a DataFrame, ranx's `Qrels`.
    run : path, Run or object of another library
        Retrieved documents: a TREC run file, the result of `corank.data.io.trec.read_run`, or what
        `corank.data.run_of` accepts.
    metrics : str or sequence of str
        Names such as ``nDCG@10``; see `corank.metrics.names.parse_metric`.
    convention : str or Convention
        One of `corank.metrics.conventions.CONVENTIONS`, such as "trec_eval", or your own.
    n_jobs : int, optional
        Number of threads; all processors by default.

    Returns
    -------
    Evaluation
        Values per query, means and counts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "qrels").write_text("q1 0 a 1\\nq1 0 b 0\\n")
    >>> _ = (folder / "run").write_text("q1 Q0 b 1 0.9 mine\\nq1 Q0 a 2 0.5 mine\\n")
    >>> evaluate_run(folder / "qrels", folder / "run", "RR", convention="trec_eval").means
    {'RR': 0.5}
    """
    run_name = "the run" if isinstance(run, Run) else _name(run)
    qrels_name = "the qrels" if isinstance(qrels, Qrels | Dataset) else _name(qrels)
    retrieved, truth = as_run(run), as_qrels(qrels)
    if truth.docids is None or truth.qid is None:
        missing = "documents" if truth.docids is None else "queries"
        raise InputError(
            f"{qrels_name} has no ids of {missing}, so {run_name} cannot be matched; use evaluate with scores instead."
        )
    names = np.array([str(query) for query in truth.qid.tolist()], dtype=object)
    in_truth, in_run = set(names.tolist()), set(retrieved.qid.tolist())
    if not in_truth & in_run:
        raise InputError(f"{run_name} and {qrels_name} have no query in common; check that their query ids agree.")
    kept = np.array([query in in_truth for query in retrieved.qid.tolist()])
    judged = ~np.isnan(truth.y) & np.array([query in in_run for query in names.tolist()])
    joined = join_run(
        Run(retrieved.qid[kept], retrieved.docids[kept], retrieved.scores[kept], retrieved.tag),
        Qrels(names[judged], truth.docids[judged], truth.y[judged]),
    )
    n_missed = len(joined.missed_y)
    return evaluate(
        np.concatenate([joined.y, joined.missed_y]),
        np.concatenate([joined.scores, np.zeros(n_missed)]),
        np.concatenate([joined.qid, joined.missed_qid]),
        metrics,
        convention=convention,
        docids=np.concatenate([joined.docids, np.full(n_missed, "", dtype=object)]),
        retrieved=np.arange(len(joined.y) + n_missed) < len(joined.y),
        n_jobs=n_jobs,
    )


def _name(source: Any) -> str:
    return f"the {type(source).__name__}" if _is_object(source) else str(source)


def as_run(source: Any) -> Run:
    """Return a run: as it is, of an object of another library, or read from a file."""
    if isinstance(source, Run):
        return source
    return run_of(source) if _is_object(source) else read_run(source)


def as_qrels(source: Any) -> Qrels | Dataset:
    """Return judgements in the same way."""
    if isinstance(source, Qrels | Dataset):
        return source
    return qrels_of(source) if _is_object(source) else read_qrels(source)


def _is_object(source: Any) -> bool:
    return isinstance(source, Mapping) or hasattr(source, "columns") or hasattr(source, "to_dict")
