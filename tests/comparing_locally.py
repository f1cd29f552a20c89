"""A crew of comparisons that works in the process of the test, where it can be watched."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

from corank.evaluation.compare.problem import Problem
from corank.evaluation.compare.task import fault, perform


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
