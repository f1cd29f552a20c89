"""A worker pool that runs tasks in the process of the test."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import joblib

from corank.comparison.runner import PROBLEM, error_message, perform


class LocalPool:
    """Runs tasks one after the other in this process; `done` lists those of all pools."""

    done: list

    def __init__(self, methods, settings, n, model):
        self.methods, self.settings, self.model, self.scratch = methods, settings, model, Path()

    def close(self):
        pass

    def run(self, tasks, deadline):
        problem = joblib.load(self.scratch / PROBLEM, mmap_mode="r")
        for task in tasks:
            if deadline is not None and monotonic() >= deadline:
                return
            try:
                result = perform(problem, self.methods[task.method], self.settings, task, self.model)
            except Exception as error:
                result = error_message(error)
            self.done.append(task)
            yield task, result
