"""Which tasks start within the remaining time, with a frozen clock."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from corank.comparison import runner
from corank.comparison.runner import TaskRunner
from corank.comparison.workers import FoldTask, TaskResult

N_FOLDS = 3


class Begun:
    """A pool that notes what it is allowed to begin."""

    def __init__(self):
        self.tasks = []

    def run(self, tasks, on_done, is_wanted, deadline):
        self.tasks += [task for task, _ in tasks if is_wanted(task)]


def took(seconds):
    return TaskResult(np.zeros(2), {}, 0.75 * seconds, 0.25 * seconds)


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(runner, "monotonic", lambda: 100.0)
    methods = {name: SimpleNamespace(cost=1.0) for name in ("slow", "other", "third")}
    results = SimpleNamespace(read=lambda task, method: None, file=lambda task, method: None)
    evaluator = SimpleNamespace(problem=SimpleNamespace(n_folds=N_FOLDS))
    return TaskRunner(evaluator, methods, results, Begun(), ["AP"], 0.95, False)


def begun(made, tasks, deadline):
    made.workers.tasks = []
    assert not made.run(tasks, "", deadline)
    return made.workers.tasks


def test_a_task_starts_only_if_it_is_expected_to_end_in_time(made):
    made.known = {FoldTask("slow", fold): took(4.0) for fold in range(N_FOLDS)} | {FoldTask("other", 0): took(1.0)}
    asked = [FoldTask("other", 1)]
    assert begun(made, asked, 101.1) == asked
    assert begun(made, asked, 100.9) == []
    assert begun(made, asked, None) == asked
    assert begun(made, [FoldTask("third", 0)], 100.1) == [FoldTask("third", 0)]  # nothing is known about it
    assert made.refit_seconds("slow") == pytest.approx(4.0 * 3 / 2)
    made.known[FoldTask("slow", None)] = took(9.0)
    assert made.refit_seconds("slow") == 0.0
