"""Carry out a comparison: all methods on all folds, the choice of a winner, the learning curve, the refit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from corank.comparison.analysis import (
    MIXES,
    coefficients,
    error_bounds,
    reliability,
    summarise,
    trade_off_points,
    versions,
    worst_queries,
)
from corank.comparison.fold import Settings
from corank.comparison.methods import Method, trade_off
from corank.comparison.problem import ComparisonProblem, InputRows
from corank.comparison.results import FoldTask, keep_model, model_file
from corank.comparison.runner import TaskRunner
from corank.comparison.values import CurvePoint, MethodOutcome, PathPoint, QueryValue, Study, TradeOffPoint
from corank.comparison.winner import RANDOM, RULE, WinnerChoice, choose_winner, quality
from corank.metrics import parse_metric

LEVEL = 0.95
"""Level of all intervals."""

# shares of the budget for the methods, and for all fits; the rest is for writing results
_METHODS_UNTIL, _ALL_UNTIL = 0.75, 0.9


@dataclass(frozen=True, eq=False)
class ComparisonPlan:
    """The inputs of a comparison; see `compare`."""

    inputs: InputRows
    problem: ComparisonProblem
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
        """CRR at several mixes, if it was requested by name."""
        crr = self.methods.get("crr")
        return {} if crr is None or crr.signature else {mix: trade_off(mix) for mix in MIXES}

    @property
    def all_methods(self) -> dict[str, Method]:
        """The methods and CRR at several mixes, by name."""
        return {**self.methods, **{one.name: one for one in self.mixes.values()}}

    def carry_out(self, runner: TaskRunner, folder: Path | None) -> Study:
        """Run everything and return the study."""
        metric, seed = self.metrics[0], self.settings.seed
        by_cost = sorted(self.methods, key=lambda name: self.methods[name].cost)
        # label-free methods take almost no time and are run whatever the budget
        free = [name for name in by_cost if self.methods[name].is_label_free]
        runner.run([task for name in free for task in runner.tasks_of(name)], "label-free methods", None)
        tasks = [task for name in by_cost for task in runner.tasks_of(name)]
        runner.run(tasks, f"{len(by_cost)} methods", self._until(_METHODS_UNTIL), self._until(_ALL_UNTIL))
        outcomes = [runner.outcome(name) for name in self.methods]
        outcomes.sort(key=lambda one: (one.evaluation is None, -quality(one, metric), one.complexity))
        choice = choose_winner(outcomes, metric, LEVEL, seed, self.problem.unit)
        curve: tuple[CurvePoint, ...] = ()
        trade: tuple[TradeOffPoint, ...] = ()
        if choice.winner:
            shown = _curve_methods(outcomes, choice)
            until = self._until(_ALL_UNTIL, runner.refit_seconds(choice.winner))
            curve = runner.curve(shown, self.fractions, self.n_repeats, until) if self.fractions else ()
            trade = self._trade(runner, until)
        model, path, notes = self._refit(runner, choice.winner, folder)
        columns = self.inputs.column_names(self.problem.X.shape[1])
        refitted = runner.known.get(FoldTask(choice.winner, None))
        scores = runner.scores(runner.tasks_of(choice.winner)) if choice.winner else None
        return Study(
            data=summarise(self.problem, self.name, columns),
            metric=metric,
            metrics=self.metrics,
            convention=self.settings.convention.name,
            larger_is_better=parse_metric(metric).measure.larger_is_better,
            level=LEVEL,
            outcomes=tuple(outcomes),
            tests=choice.tests,
            curve=curve,
            best=choice.best,
            simplest=choice.simplest,
            winner=choice.winner,
            rule=RULE,
            verdict=choice.sentence,
            notes=(*self.notes, *_cut(outcomes, self.budget), *self._late(runner.left), *notes),
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
            queries=_by_query(runner, outcomes, choice),
            trade_off=trade,
            bounds=()
            if scores is None
            else error_bounds(self.problem, scores, sum(one.is_complete for one in outcomes)),
            rivals=choice.rivals,
        )

    def _until(self, share: float, reserve: float = 0.0) -> float | None:
        return None if self.budget is None else self.began + share * self.budget - reserve

    def _trade(self, runner: TaskRunner, deadline: float | None) -> tuple[TradeOffPoint, ...]:
        """Fit CRR at every mix and return its ranking metric and squared error."""
        tasks = {mix: runner.tasks_of(method.name) for mix, method in self.mixes.items()}
        runner.run([task for of in tasks.values() for task in of], "ranking and regression", deadline)
        scores = {mix: runner.scores(of) for mix, of in tasks.items()}
        metrics = list(dict.fromkeys((self.metrics[0], "MSE")))
        found = {mix: runner.evaluator.evaluate(one, metrics) for mix, one in scores.items() if one is not None}
        return trade_off_points(found, self.metrics[0])

    def _late(self, left: set[FoldTask]) -> list[str]:
        """Return a note about points that the budget left out; `_cut` reports methods."""
        of_mixes = {method.name for method in self.mixes.values()}
        lacks = {
            "the learning curve": any(task.fraction < 1.0 for task in left),
            "the trade-off of ranking and regression": any(task.method in of_mixes for task in left),
        }
        short = " and ".join(name for name, is_short in lacks.items() if is_short)
        return [f"The budget ended before all points of {short} were computed; run again to continue."] if short else []

    def _refit(self, runner: TaskRunner, winner: str, folder: Path | None) -> tuple[Any, Path | None, tuple[str, ...]]:
        """Fit the winner on all rows; return the model, its file, and notes about failures."""
        if not winner:
            return None, None, ()
        task, method = FoldTask(winner, None), self.methods[winner]
        runner.run([task], "the winner", None)
        if task not in runner.known:
            return None, None, (f"The winner could not be fitted on all rows: {runner.error_of(task)}",)
        if runner.known[task].note:
            return None, None, (f"The winner could not be saved: {runner.known[task].note}",)
        source = model_file(runner.results.file(task, method))
        path = None if folder is None else keep_model(source, folder)
        return runner.results.model(task, method), path, ()


def _cut(outcomes: Sequence[MethodOutcome], budget: float | None) -> list[str]:
    cut = [one.title for one in outcomes if one.is_cut]
    if not cut or budget is None:
        return []
    return [
        f"The budget of {budget:g} s ended before these methods were finished: {'; '.join(cut)}. Run again to "
        "continue; a run needs time for at least one fold of a method."
    ]


def _curve_methods(outcomes: Sequence[MethodOutcome], choice: WinnerChoice) -> list[str]:
    """Choose methods for the curve: winner, best, simplest, best learnt, LightGBM and the label-free ones."""
    complete = [one for one in outcomes if one.evaluation is not None]
    learns = next((one.name for one in complete if not one.is_label_free), "")
    wanted = (choice.winner, choice.best, choice.simplest, learns, "lightgbm")
    return [one.name for one in complete if one.name in wanted or (one.is_label_free and one.name != RANDOM)]


def _by_query(runner: TaskRunner, outcomes: Sequence[MethodOutcome], choice: WinnerChoice) -> tuple[QueryValue, ...]:
    """Return the values of each query for the winner and for the simplest or else the best other method."""
    complete = {one.name: one.evaluation for one in outcomes if one.evaluation is not None}
    others = [name for name in (choice.simplest, *complete) if name != choice.winner]
    if not choice.winner or not others:
        return ()
    winner, base = complete[choice.winner], complete[others[0]]
    return worst_queries(winner, base, runner.metrics[0], runner.evaluator.sizes)
