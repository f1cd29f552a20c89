"""A worker pool that runs tasks in the process of the test."""

from __future__ import annotations

from time import monotonic

import joblib

from corank.comparison.workers import PROBLEM, error_message, perform


class LocalPool:
    """Runs tasks one after the other in this process; `done` lists those of all pools."""

    done: list

    def __init__(self, scratch, methods, settings, n):
        self.problem, self.methods, self.settings = joblib.load(scratch / PROBLEM, mmap_mode="r"), methods, settings

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def run(self, tasks, on_done, is_wanted, deadline):
        for task, path in tasks:
            if (deadline is not None and monotonic() >= deadline) or not is_wanted(task):
                continue
            try:
                perform(self.problem, self.methods[task.method], self.settings, task, path)
                error = ""
            except Exception as problem:
                error = error_message(problem)
            self.done.append(task)
            on_done(task, error)
