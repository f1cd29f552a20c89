"""The result of a comparison as frozen values: Study, its parts and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    n_single_grade_queries: Queries whose scored rows all have the same score.
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
    n_pool_rows: int = 0  # number of further rows without scores

    @classmethod
    def of(cls, problem: ComparisonProblem, name: str) -> DataSummary:
        """Count rows, queries and grades."""
        n = problem.n_own
        y, codes = problem.y[:n], problem.codes[:n]
        scored = ~np.isnan(y)
        grades, counts = np.unique(y[scored], return_counts=True)
        n_queries, judged = len(np.unique(codes)), np.unique(codes[scored])
        return cls(
            name=name,
            fingerprint=problem.fingerprint,
            n_rows=n,
            n_features=problem.X.shape[1],
            n_queries=n_queries,
            grades=tuple(zip(grades.tolist(), counts.tolist(), strict=True)) if len(grades) <= _MAX_GRADES else (),
            n_unscored_rows=int(np.count_nonzero(~scored)),
            n_unscored_queries=n_queries - len(judged),
            n_single_grade_queries=len(judged) - len(comparable(y[scored], codes[scored])),
            n_pool_rows=len(problem.y) - n,
        )


@dataclass(frozen=True, eq=False)
class MethodOutcome:
    """
    Result of one method on the common folds.

    name, title: Identifier, such as "rankrls", and name in reports, such as "RankRLS".
    complexity: Rank from the simplest method (0) to the most complex.
    tuning, chosen: How its parameters were chosen, and the tuned parameters of each finished outer fold.
    evaluation: Evaluation of the out-of-fold scores; None if a fold is missing.
    low, high: Interval (`corank.metrics.sign_flip`) of the mean of the study's metric over queries; NaN without an
        evaluation.
    fit_seconds, predict_seconds: Processor time of all outer folds, with tuning, without compilation.
    n_done: Number of finished outer folds.
    error: Why it failed, or "".
    """

    name: str
    title: str
    is_label_free: bool  # whether it needs no judgements
    uses_unscored: bool  # whether unjudged rows change the model
    complexity: int
    tuning: str
    chosen: tuple[Mapping[str, Any], ...]
    evaluation: Evaluation | None
    low: float
    high: float
    fit_seconds: float
    predict_seconds: float
    n_done: int
    error: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether all folds are finished."""
        return self.evaluation is not None

    @property
    def is_cut(self) -> bool:
        """Whether the budget ended before all its folds were finished."""
        return self.evaluation is None and not self.error


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


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """
    Result of a comparison.

    metric, metrics: What methods are chosen and ordered by, and all metrics that were evaluated, that one first.
    level: Level of all intervals.
    outcomes: Methods, the best first; those without an evaluation last.
    tests: The best against every other complete method, with Holm's correction.
    curve: By method, fraction ascending; empty if not requested or if the budget ended.
    best, simplest, winner: Names of the method with the best mean, of the simplest complete one, and of the recommended
        one; "" if no method is complete.
    rule, verdict: The rule that chooses the winner, and the conclusion.
    notes: Notes, such as methods that were left out and why.
    seconds: Wall-clock time of this run, without earlier runs.
    model, ranker: File of the refitted winner, and the winner; None if it could not be saved and loaded.
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
    command: str  # the command that repeats the study
    seconds: float
    model: Path | None = None
    ranker: Any = None
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
    sure = {rival.name: rival.p_better for rival in study.rivals}
    apart = {test.other: (test.difference, test.p_adjusted) for test in study.tests}
    formats = {"method": "", **dict.fromkeys((study.metric, "low", "high", *study.metrics[1:]), ".4f")}
    formats |= {"P(worse)": ".2f", "minus best": "+.4f", "p (Holm)": ".2g", "fit s": ".3g", "predict s": ".3g"}
    rows: list[tuple[Cell, ...]] = []
    for outcome in study.outcomes:
        means: list[float | None] = [None] * len(study.metrics)
        if outcome.evaluation is not None:
            means = [outcome.evaluation[name].mean for name in study.metrics]
        spent = (outcome.fit_seconds, outcome.predict_seconds)
        rest = (sure.get(outcome.name), *apart.get(outcome.name, (None, None)), *spent, remarks(outcome, study))
        rows.append((outcome.title, means[0], outcome.low, outcome.high, *means[1:], *rest))
    note = (
        f"Low and high: {study.level:.0%} interval of the mean {study.metric} over queries, out of fold. "
        "P(worse): probability that the method is worse than the recommended one. Minus best, p: difference from the "
        "best mean, and its sign-flip test with Holm's correction. Times are processor times of all "
        f"{study.folds} folds, with tuning."
    ) + few_queries_note(study.tests)
    return ReportTable(
        "Methods, the best first", (*formats, "remarks"), tuple(rows), note=note, formats=(*formats.values(), "")
    )


def remarks(outcome: MethodOutcome, study: Study) -> str:
    """Return remarks about a method, or ""."""
    words = [
        (outcome.name == study.winner, "recommended"),
        (outcome.name == study.simplest, "simplest"),
        (outcome.is_label_free, "needs no judgements"),
        (outcome.uses_unscored, "also learns from unjudged rows"),
        (outcome.is_cut, f"{outcome.n_done} of {study.folds} folds within the budget"),
        (bool(outcome.error), outcome.error),
    ]
    return ", ".join(text for holds, text in words if holds)
