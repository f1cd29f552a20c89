"""
Worker processes that may crash: they are forked, monitored, and forked again after the input that crashed them.

A worker copies each input to shared memory before reading it, so that the parent knows which input caused a crash or a
time-out.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TypeAlias

import numpy as np

from fuzz.format import PACKAGE, Failure, Format, judge

SECONDS_AN_INPUT = 30.0
MEMORY = 2 << 30
"""Memory that a worker may map in addition to its initial memory."""

LARGEST_INPUT = 4 << 20
KEPT_OF_A_KIND = 5
"""Number of inputs of one kind of failure among which a worker chooses the shortest."""

BROKEN = 70
"""Exit code of a worker if the fuzzer, not corank, has failed."""


@dataclass(frozen=True)
class Input:
    """
    One input and the setting it is read in.

    number: position in its round, which with the seed reproduces the content.
    """

    number: int
    way: int
    content: bytes


Source: TypeAlias = Callable[[int], Iterator[Input]]
"""Yields the inputs of a worker from a position on."""


@dataclass
class Found:
    """A failure, the shortest input that causes it, and how often its kind occurred."""

    failure: Failure
    input: Input
    times: int = 1


@dataclass
class Tally:
    """The result of a round; failures by kind, and the largest memory of a worker."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    failures: dict[str, Found] = field(default_factory=dict)

    def note(self, failure: Failure, given: Input, times: int = 1) -> None:
        """Count a failure."""
        known = self.failures.get(failure.kind)
        if known is None:
            self.failures[failure.kind] = Found(failure, given, times)
            return
        known.times += times
        if len(given.content) < len(known.input.content):
            known.failure, known.input = failure, given


def draw(form: Format, seed: int, number: int) -> Input:
    """Return one input by seed and number."""
    ways = form.ways if form.quick is None or number % 4 == 0 else form.quick
    return Input(number, number % ways, form.generate(Random(f"{form.name} {seed} {number}")))


def run(form: Format, sources: list[Source], stop_at: float = float("inf")) -> Tally:
    """
    Judge inputs, a worker each source, until the sources end or time is up.

    stop_at: the `time.monotonic` at which to stop.
    """
    began = time.monotonic()
    total = Tally()
    root = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    workers: list[_Worker] = []
    try:
        workers += [_Worker(form, source, stop_at, root / str(k)) for k, source in enumerate(sources)]
        while workers:
            time.sleep(0.005)
            workers = [worker for worker in workers if worker.goes_on(total)]
    finally:
        for worker in workers:
            worker.end(signal.SIGKILL)
        shutil.rmtree(root, ignore_errors=True)
    total.seconds = time.monotonic() - began
    return total


class _Board:
    """Report of a worker to its parent: counts, the current input, and its start time."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4096 + LARGEST_INPUT)
        self.counts = np.frombuffer(self._memory, np.int64, 4)  # begun, ended, accepted, refused
        self.at_hand = np.frombuffer(self._memory, np.int64, 3, 32)  # number, way, length
        self.since = np.frombuffer(self._memory, np.float64, 1, 56)
        self.megabytes = np.frombuffer(self._memory, np.float64, 1, 64)

    def begin(self, given: Input) -> None:
        size = len(given.content)
        if size > LARGEST_INPUT:
            raise ValueError(f"an input of {size} bytes; keep them below {LARGEST_INPUT}")
        self._memory[4096 : 4096 + size] = given.content
        self.at_hand[:] = given.number, given.way, size
        self.since[0] = time.monotonic()
        self.counts[0] += 1

    def input(self) -> Input:
        number, way, size = self.at_hand.tolist()
        return Input(number, way, self._memory[4096 : 4096 + size])

    def is_stuck(self) -> bool:
        return bool(self.counts[0] > self.counts[1]) and time.monotonic() - float(self.since[0]) > SECONDS_AN_INPUT


class _Worker:
    """A source of inputs, and the process that currently tests them."""

    def __init__(self, form: Format, source: Source, stop_at: float, folder: Path) -> None:
        self.form, self.source, self.stop_at, self.folder = form, source, stop_at, folder
        (folder / "scratch").mkdir(parents=True)
        self.board = _Board()
        self.pid = self._fork()

    def goes_on(self, total: Tally) -> bool:
        """Check the process, and fork another if it ended early."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        hung = pid == 0 and self.board.is_stuck()
        if pid == 0 and not hung:
            return True
        if hung:
            status = self.end(signal.SIGABRT)  # its stack is written where it stands
        code = os.waitstatus_to_exitcode(status)
        stack = (self.folder / "stderr").read_text(errors="replace")
        if code == BROKEN:
            raise RuntimeError(f"the fuzzer of {self.form.name} failed by itself:\n{stack}")
        self._collect(total)
        total.megabytes = max(total.megabytes, float(self.board.megabytes[0]))
        if code == 0:
            counts = self.board.counts.tolist()
            total.inputs, total.accepted, total.refused = (
                a + b for a, b in zip((total.inputs, total.accepted, total.refused), counts[1:], strict=True)
            )
            return False
        reason = "hang" if hung else signal.Signals(-code).name if code < 0 else f"exit {code}"
        total.note(Failure(f"{reason} {_where(stack)}", _frames(stack)), self.board.input())
        self.board.counts[1] = self.board.counts[0]
        shutil.rmtree(self.folder / "scratch")
        (self.folder / "scratch").mkdir()
        self.pid = self._fork()
        return True

    def end(self, how: signal.Signals) -> int:
        """End the process and return its result."""
        try:
            os.kill(self.pid, how)
        except ProcessLookupError:  # it has ended by itself, and was waited for
            return 0
        return os.waitpid(self.pid, 0)[1]

    def _collect(self, total: Tally) -> None:
        place = self.folder / "failures"
        for line in place.read_text().splitlines() if place.exists() else []:
            known = json.loads(line)
            content = known["content"]
            failure = Failure(**known["failure"])
            if content is None:
                total.failures[failure.kind].times += 1
            else:
                total.note(failure, Input(known["number"], known["way"], content.encode("latin-1")))
        place.unlink(missing_ok=True)

    def _fork(self) -> int:
        sys.stdout.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        code = BROKEN
        try:
            self._work(parent)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _work(self, parent: int) -> None:
        log = os.open(self.folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 2)
        faulthandler.enable()
        _limit_memory()
        sys.setswitchinterval(1e-4)  # threads of tiny pieces would wait for each other
        scratch = self.folder / "scratch"
        tempfile.tempdir = str(scratch)
        counts, kinds = self.board.counts, Counter[str]()
        with (self.folder / "failures").open("a") as failures:
            for given in self.source(int(counts[0])):
                if time.monotonic() > self.stop_at or os.getppid() != parent:
                    break
                self.board.begin(given)
                verdict = judge(self.form, given.content, given.way, scratch)
                counts[1] += 1
                self.board.megabytes[0] = max(self.board.megabytes[0], _peak_megabytes())
                if isinstance(verdict, Failure):
                    kinds[verdict.kind] += 1
                    content = given.content.decode("latin-1") if kinds[verdict.kind] <= KEPT_OF_A_KIND else None
                    line = {"failure": asdict(verdict), "number": given.number, "way": given.way, "content": content}
                    print(json.dumps(line), file=failures, flush=True)
                else:
                    counts[2 if verdict else 3] += 1


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.path.exists("/proc/self/statm"):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _frames(stack: str) -> str:
    """Return the innermost frames of a faulthandler report, or the message of an abort."""
    return " < ".join(re.findall(r'([^"/]+", line \d+ in \S+)', stack)[:6]) or stack[:300]


def _where(stack: str) -> str:
    """Return the innermost function of corank in a faulthandler report."""
    found = re.search(rf'File "{re.escape(PACKAGE)}([^"]+)", line \d+ in (\S+)', stack)
    return f"in {found[1]} {found[2]}" if found else "outside corank"
