"""Run the tasks of a comparison, reuse stored results, and turn them into outcomes and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.methods import Method
from corank.comparison.problem import ComparisonProblem
from corank.comparison.values import CurvePoint, MethodOutcome
from corank.comparison.workers import FoldTask, ResultStore, TaskResult, WorkerPool
from corank.data.queries import Queries
from corank.errors import InputError
from corank.metrics import Convention, Evaluation, evaluate, sign_flip
from corank.progress import progress

Floats = NDArray[np.float64]

# units of the progress bar per unit of cost, and the cost of starting a task
_UNITS, _START_COST = 100, 0.3


@dataclass(frozen=True, eq=False)
class FoldEvaluator:
    """Evaluates out-of-fold scores."""

    problem: ComparisonProblem  # problem, queries: the rows, and the ids of their queries
    queries: Queries
    docids: Any  # document ids of the rows of the data, or None
    convention: Convention

    @cached_property
    def ids(self) -> NDArray[Any]:
        """Query id of each evaluated row."""
        units, codes = (part[self.problem.judged] for part in (self.problem.units, self.problem.codes))
        if not np.array_equal(units, codes):
            return np.array([f"part {unit + 1}" for unit in units])
        return np.asarray(self.queries.ids[codes])

    def evaluate(self, scores: Floats, metrics: Sequence[str]) -> Evaluation:
        """Evaluate scores of ``problem.judged``."""
        rows = self.problem.judged
        docids = None if self.docids is None else np.asarray(self.docids)[rows]
        return evaluate(self.problem.y[rows], scores, self.ids, metrics, convention=self.convention, docids=docids)

    def require(self, metrics: Sequence[str]) -> None:
        """Raise `InputError`, before any fit, if the grades do not suit a metric."""
        result = self.evaluate(np.zeros(len(self.problem.judged)), metrics)
        if not result[metrics[0]].n_used:
            raise InputError(f"{metrics[0]} is undefined for every judged query; choose another metric with metrics=.")


@dataclass(eq=False)
class TaskRunner:
    """
    Runs tasks on one problem.

    known, errors: results of finished tasks, and messages of failed ones.
    """

    evaluator: FoldEvaluator
    methods: dict[str, Method]  # all methods by name
    results: ResultStore
    workers: WorkerPool  # processes that run tasks
    metrics: Sequence[str]  # the first one is the metric of the study
    level: float  # level of intervals
    verbose: bool
    known: dict[FoldTask, TaskResult] = field(default_factory=dict)
    errors: dict[FoldTask, str] = field(default_factory=dict)

    def run(self, tasks: Sequence[FoldTask], what: str, deadline: float | None) -> bool:
        """Run the tasks without a stored result, in the given order; return whether all were run in time."""
        missing = [task for task in tasks if not self._is_known(task)]
        costs = {task: _START_COST + self.methods[task.method].cost * task.fraction for task in missing}
        weights = {task: round(_UNITS * cost) for task, cost in costs.items()}
        with progress(sum(weights.values()), what, self.verbose and bool(missing)) as advance:

            def on_done(task: FoldTask, error: str) -> None:
                advance(weights[task])
                if error or not self._is_known(task):
                    self.errors[task] = error or "its result could not be read."

            def is_wanted(task: FoldTask) -> bool:
                if self.error_of(task):
                    advance(weights[task])
                    return False
                return deadline is None or monotonic() + self._expected(task) < deadline

            if missing:
                files = [(task, self.results.file(task, self.methods[task.method])) for task in missing]
                self.workers.run(files, on_done, is_wanted, deadline)
        return all(self._is_known(task) or self.error_of(task) for task in missing)

    def error_of(self, task: FoldTask) -> str:
        """Return why this task, or another fold of it, failed; "" if none did."""
        alike = [error for other, error in self.errors.items() if replace(other, fold=task.fold) == task]
        return alike[0] if alike else ""

    def _is_known(self, task: FoldTask) -> bool:
        if task not in self.known:
            result = self.results.read(task, self.methods[task.method])
            if result is not None:
                self.known[task] = result
        return task in self.known

    def _expected(self, task: FoldTask) -> float:
        """Estimate the seconds of a task by the other folds of its method."""
        alike = [
            item.fit_seconds + item.predict_seconds
            for other, item in self.known.items()
            if other.method == task.method and other.fraction >= task.fraction
        ]
        return max(alike, default=0.0)

    def refit_seconds(self, name: str) -> float:
        """Estimate the seconds of refitting a method: those of a fold, scaled to all rows."""
        task, n = FoldTask(name, None), self.evaluator.problem.n_folds
        return 0.0 if self._is_known(task) else self._expected(task) * n / (n - 1)

    def tasks_of(self, method: str, fraction: float = 1.0, repeat: int = 0) -> list[FoldTask]:
        """Return the tasks of a method, one per fold."""
        return [FoldTask(method, fold, fraction, repeat) for fold in range(self.evaluator.problem.n_folds)]

    def scores(self, tasks: Sequence[FoldTask]) -> Floats | None:
        """Return the out-of-fold scores of all evaluated rows; None if a fold is missing."""
        if not all(task in self.known for task in tasks):
            return None
        scores = np.empty(len(self.evaluator.problem.y))
        for task in tasks:
            assert task.fold is not None
            scores[self.evaluator.problem.test(task.fold)] = self.known[task].scores
        return scores[self.evaluator.problem.judged]

    def outcome(self, name: str) -> MethodOutcome:
        """Return the outcome of a method."""
        method, tasks = self.methods[name], self.tasks_of(name)
        done = [self.known[task] for task in tasks if task in self.known]
        scores = self.scores(tasks)
        evaluation = None if scores is None else self.evaluator.evaluate(scores, self.metrics)
        low = high = float("nan")
        if evaluation is not None:
            low, high = self.interval(evaluation[self.metrics[0]].values)
        return MethodOutcome(
            name,
            method.title,
            is_label_free=method.is_label_free,
            uses_unscored=method.uses_unscored,
            complexity=method.complexity,
            tuning=method.tuning,
            chosen=tuple(item.chosen for item in done),
            evaluation=evaluation,
            low=low,
            high=high,
            fit_seconds=sum((item.fit_seconds for item in done), 0.0),
            predict_seconds=sum((item.predict_seconds for item in done), 0.0),
            n_done=len(done),
            error=self.error_of(tasks[0]),
        )

    def interval(self, values: Floats) -> tuple[float, float]:
        """Return the interval of a mean over queries, with the same draws for every method."""
        return sign_flip(values, np.random.default_rng([self.results.settings.seed, 2]), self.level)[:2]

    def curve(
        self, names: Sequence[str], fractions: Sequence[float], n_repeats: int, deadline: float | None
    ) -> tuple[tuple[CurvePoint, ...], bool]:
        """Fit methods on shares of the scored queries; return the points, and whether they are complete."""
        problem = self.evaluator.problem
        training = [problem.train(fold) for fold in range(problem.n_folds)]
        n_scored = [len(np.unique(problem.units[rows][~np.isnan(y)])) for rows, y in training]
        shares = [share for share in fractions if share * min(n_scored) >= 2]
        learnt = [name for name in names if not self.methods[name].is_label_free]
        points = [(name, share, repeat) for repeat in range(n_repeats) for share in shares for name in learnt]
        is_complete = self.run([task for point in points for task in self.tasks_of(*point)], "learning curve", deadline)
        result = []
        for name in names:
            for share in (*shares, 1.0):
                is_same = self.methods[name].is_label_free or share == 1.0
                repeats = [(1.0, 0)] if is_same else [(share, repeat) for repeat in range(n_repeats)]
                result += self._points(name, share, repeats, round(share * float(np.mean(n_scored))))
        return tuple(result), is_complete

    def _points(self, name: str, share: float, repeats: list[tuple[float, int]], n: int) -> list[CurvePoint]:
        drawn = [self.scores(self.tasks_of(name, *repeat)) for repeat in repeats]
        metric = self.metrics[0]
        values = [self.evaluator.evaluate(scores, [metric])[metric].values for scores in drawn if scores is not None]
        if not values:
            return []
        means = np.mean(values, axis=0)
        mean = float(np.nanmean(means)) if not np.isnan(means).all() else float("nan")
        return [CurvePoint(name, share, n, mean, *self.interval(means), n_repeats=len(values))]
