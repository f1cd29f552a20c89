"""Tasks that end their process; also imported by workers."""

from __future__ import annotations

import functools
import os
import signal
import threading
from pathlib import Path

import distributed

from corank.deploy.distributed import DaskEngine


def die(marker, function, *arguments):
    """Kill this worker the first time, or always where there is no marker."""
    if marker is None or not Path(marker).exists():
        if marker is not None:
            Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments)


HELD, GO_ON = threading.Event(), threading.Event()


def hold(function, *arguments):
    """Signal that the task has begun, and continue on a signal or when the worker closes."""
    worker = distributed.get_worker()
    HELD.set()
    while worker.status == distributed.Status.running and not GO_ON.wait(0.05):
        pass
    return function(*arguments)


class Dying(DaskEngine):
    """A cluster of which a worker is killed in the middle of a pass."""

    def __init__(self, client, name, marker=None):
        super().__init__(client, patience=3600)  # a loaded machine takes minutes to start another worker
        self.name, self.marker = name, marker

    def map(self, function, *columns, name):
        if name == self.name:
            function = functools.partial(die, self.marker, function)
        return super().map(function, *columns, name=name)


class Held(DaskEngine):
    """A cluster whose sums are held up until `GO_ON` is set."""

    def map(self, function, *columns, name):
        return super().map(functools.partial(hold, function) if name == "sums" else function, *columns, name=name)
