"""The result of a comparison as frozen values: Study, its parts and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.comparison.problem import ComparisonProblem, comparable
from corank.metrics import Evaluation, PairedTest
from corank.metrics.significance import few_queries_note
from corank.tables import Cell, ReportTable

# more different scores than this are not grades
_MAX_GRADES = 20


@dataclass(frozen=True)
class DataSummary:
    """
    Summary of the data.

    grades: Each score and its number of rows, ascending; empty for more than 20 different scores.
    n_single_grade_queries, n_one_row_queries: Queries whose scored rows all have the same score, and queries of one
        row.
    """

    name: str  # file name, or "arrays"
    fingerprint: str  # hash of rows, scores and query ids
    n_rows: int  # n_rows, n_features, n_queries: number of rows, without those of the pool, of columns and of queries
    n_features: int
    n_queries: int
    grades: tuple[tuple[float, int], ...]
    n_unscored_rows: int  # n_unscored_rows, n_unscored_queries: rows without a score, and queries without a scored row
    n_unscored_queries: int
    n_single_grade_queries: int
    n_one_row_queries: int
    n_duplicated_rows: int  # rows with the same features as an earlier row of their query
    constant_columns: tuple[str, ...]  # names, or 1-based numbers, of constant columns
    n_pool_rows: int = 0  # n_pool_rows, n_pool_queries: further rows without scores, and their queries
    n_pool_queries: int = 0

    @classmethod
    def of(cls, problem: ComparisonProblem, name: str, columns: Sequence[str]) -> DataSummary:
        """Count rows, queries, grades and peculiarities of the data."""
        n = problem.n_own
        X, y, codes = problem.X[:n], problem.y[:n], problem.codes[:n]
        scored = ~np.isnan(y)
        grades, counts = np.unique(y[scored], return_counts=True)
        queries, sizes = np.unique(codes, return_counts=True)
        judged = np.unique(codes[scored])
        constant = _constant(X)
        return cls(
            name=name,
            fingerprint=problem.fingerprint,
            n_rows=n,
            n_features=X.shape[1],
            n_queries=len(queries),
            grades=tuple(zip(grades.tolist(), counts.tolist(), strict=True)) if len(grades) <= _MAX_GRADES else (),
            n_unscored_rows=int(np.count_nonzero(~scored)),
            n_unscored_queries=len(queries) - len(judged),
            n_single_grade_queries=len(judged) - len(comparable(y[scored], codes[scored])),
            n_one_row_queries=int(np.count_nonzero(sizes == 1)),
            n_duplicated_rows=_duplicated(X, codes),
            constant_columns=tuple(name for name, same in zip(columns, constant, strict=True) if same),
            n_pool_rows=len(problem.y) - n,
            n_pool_queries=len(np.unique(problem.codes[n:])),
        )


@dataclass(frozen=True, eq=False)
class MethodOutcome:
    """
    Result of one method on the common folds.

    name: Identifier, such as "rankrls".
    title: Name in reports, such as "RankRLS".
    is_label_free: Whether it needs no judgements.
    uses_unscored: Whether unjudged rows change the model.
    complexity: Rank from the simplest method (0) to the most complex.
    tuning: Description of how its parameters were chosen, or "".
    chosen: Tuned parameters, one mapping for each finished outer fold.
    evaluation: Evaluation of the out-of-fold scores; None if a fold is missing.
    low, high: Interval (`corank.metrics.sign_flip`) of the mean of the study's metric over queries; NaN without an
        evaluation.
    fit_seconds, predict_seconds: Processor time of all outer folds, with tuning, without compilation.
    peak_bytes: Largest increase of the memory of a process by fitting one fold.
    n_done: Number of finished outer folds.
    error: Why it failed, or "".
    is_cut: Whether the budget ended before all its folds were finished.
    """

    name: str
    title: str
    is_label_free: bool
    uses_unscored: bool
    complexity: int
    tuning: str
    chosen: tuple[Mapping[str, Any], ...]
    evaluation: Evaluation | None
    low: float
    high: float
    fit_seconds: float
    predict_seconds: float
    peak_bytes: int
    n_done: int
    error: str = ""
    is_cut: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all folds are finished."""
        return self.evaluation is not None


@dataclass(frozen=True)
class Rival:
    """
    Another method, compared with the recommended one.

    difference: Expected lead of the recommended method over it, in the study's metric; positive means that the
        recommended one is better, also for errors.
    n_needed: Number of judged queries at which `p_better` would reach 0.95 if the difference stays as it is; None if
        the recommended method does not lead on the judged queries.
    """

    name: str  # name of the other method
    difference: float
    p_better: float  # probability that the recommended method is better
    p_equivalent: float  # probability that the two differ by less than the margin of practical equivalence
    n_needed: int | None


@dataclass(frozen=True)
class CurvePoint:
    """
    One method fitted on a share of the scored training queries.

    mean, low, high: Mean of the metric over queries and its interval; values of queries are averaged over repeats.
    """

    method: str  # name of the method
    fraction: float  # share of the scored queries that kept their scores
    n_queries: int  # their number, averaged over folds and rounded
    mean: float
    low: float
    high: float
    n_repeats: int  # number of random draws of the queries


@dataclass(frozen=True)
class QueryValue:
    """Values of one query for the winner and for its reference: the simplest method, or else the best other one."""

    query: str  # query id
    n_rows: int  # n_rows, n_scored: number of rows, and of scored rows
    n_scored: int
    value: float  # value, base: the study's metric for the winner and for the reference
    base: float


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """
    Result of a comparison.

    data: What was learnt from.
    metric: What methods are chosen and ordered by.
    metrics: All metrics that were evaluated, that one first.
    convention: How their names are read.
    larger_is_better: Direction of `metric`.
    level: Level of all intervals.
    outcomes: Methods, the best first; those without an evaluation last.
    tests: The best against every other complete method, with Holm's correction; then the simplest against every other,
        with its own correction.
    curve: By method, fraction ascending; empty if not requested or if the budget ended.
    best, simplest, winner: Names of the method with the best mean, of the simplest complete one, and of the recommended
        one; "" if no method is complete.
    rule: The rule that chooses the winner.
    verdict: The conclusion in a sentence.
    notes: Notes, such as methods that were left out and why.
    folds, seed: Number of outer folds, and random seed.
    versions: Versions of corank and its main dependencies.
    command: The command that repeats the study.
    seconds: Wall-clock time of this run, without earlier runs.
    model: File of the refitted winner, if it was saved.
    ranker: The refitted winner; None if it could not be saved and loaded.
    queries: Every judged query, the winner's worst first.
    rivals: Every other complete method but a random order, compared with the winner; the least certain case first.
    """

    data: DataSummary
    metric: str
    metrics: tuple[str, ...]
    convention: str
    larger_is_better: bool
    level: float
    outcomes: tuple[MethodOutcome, ...]
    tests: tuple[PairedTest, ...]
    curve: tuple[CurvePoint, ...]
    best: str
    simplest: str
    winner: str
    rule: str
    verdict: str
    notes: tuple[str, ...]
    folds: int
    seed: int
    versions: Mapping[str, str]
    command: str
    seconds: float
    model: Path | None = None
    ranker: Any = None
    queries: tuple[QueryValue, ...] = ()
    rivals: tuple[Rival, ...] = ()

    def __repr__(self) -> str:
        methods = ", ".join(outcome.name for outcome in self.outcomes)
        return f"<Study of {self.data.name} by {self.metric}: {methods}; winner {self.winner or 'none'}>"

    def outcome(self, name: str) -> MethodOutcome:
        """Return the outcome of one method."""
        return next(item for item in self.outcomes if item.name == name)

    @property
    def reference(self) -> MethodOutcome | None:
        """Method that the winner is compared with: the simplest, or else the best other; None if alone."""
        if self.simplest and self.simplest != self.winner:
            return self.outcome(self.simplest)
        return next((item for item in self.outcomes if item.is_complete and item.name != self.winner), None)

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the values of the study's metric for each query of one complete method."""
        evaluation = self.outcome(name).evaluation
        if evaluation is None:
            raise KeyError(f"{name} has no evaluation")
        return evaluation[self.metric].values

    def to_frame(self) -> Any:
        """Return the methods, the best first, as a pandas DataFrame."""
        return leaderboard(self).to_frame()

    def to_latex(self) -> str:
        """Return the methods, the best first, as a LaTeX table; the rules are those of the package ``booktabs``."""
        return leaderboard(self).to_latex()

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        return f"<p>{escape(self.verdict)}</p>\n{leaderboard(self).html()}"


def leaderboard(study: Study) -> ReportTable:
    """Return the table of methods, the best first, with means, intervals, tests against the best, and costs."""
    apart, sure = _against_best(study), {rival.name: rival.p_better for rival in study.rivals}
    costs = {"fit s": ".3g", "predict s": ".3g", "MB": ".0f"}
    formats = {"method": "", **dict.fromkeys((study.metric, "low", "high", *study.metrics[1:]), ".4f")}
    formats |= {"P(worse)": ".2f", "minus best": "+.4f", "p (Holm)": ".2g", **costs, "remarks": ""}
    rows: list[tuple[Cell, ...]] = []
    for outcome in study.outcomes:
        means: list[float | None] = [None] * len(study.metrics)
        if outcome.evaluation is not None:
            means = [outcome.evaluation[name].mean for name in study.metrics]
        spent = (outcome.fit_seconds, outcome.predict_seconds, outcome.peak_bytes / 1e6)
        rest = (sure.get(outcome.name), *apart.get(outcome.name, (None, None)), *spent, remarks(outcome, study))
        rows.append((outcome.title, means[0], outcome.low, outcome.high, *means[1:], *rest))
    note = (
        f"Low and high: {study.level:.0%} interval of the mean {study.metric} over queries, out of fold. "
        "P(worse): probability that the method is worse than the recommended one (Bayesian bootstrap over queries). "
        "Minus best, p: difference from the best mean, and its sign-flip test with Holm's correction. Times "
        f"are processor times of all {study.folds} folds, with tuning; MB is the peak memory of fitting."
    ) + few_queries_note(study.tests)
    return ReportTable(
        "Methods, the best first", tuple(formats), tuple(rows), note=note, formats=tuple(formats.values())
    )


def paired_table(study: Study) -> ReportTable:
    """Return the table of paired tests."""
    formats = {"methods": "", **dict.fromkeys(("difference", "low", "high"), "+.4f"), "p": ".2g", "p (Holm)": ".2g"}
    formats |= dict.fromkeys(("queries", "higher", "lower"), "")
    titles = {outcome.name: outcome.title for outcome in study.outcomes}
    rows = tuple(
        (
            f"{titles[test.other]} minus {titles[test.base]}", test.difference, test.low, test.high, test.p_value,
            test.p_adjusted, test.n_queries, test.n_higher, test.n_lower,
        )
        for test in study.tests
    )  # fmt: skip
    note = (
        f"{study.metric}, paired by query: mean difference, its {study.level:.0%} interval, p-value of the "
        "sign-flip test without and with Holm's correction, and the number of queries on which the first method is "
        "higher and lower."
    ) + few_queries_note(study.tests)
    return ReportTable("Paired tests", tuple(formats), rows, note=note, formats=tuple(formats.values()))


def remarks(one: MethodOutcome, study: Study) -> str:
    """Return remarks about a method, or ""."""
    words = [
        (one.name == study.winner, "recommended"),
        (one.name == study.simplest, "simplest"),
        (one.is_label_free, "needs no judgements"),
        (one.uses_unscored, "also learns from unjudged rows"),
        (one.is_cut, f"{one.n_done} of {study.folds} folds within the budget"),
    ]
    return ", ".join([text for holds, text in words if holds] + ([one.error] if one.error else []))


def _against_best(study: Study) -> dict[str, tuple[float, float]]:
    """Return the difference of each method from the best and its adjusted p-value; tests of the best come first."""
    result: dict[str, tuple[float, float]] = {}
    for test in study.tests:
        if study.best in (test.base, test.other):
            name, sign = (test.other, 1.0) if test.base == study.best else (test.base, -1.0)
            result.setdefault(name, (sign * test.difference, test.p_adjusted))
    return result


def _constant(X: Any) -> NDArray[np.bool_]:
    """Return whether each column is constant."""
    if sparse.issparse(X):
        low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(low == high)


def _duplicated(X: Any, codes: NDArray[np.int64]) -> int:
    """Count the rows that are equal to an earlier row of their query."""
    seen: set[tuple[int, bytes]] = set()
    if sparse.issparse(X):
        ends = X.indptr
        parts = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(ends))
        return len(codes) - len(seen.union(zip(codes.tolist(), parts, strict=True)))
    # adding 0 turns −0 into 0, whose bytes differ
    return len(codes) - len(
        seen.union((code, (row + 0.0).tobytes()) for code, row in zip(codes.tolist(), X, strict=True))
    )
