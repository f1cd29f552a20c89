"""The result of a comparison as frozen values, with its tables and its page."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.charts import N_LINES, Curve, IntervalRow, interval_chart, line_chart, plot
from corank.comparison.problem import ComparisonProblem, comparable
from corank.comparison.report import Document, PageBlock, bullets, code, collapsed, facts, paragraph, part
from corank.data.durable.atomic import atomic_file, require_place
from corank.errors import InputError
from corank.metrics import Evaluation, PairedTest
from corank.metrics.conventions import CONVENTIONS
from corank.metrics.significance import few_queries_note
from corank.tables import Cell, ReportTable

# more different scores than this are not grades
_MAX_GRADES = 20

N_WORST = 20
"""Rows of the table of the queries with the lowest values."""


@dataclass(frozen=True)
class DataSummary:
    """Summary of the data."""

    name: str  # file name, or "arrays"
    fingerprint: str  # hash of rows, scores and query ids
    n_rows: int  # n_rows, n_features, n_queries: number of rows, without those of the pool, of columns and of queries
    n_features: int
    n_queries: int
    grades: tuple[tuple[float, int], ...]  # scores, ascending, and their numbers of rows; empty for more than 20
    n_unscored_rows: int  # n_unscored_rows, n_unscored_queries: rows without a score, and queries without a scored row
    n_unscored_queries: int
    n_single_grade_queries: int  # queries whose scored rows all have the same score
    n_pool_rows: int = 0  # number of further rows without scores

    @classmethod
    def of(cls, problem: ComparisonProblem, name: str) -> DataSummary:
        """Count rows, queries and grades."""
        n = problem.n_own
        y, codes = problem.y[:n], problem.codes[:n]
        scored = ~np.isnan(y)
        grades, counts = np.unique(y[scored], return_counts=True)
        n_queries, judged = len(np.unique(codes)), np.unique(codes[scored])
        table = tuple(zip(grades.tolist(), counts.tolist(), strict=True)) if len(grades) <= _MAX_GRADES else ()
        return cls(
            name, problem.fingerprint, n, problem.X.shape[1], n_queries, table, int(np.count_nonzero(~scored)),
            n_queries - len(judged), len(judged) - len(comparable(y[scored], codes[scored])), len(problem.y) - n,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class MethodOutcome:
    """Result of one method on the common folds."""

    name: str  # name, title: identifier, such as "rankrls", and name in reports, such as "RankRLS"
    title: str
    is_label_free: bool  # whether it needs no judgements
    uses_unscored: bool  # whether unjudged rows change the model
    complexity: int  # rank from the simplest method (0) to the most complex
    tuning: str  # how its parameters were chosen
    chosen: tuple[Mapping[str, Any], ...]  # the tuned parameters of each finished outer fold
    evaluation: Evaluation | None  # of the out-of-fold scores; None if a fold is missing
    low: float  # low, high: interval of the mean of the study's metric over queries; NaN without an evaluation
    high: float
    fit_seconds: float  # fit_seconds, predict_seconds: processor time of all outer folds, with tuning
    predict_seconds: float
    n_done: int  # number of finished outer folds
    error: str = ""  # why it failed, or ""

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
    """Another method, compared with the recommended one."""

    name: str
    difference: float  # expected lead of the recommended method; positive means that it is better, also for errors
    p_better: float  # probability that the recommended method is better
    n_needed: int | None  # judged queries that would make a lead on the judged ones probable; None if there is none


@dataclass(frozen=True)
class CurvePoint:
    """One method fitted on a share of the scored training queries; values of queries are averaged over draws."""

    method: str  # name of the method
    fraction: float  # share of the scored queries that kept their scores
    n_queries: int  # their number, averaged over folds and rounded
    mean: float  # mean, low, high: mean of the metric over queries, and its interval
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Result of a comparison."""

    data: DataSummary
    metric: str  # what methods are chosen and ordered by
    metrics: tuple[str, ...]  # all metrics that were evaluated, that one first
    convention: str
    larger_is_better: bool
    level: float  # level of all intervals
    outcomes: tuple[MethodOutcome, ...]  # the best first; those without an evaluation last
    tests: tuple[PairedTest, ...]  # the best against every other complete method, with Holm's correction
    curve: tuple[CurvePoint, ...]  # by method, fraction ascending; empty if not requested or if the budget ended
    best: str  # best, simplest, winner: names of the best mean, of the simplest complete method, of the recommended one
    simplest: str
    winner: str  # "" if no method is complete
    rule: str  # rule, verdict: the rule that chooses the winner, and the conclusion
    verdict: str
    notes: tuple[str, ...]  # such as methods that were left out and why
    folds: int
    seed: int
    versions: Mapping[str, str]
    command: str  # the command that repeats the study
    seconds: float  # wall-clock time of this run, without earlier runs
    model: Path | None = None  # file of the refitted winner; None if it could not be saved
    ranker: Any = None  # the refitted winner
    rivals: tuple[Rival, ...] = ()  # other complete methods but a random order; the least certain case first

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
        return f"<p>{escape(self.verdict)}</p>\n{leaderboard(self).html()}"


def leaderboard(study: Study, *, is_brief: bool = False) -> ReportTable:
    """Return the table of methods, the best first: means, intervals, tests and costs; a brief one fits a terminal."""
    sure = {rival.name: rival.p_better for rival in study.rivals}
    apart = {test.other: test.p_adjusted for test in study.tests}
    others = study.metrics[1:3] if is_brief else study.metrics[1:]
    formats = {"method": "", **dict.fromkeys((study.metric, "low", "high", *others), ".4f")}
    formats |= {"P(worse)": ".2f", "p (Holm)": ".2g", "fit s": ".3g", "remarks": ""}
    rows: list[tuple[Cell, ...]] = []
    for item in study.outcomes:
        means: list[float | None] = [None] * (1 + len(others))
        if item.evaluation is not None:
            means = [item.evaluation[name].mean for name in (study.metric, *others)]
        remarks = (
            (item.name == study.winner, "recommended"),
            (item.name == study.simplest, "simplest"),
            (item.is_label_free, "needs no judgements"),
            (item.uses_unscored, "also learns from unjudged rows"),
            (item.is_cut, f"{item.n_done} of {study.folds} folds within the budget"),
            (bool(item.error), item.error),
        )
        shown = ", ".join(text for holds, text in remarks if holds)
        rest = (sure.get(item.name), apart.get(item.name), item.fit_seconds, shown)
        rows.append((item.title, means[0], item.low, item.high, *means[1:], *rest))
    title, note = "", "P(worse): probability that the method is worse than the recommended one."
    if not is_brief:
        title = "Methods, the best first"
        note = (
            f"Low and high: {study.level:.0%} interval of the mean {study.metric} over queries, out of fold. {note} "
            "p: sign-flip test of the difference from the best mean, with Holm's correction. Times are processor times "
            f"of all {study.folds} folds, with tuning.{few_queries_note(study.tests)}"
        )
    return ReportTable(title, tuple(formats), tuple(rows), note=note, formats=tuple(formats.values()))


def study_html(study: Study) -> str:
    """Return a study as one self-contained HTML page, without scripts, images or fonts to load."""
    return _document(study).html()


def write(study: Study, folder: str | os.PathLike[str], *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write ``report.html``, which is self-contained, and ``report.md``, which has no charts."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{folder} is not a folder; create it before writing a report to it.")
    document = _document(study)
    texts = {place / "report.html": document.html(), place / "report.md": document.markdown()}
    for path in texts:  # check all files before writing the first
        require_place(path, overwrite=overwrite)
    for path in reversed(texts):  # the page last: if it exists, the report is complete
        with atomic_file(path, overwrite=overwrite) as scratch:
            scratch.write_text(texts[path], encoding="utf-8")
    return tuple(texts)


def _document(study: Study) -> Document:
    # file names only; the command shows whole paths
    names = ", ".join(Path(name).name for name in study.data.name.split(", "))
    notes = [bullets(study.notes)] if study.notes else []
    sections = [
        part("data", "The data", _data(study.data)),
        part("leaderboard", "Methods", _methods(study) if study.outcomes else []),
        part("curve", "How many judgements are needed", _curve(study) if study.curve else []),
        part("queries", "Query by query", _queries(study) if study.winner else []),
        part("repeat", "How to repeat the study", _repeat(study)),
    ]
    opening = [paragraph(study.verdict, "verdict"), paragraph(study.rule), *notes]
    return Document(f"Rankers compared on {names}", [*opening, *sections])


def _data(data: DataSummary) -> list[PageBlock]:
    counts = {
        "queries": data.n_queries, "rows": data.n_rows, "features": data.n_features,
        "unjudged rows": data.n_unscored_rows, "queries without a score": data.n_unscored_queries,
        "queries of a single grade": data.n_single_grade_queries, "further unjudged rows": data.n_pool_rows,
    }  # fmt: skip
    pairs = [(name, f"{n:,}") for name, n in counts.items()]
    return [facts([*pairs, *((f"rows of grade {grade:g}", f"{n:,}") for grade, n in data.grades)])]


def _methods(study: Study) -> list[PageBlock]:
    # only evaluations hold a convention that the user defined
    conventions = (outcome.evaluation.convention for outcome in study.outcomes if outcome.evaluation is not None)
    rules = next(conventions, CONVENTIONS.get(study.convention))
    convention = f"Convention {study.convention}." if rules is None else rules.describe()
    direction = "higher is better" if study.larger_is_better else "lower is better"
    opening = paragraph(f"{study.metric}, {direction}. {convention}")
    rows = [
        IntervalRow(item.title, item.evaluation[study.metric].mean, item.low, item.high, item.name == study.winner)
        for item in study.outcomes
        if item.evaluation is not None and math.isfinite(item.evaluation[study.metric].mean)
    ]
    if not rows:
        return [opening, leaderboard(study)]
    described = "; ".join(f"{row.name} {row.mean:.4f} ({row.low:.4f} to {row.high:.4f})" for row in rows)
    caption = (
        f"{study.metric} with {study.level:.0%} intervals; the recommended method is in bold. Overlapping intervals do "
        "not mean that two methods are equal: the paired tests compare them query by query."
    )
    chart = interval_chart(rows, study.metric)
    drawing = plot(chart, "leaderboard", f"{study.metric} of each method", described, caption)
    return [opening, drawing, leaderboard(study)]


def _curve(study: Study) -> list[PageBlock]:
    """Return the metric against the number of scored queries, for the first methods of the leaderboard."""
    known = {
        outcome.title: [p for p in study.curve if p.method == outcome.name and math.isfinite(p.mean)]
        for outcome in study.outcomes
    }
    lines = []
    for title, points in known.items():
        has_band = all(math.isfinite(p.low) for p in points)
        band = tuple((p.low, p.high) for p in points) if has_band else ()
        lines += [Curve(title, tuple((float(p.n_queries), p.mean) for p in points), band)] if points else []
    rows = tuple(
        (title, p.fraction, p.n_queries, p.mean, p.low, p.high) for title, points in known.items() for p in points
    )
    columns = ("method", "share scored", "queries", study.metric, "low", "high")
    table = ReportTable("Learning curves", columns, rows, formats=("", ".3g", "", "", "", ""))
    if not lines:
        return []
    lines = lines[:N_LINES]
    is_log = min(x for line in lines for x, _ in line.points) > 0
    described = "; ".join(f"{line.name}: " + ", ".join(f"{y:.4f} at {x:g}" for x, y in line.points) for line in lines)
    caption = f"{study.metric} by the number of scored training queries, with {study.level:.0%} intervals."
    chart = line_chart(lines, "scored queries", study.metric, is_log=is_log)
    drawing = plot(chart, "curve", "Learning curves", described, caption)
    return [drawing, collapsed("Values of the plot", table)]


def _queries(study: Study) -> list[PageBlock]:
    """Return the queries on which the winner is worst, beside the simplest, or else the best other method."""
    winner, other = study.outcome(study.winner), study.reference
    assert winner.evaluation is not None
    values, sign = study.values(study.winner), 1.0 if study.larger_is_better else -1.0
    blocks: list[PageBlock] = []
    if study.model is not None:
        training = "which needs no judgements" if winner.is_label_free else "fitted on all rows"
        blocks.append(paragraph(f"{winner.title}, {training}, is saved as {study.model}."))
    columns, shown = ["query", winner.title], [values]
    if other is not None:
        gaps = sign * (values - study.values(other.name))
        better, worse, n = int((gaps > 0).sum()), int((gaps < 0).sum()), int(np.isfinite(gaps).sum())
        counts = f"better on {better}, worse on {worse}, equal on {n - better - worse} of {n} queries"
        blocks.append(paragraph(f"{winner.title} against {other.title}: {counts}."))
        columns, shown = [*columns, other.title], [values, study.values(other.name)]
    order = [i for i in (sign * values).argsort(kind="stable").tolist() if math.isfinite(values[i])]
    ids = winner.evaluation.query_ids
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (str(ids[i]), *(float(part[i]) for part in shown)) for i in order[:N_WORST]
    )
    heading = f"Queries on which {winner.title} is worst, by {study.metric}"
    return [*blocks, ReportTable(heading, tuple(columns), rows)]


def _repeat(study: Study) -> list[PageBlock]:
    versions = {"outer folds": str(study.folds), "seed": str(study.seed), "run time": f"{study.seconds:,.0f} s"}
    note = paragraph(f"Fingerprint of rows, scores and query ids: {study.data.fingerprint}", "note")
    blocks: list[PageBlock] = [code(study.command)] if study.command else []
    return [*blocks, facts([*versions.items(), *study.versions.items()]), note]
