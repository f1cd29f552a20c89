"""What the tests of comparisons share: a small problem, and a crew that works where it can be watched."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from corank.comparing import study
from corank.comparing.problem import Problem
from corank.comparing.work import fault, perform
from corank.data.make import make_ranking


class LocalCrew:
    """Does tasks in this process, one after the other; `done` lists those of all crews."""

    done: list

    def __init__(self, scratch, methods, settings, n):
        self.problem, self.methods, self.settings = Problem.open(Path(scratch)), methods, settings

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def run(self, tasks, told, wanted, deadline):
        for task, path in tasks:
            if (deadline is not None and monotonic() >= deadline) or not wanted(task):
                continue
            try:
                perform(self.problem, self.methods[task.method], self.settings, task, path)
                error = ""
            except Exception as problem:
                error = fault(problem)
            self.done.append(task)
            told(task, error)


@pytest.fixture
def local(monkeypatch):
    """Comparisons are made in this process; the fixture is what they have done."""
    LocalCrew.done = []
    monkeypatch.setattr(study, "Crew", LocalCrew)
    return LocalCrew.done


@pytest.fixture(scope="session")
def made():
    """24 queries of 8 rows, 6 features."""
    return make_ranking(24, 8, n_latent=3, features_per_view=3, random_state=1)
