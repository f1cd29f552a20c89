"""The plan of a comparison: every method on every fold, the verdict, the learning curve, the winner refitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from corank.evaluation.compare.extras import (
    MIXES,
    coefficients,
    promised,
    reliability,
    summarise,
    trade_off_points,
    versions,
    worst_queries,
)
from corank.evaluation.compare.fold import Settings
from corank.evaluation.compare.learning import Learning
from corank.evaluation.compare.methods import Method, trade_off
from corank.evaluation.compare.problem import Given, Problem
from corank.evaluation.compare.results import Task, keep_model, model_file
from corank.evaluation.compare.values import CurvePoint, Outcome, PathPoint, QueryValue, Study, TradeOffPoint
from corank.evaluation.compare.verdict import RANDOM, RULE, Verdict, judge, quality
from corank.metrics import parse_metric

LEVEL = 0.95
"""Of all intervals."""

# shares of the budget after which no method, and then nothing at all, shall be learnt; the rest is for what is written
_METHODS_UNTIL, _ALL_UNTIL = 0.75, 0.9


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be compared, and how; see `compare`."""

    given: Given
    problem: Problem
    methods: dict[str, Method]
    settings: Settings
    metrics: tuple[str, ...]
    fractions: tuple[float, ...]
    n_repeats: int
    began: float
    budget: float | None
    name: str
    command: str
    notes: tuple[str, ...]

    @property
    def mixes(self) -> dict[float, Method]:
        """CRR at several mixes, where it is among the methods by name."""
        crr = self.methods.get("crr")
        return {} if crr is None or crr.signature else {mix: trade_off(mix) for mix in MIXES}

    @property
    def learnt(self) -> dict[str, Method]:
        """Everything that may be learnt, by name."""
        return {**self.methods, **{one.name: one for one in self.mixes.values()}}

    def carry_out(self, learning: Learning, folder: Path | None) -> Study:
        """
        Learn everything, and put together what was found.

        folder: where the model is kept; None keeps none.
        """
        metric, seed = self.metrics[0], self.settings.seed
        by_cost = sorted(self.methods, key=lambda name: self.methods[name].cost)
        # what needs no judgements takes no time, and is there whatever the budget
        free = [name for name in by_cost if self.methods[name].is_label_free]
        learning.run([task for name in free for task in learning.of_folds(name)], "label-free methods", None)
        tasks = [task for name in by_cost for task in learning.of_folds(name)]
        learning.run(tasks, f"{len(by_cost)} methods", self._until(_METHODS_UNTIL), self._until(_ALL_UNTIL))
        outcomes = [learning.outcome(name) for name in self.methods]
        outcomes.sort(key=lambda one: (one.evaluation is None, -quality(one, metric), one.complexity))
        verdict = judge(outcomes, metric, LEVEL, seed, self.problem.unit)
        curve: tuple[CurvePoint, ...] = ()
        trade: tuple[TradeOffPoint, ...] = ()
        if verdict.winner:
            drawn = _drawn(outcomes, verdict)
            until = self._until(_ALL_UNTIL, learning.refit_seconds(verdict.winner))
            curve = learning.curve(drawn, self.fractions, self.n_repeats, until) if self.fractions else ()
            trade = self._trade(learning, until)
        model, path, notes = self._refit(learning, verdict.winner, folder)
        columns = self.given.names_of(self.problem.X.shape[1])
        refitted = learning.known.get(Task(verdict.winner, None))
        scores = learning.scores(learning.of_folds(verdict.winner)) if verdict.winner else None
        return Study(
            data=summarise(self.problem, self.name, columns),
            metric=metric,
            metrics=self.metrics,
            convention=self.settings.convention.name,
            larger_is_better=parse_metric(metric).measure.larger_is_better,
            level=LEVEL,
            outcomes=tuple(outcomes),
            tests=verdict.tests,
            curve=curve,
            best=verdict.best,
            simplest=verdict.simplest,
            winner=verdict.winner,
            rule=RULE,
            verdict=verdict.sentence,
            notes=(*self.notes, *_cut(outcomes, self.budget), *self._late(learning.left), *notes),
            folds=self.problem.n_folds,
            seed=seed,
            versions=versions(self.methods.values()),
            command=self.command,
            seconds=monotonic() - self.began,
            model=path,
            ranker=model,
            path=() if refitted is None else tuple(PathPoint(*one) for one in refitted.path),
            reliability=() if scores is None else reliability(self.problem, scores),
            coefficients=coefficients(self.problem, model, columns),
            queries=_by_query(learning, outcomes, verdict),
            trade_off=trade,
            bounds=() if scores is None else promised(self.problem, scores, sum(one.is_complete for one in outcomes)),
        )

    def _until(self, share: float, reserve: float = 0.0) -> float | None:
        return None if self.budget is None else self.began + share * self.budget - reserve

    def _trade(self, learning: Learning, deadline: float | None) -> tuple[TradeOffPoint, ...]:
        """Learn CRR at every mix, and lay ranking beside regression."""
        tasks = {mix: learning.of_folds(method.name) for mix, method in self.mixes.items()}
        learning.run([task for of in tasks.values() for task in of], "ranking against regression", deadline)
        scores = {mix: learning.scores(of) for mix, of in tasks.items()}
        metrics = list(dict.fromkeys((self.metrics[0], "MSE")))
        found = {mix: learning.jury.evaluate(one, metrics) for mix, one in scores.items() if one is not None}
        return trade_off_points(found, self.metrics[0])

    def _late(self, left: set[Task]) -> list[str]:
        """Say what lacks points besides methods that were cut, which `_cut` tells."""
        of_mixes = {method.name for method in self.mixes.values()}
        lacks = {
            "the learning curve": any(task.fraction < 1.0 for task in left),
            "ranking against regression": any(task.method in of_mixes for task in left),
        }
        short = " and ".join(name for name, is_short in lacks.items() if is_short)
        return [f"The budget ended before all points of {short} were learnt; a further run goes on."] if short else []

    def _refit(self, learning: Learning, winner: str, folder: Path | None) -> tuple[Any, Path | None, tuple[str, ...]]:
        """Fit the winner on all rows; return it, its file, and why there is none."""
        if not winner:
            return None, None, ()
        task, method = Task(winner, None), self.methods[winner]
        learning.run([task], "the winner", None)
        if task not in learning.known:
            return None, None, (f"The winner could not be fitted on all rows: {learning.error_of(task)}",)
        if learning.known[task].note:
            return None, None, (f"The winner could not be saved: {learning.known[task].note}",)
        source = model_file(learning.results.file(task, method))
        path = None if folder is None else keep_model(source, folder)
        return learning.results.model(task, method), path, ()


def _cut(outcomes: Sequence[Outcome], budget: float | None) -> list[str]:
    cut = [one.title for one in outcomes if one.is_cut]
    if not cut or budget is None:
        return []
    return [
        f"The budget of {budget:g} s ended before these were done: {'; '.join(cut)}. A further run goes on from what "
        "was learnt; one fold of a method is the least that a run must have time for."
    ]


def _drawn(outcomes: Sequence[Outcome], verdict: Verdict) -> list[str]:
    """Choose methods for the curve: winner, best, simplest, the best that learns, LightGBM, what needs no judgement."""
    complete = [one for one in outcomes if one.evaluation is not None]
    learns = next((one.name for one in complete if not one.is_label_free), "")
    wanted = (verdict.winner, verdict.best, verdict.simplest, learns, "lightgbm")
    return [one.name for one in complete if one.name in wanted or (one.is_label_free and one.name != RANDOM)]


def _by_query(learning: Learning, outcomes: Sequence[Outcome], verdict: Verdict) -> tuple[QueryValue, ...]:
    """List queries by what the winner makes of them, beside the simplest or else the best other method."""
    complete = {one.name: one.evaluation for one in outcomes if one.evaluation is not None}
    others = [name for name in (verdict.simplest, *complete) if name != verdict.winner]
    if not verdict.winner or not others:
        return ()
    winner, base = complete[verdict.winner], complete[others[0]]
    return worst_queries(winner, base, learning.metrics[0], learning.jury.sizes)
