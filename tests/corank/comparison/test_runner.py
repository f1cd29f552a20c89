"""Which tasks start within the remaining time, with a frozen clock."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from corank.comparison import runner
from corank.comparison.runner import TaskRunner
from corank.comparison.task import FoldTask, TaskResult

N_FOLDS = 3


class Begun:
    """A pool that notes what it is allowed to begin."""

    def __init__(self):
        self.tasks = []

    def run(self, tasks, on_done, is_wanted, deadline):
        self.tasks += [task for task, _ in tasks if is_wanted(task)]


def took(seconds):
    return TaskResult(np.zeros(2), {}, 0.75 * seconds, 0.25 * seconds, 0)


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(runner, "monotonic", lambda: 100.0)
    methods = {name: SimpleNamespace(cost=1.0) for name in ("slow", "other", "third")}
    results = SimpleNamespace(read=lambda task, method: None, file=lambda task, method: None)
    evaluator = SimpleNamespace(problem=SimpleNamespace(n_folds=N_FOLDS))
    return TaskRunner(evaluator, methods, results, Begun(), ["AP"], 0.95, False)


def begun(made, tasks, *times):
    made.workers.tasks, made.left = [], set()
    made.run(tasks, "", *times)
    assert made.left == set(tasks)
    return made.workers.tasks


def test_time_for_the_refit_of_possible_winners_is_reserved(made):
    made.known = {FoldTask("slow", fold): took(4.0) for fold in range(N_FOLDS)} | {FoldTask("other", 0): took(1.0)}
    asked = [FoldTask("other", 1)]
    assert made.refit_seconds("slow") == pytest.approx(4.0 * 3 / 2)
    # one second for the fold, six for the refit of what is complete
    assert begun(made, asked, 102.0, 107.1) == asked
    assert begun(made, asked, 102.0, 106.9) == []
    assert begun(made, asked, 102.0) == asked
    assert begun(made, asked, 100.9, 200.0) == []


def test_no_time_is_reserved_for_methods_that_cannot_win_or_are_refitted(made):
    asked = [FoldTask("other", 1)]
    made.known = {FoldTask("slow", 0): took(4.0), FoldTask("other", 0): took(1.0)}
    assert begun(made, asked, None, 102.6) == asked  # a fold and its own refit: 1 + 1.5
    assert begun(made, asked, None, 102.4) == []
    made.known |= {FoldTask("slow", fold): took(4.0) for fold in range(N_FOLDS)} | {FoldTask("slow", None): took(9.0)}
    assert begun(made, asked, None, 102.6) == asked
