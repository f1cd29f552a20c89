"""What a comparison learns: tasks that are known already or done now, and what they say of each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.queries import Queries
from corank.errors import InputError
from corank.evaluation.compare.methods import Method
from corank.evaluation.compare.pool import Crew
from corank.evaluation.compare.problem import Problem
from corank.evaluation.compare.results import Result, Results, Task
from corank.evaluation.compare.values import CurvePoint, Outcome
from corank.metrics import Convention, Evaluation, bootstrap_interval, evaluate
from corank.progress import progress


@dataclass(frozen=True, eq=False)
class Jury:
    """
    The judged rows of a problem.

    problem, queries: the rows, and the ids of their queries.
    docids: documents of the rows of the data, or None.
    convention: how metrics are read.
    """

    problem: Problem
    queries: Queries
    docids: Any
    convention: Convention

    @cached_property
    def ids(self) -> NDArray[Any]:
        """What each judged row's query is called."""
        units = self.problem.units[self.problem.judged]
        codes = self.problem.codes[self.problem.judged]
        if not np.array_equal(units, codes):
            return np.array([f"part {unit + 1}" for unit in units])
        return np.asarray(self.queries.ids[codes])

    @cached_property
    def sizes(self) -> dict[Any, tuple[int, int]]:
        """Rows and scored rows of each judged query."""
        found = Queries.of(self.ids, len(self.ids))
        scored = np.bincount(found.codes, weights=~np.isnan(self.problem.y[self.problem.judged]))
        return {query: (int(n), int(m)) for query, n, m in zip(found.ids.tolist(), found.sizes, scored, strict=True)}

    def evaluate(self, scores: Floats, metrics: Sequence[str]) -> Evaluation:
        """Hold scores of the judged rows against their grades."""
        rows = self.problem.judged
        docids = None if self.docids is None else np.asarray(self.docids)[rows]
        return evaluate(self.problem.y[rows], scores, self.ids, metrics, convention=self.convention, docids=docids)

    def require(self, metrics: Sequence[str]) -> None:
        """Raise one sentence, before anything is learnt, where grades do not suit a metric."""
        found = self.evaluate(np.zeros(len(self.problem.judged)), metrics)
        if not found[metrics[0]].n_used:
            raise InputError(f"{metrics[0]} is defined for no judged query; choose another with metrics=.")


Floats = NDArray[np.float64]

# units of the progress bar in a task of cost 1, and the cost of beginning any task
_TICKS, _BEGINNING = 100, 0.3


@dataclass(eq=False)
class Learning:
    """
    Tasks on one problem.

    jury: judges scores of the problem's rows.
    methods: everything that may be learnt, by name.
    results: what is kept.
    crew: who learns.
    metrics: what is evaluated; the first is the study's.
    level: of intervals.
    verbose: whether to show progress.
    known, errors: what tasks gave, or why they failed.
    left: tasks that were asked for, and neither done nor failed when their time was up.
    """

    jury: Jury
    methods: dict[str, Method]
    results: Results
    crew: Crew
    metrics: Sequence[str]
    level: float
    verbose: bool
    known: dict[Task, Result] = field(default_factory=dict)
    errors: dict[Task, str] = field(default_factory=dict)
    left: set[Task] = field(default_factory=set)

    def run(self, tasks: Sequence[Task], what: str, deadline: float | None, finish: float | None = None) -> None:
        """
        Do what is not known yet, in the given order.

        what: for the progress bar.
        deadline: when to give up; a task that took longer in other folds than is left is not begun.
        finish: when the winner has to be refitted too, whoever of those that are or become complete it is; None
            reserves no time for that.
        """
        missing = [task for task in tasks if not self._is_known(task)]
        costs = {task: _BEGINNING + self.methods[task.method].cost * task.fraction for task in missing}
        weights = {task: round(_TICKS * cost) for task, cost in costs.items()}
        with progress(sum(weights.values()), what, self.verbose and bool(missing)) as advance:

            def told(task: Task, error: str) -> None:
                advance(weights[task])
                if error or not self._is_known(task):
                    self.errors[task] = error or "its result could not be read back."

            def wanted(task: Task) -> bool:
                if self.error_of(task):
                    advance(weights[task])
                    return False
                ends = monotonic() + self._expected(task)
                in_time = deadline is None or ends < deadline
                return in_time and (finish is None or ends + self._longest_refit(task.method) < finish)

            if missing:
                files = [(task, self.results.file(task, self.methods[task.method])) for task in missing]
                self.crew.run(files, told, wanted, deadline)
        self.left |= {task for task in missing if not self._is_known(task) and not self.error_of(task)}

    def error_of(self, task: Task) -> str:
        """Say why a task failed, or another fold of the same; empty where none did."""
        alike = [error for other, error in list(self.errors.items()) if replace(other, fold=task.fold) == task]
        return alike[0] if alike else ""

    def _is_known(self, task: Task) -> bool:
        if task not in self.known:
            found = self.results.read(task, self.methods[task.method])
            if found is not None:
                self.known[task] = found
        return task in self.known

    def _expected(self, task: Task) -> float:
        """Seconds that a task may take: what the same method took for another fold."""
        alike = [
            one.fit_seconds + one.predict_seconds
            for other, one in list(self.known.items())
            if other.method == task.method and other.fraction >= task.fraction
        ]
        return max(alike, default=0.0)

    def refit_seconds(self, name: str) -> float:
        """Seconds that the refit of a method may take: what a fold took, times all rows over those it learnt from."""
        task, n = Task(name, None), self.jury.problem.n_folds
        return 0.0 if self._is_known(task) else self._expected(task) * n / (n - 1)

    def _longest_refit(self, name: str) -> float:
        """Seconds that the refit of a method, or of any that is complete and may win, may take."""
        complete = [one for one in self.methods if all(task in self.known for task in self.of_folds(one))]
        return max(self.refit_seconds(one) for one in (name, *complete))

    def of_folds(self, method: str, fraction: float = 1.0, repeat: int = 0) -> list[Task]:
        """List the tasks of a method, one a fold."""
        return [Task(method, fold, fraction, repeat) for fold in range(self.jury.problem.n_folds)]

    def scores(self, tasks: Sequence[Task]) -> Floats | None:
        """Put together the scores of all judged rows; None where a fold is missing."""
        if not all(task in self.known for task in tasks):
            return None
        scores = np.empty(len(self.jury.problem.y))
        for task in tasks:
            assert task.fold is not None
            scores[self.jury.problem.test(task.fold)] = self.known[task].scores
        return scores[self.jury.problem.judged]

    def outcome(self, name: str) -> Outcome:
        """Say what a method did."""
        method, tasks = self.methods[name], self.of_folds(name)
        done = [self.known[task] for task in tasks if task in self.known]
        scores, error = self.scores(tasks), self.error_of(tasks[0])
        evaluation = None if scores is None else self.jury.evaluate(scores, self.metrics)
        low = high = float("nan")
        if evaluation is not None:
            low, high = self.interval(evaluation[self.metrics[0]].values)
        return Outcome(
            name=name,
            title=method.title,
            is_label_free=method.is_label_free,
            uses_unscored=method.uses_unscored,
            complexity=method.complexity,
            tuning=method.tuning,
            chosen=tuple(one.chosen for one in done),
            evaluation=evaluation,
            low=low,
            high=high,
            fit_seconds=sum((one.fit_seconds for one in done), 0.0),
            predict_seconds=sum((one.predict_seconds for one in done), 0.0),
            peak_bytes=max((one.peak_bytes for one in done), default=0),
            n_done=len(done),
            error=error,
            is_cut=evaluation is None and not error,
        )

    def interval(self, values: Floats) -> tuple[float, float]:
        """Return the bootstrap interval of a mean over queries; the same queries are drawn for every method."""
        kept = values[~np.isnan(values)]
        if len(kept) == 0:
            return float("nan"), float("nan")
        return bootstrap_interval(kept, np.random.default_rng([self.results.settings.seed, 2]), self.level)

    def curve(
        self, names: Sequence[str], fractions: Sequence[float], n_repeats: int, deadline: float | None
    ) -> tuple[CurvePoint, ...]:
        """
        Learn from shares of the scored queries.

        names: methods that are complete.
        fractions: shares below 1, ascending; those that leave fewer than two queries are passed over.
        """
        n_scored = [len(np.unique(self.jury.problem.units[rows][~np.isnan(y)])) for rows, y in self._training]
        shares = [share for share in fractions if share * min(n_scored) >= 2]
        learnt = [name for name in names if not self.methods[name].is_label_free]
        points = [(name, share, repeat) for repeat in range(n_repeats) for share in shares for name in learnt]
        self.run([task for point in points for task in self.of_folds(*point)], "learning curve", deadline)
        found = []
        for name in names:
            for share in (*shares, 1.0):
                is_same = self.methods[name].is_label_free or share == 1.0
                repeats = [(1.0, 0)] if is_same else [(share, repeat) for repeat in range(n_repeats)]
                point = self._point(name, share, repeats, round(share * float(np.mean(n_scored))))
                found += [] if point is None else [point]
        return tuple(found)

    def _point(self, name: str, share: float, repeats: list[tuple[float, int]], n: int) -> CurvePoint | None:
        drawn = [self.scores(self.of_folds(name, *repeat)) for repeat in repeats]
        metric = self.metrics[0]
        values = [self.jury.evaluate(scores, [metric])[metric].values for scores in drawn if scores is not None]
        if not values:
            return None
        means = np.mean(values, axis=0)
        kept = means[~np.isnan(means)]
        mean = float(kept.mean()) if len(kept) else float("nan")
        return CurvePoint(name, share, n, mean, *self.interval(means), n_repeats=len(values))

    @property
    def _training(self) -> list[tuple[NDArray[np.int64], Floats]]:
        return [self.jury.problem.train(fold) for fold in range(self.jury.problem.n_folds)]
