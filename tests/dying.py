"""Tasks that end the process they run in; imported by workers, too."""

from __future__ import annotations

import functools
import os
import signal
import time
from pathlib import Path

from corank.distributed import Dask


def die(marker, function, *arguments):
    """Kill this worker the first time, or always where there is no marker."""
    if marker is None or not Path(marker).exists():
        if marker is not None:
            Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments)


def wait(seconds, function, *arguments):
    time.sleep(seconds)
    return function(*arguments)


class Dying(Dask):
    """A cluster of which a worker is killed in the middle of a pass."""

    def __init__(self, client, name, marker=None, **options):
        super().__init__(client, **options)
        self.name, self.marker = name, marker

    def map(self, function, *columns, name):
        if name == self.name:
            function = functools.partial(die, self.marker, function)
        return super().map(function, *columns, name=name)


class Slow(Dask):
    """A cluster whose sums take a while."""

    def map(self, function, *columns, name):
        return super().map(functools.partial(wait, 1.0, function) if name == "sums" else function, *columns, name=name)
