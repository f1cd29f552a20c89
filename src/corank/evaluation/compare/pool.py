"""The processes that learn: tasks are handed to whichever is idle, until all are done or time is up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Lock, Thread
from time import monotonic
from typing import Any, Self

from corank.evaluation.compare.methods import pickled
from corank.evaluation.compare.results import Task
from corank.evaluation.compare.task import CAN_FORK

_SERVE = "from corank.evaluation.compare.task import serve; serve()"
# one thread each: processes are what runs side by side, and times can be compared
_ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA", "BLIS")
}
_PATIENCE = 5.0
"""Seconds that a process is given to end by itself."""


class Worker:
    """
    One process of `corank.evaluation.compare.task`, started when it is needed.

    hello: its first line.
    log: where its complaints go.
    """

    def __init__(self, hello: bytes, log: Path) -> None:
        self._hello, self._log = hello, log
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def run(self, line: bytes) -> str | None:
        """Hand over a task; return its error, empty where there was none, or None where the worker was stopped."""
        process, hello = self._started()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(hello + line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):  # a pipe that broke or was closed
            answer = b""
        with self._lock:
            was_stopped = self._process is not process
            if not answer or not CAN_FORK:
                self._process = None
        if was_stopped:
            return None
        if not answer:
            self._end(process)
            return f"the process that learns ended by itself{self._last_words()}."
        if not CAN_FORK:
            self._end(process)
        return str(json.loads(answer)["error"])

    def stop(self) -> None:
        """End the process and whatever it is doing."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            self._end(process)

    def _started(self) -> tuple[subprocess.Popen[bytes], bytes]:
        """Return the process, and what it has to be told first."""
        with self._lock:
            if self._process is not None:
                return self._process, b""
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-W", "ignore", "-c", _SERVE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
                    start_new_session=True,  # Ctrl-C is for the comparison, which ends its processes
                )
            return self._process, self._hello

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            assert process.stdin is not None
            process.stdin.close()
        except OSError:
            pass
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f" ({lines[-1]})" if lines else ""


@dataclass
class Crew:
    """
    Some workers on one problem.

    scratch: a folder that holds what `Problem.save` wrote.
    methods, settings: what workers know.
    n: number of workers.
    """

    scratch: Path
    methods: dict[str, Any]
    settings: Any
    n: int
    _workers: list[Worker] = field(default_factory=list)

    def __enter__(self) -> Self:
        hello = b64encode(pickled((str(self.scratch), self.methods, self.settings))) + b"\n"
        self._workers = [Worker(hello, self.scratch / f"worker-{at}.log") for at in range(self.n)]
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.stop()

    def run(
        self,
        tasks: Iterable[tuple[Task, Path]],
        told: Callable[[Task, str], None],
        wanted: Callable[[Task], bool],
        deadline: float | None,
    ) -> None:
        """
        Do tasks, in their order.

        tasks: each with the place of its result.
        told: is told of each task that was done, and its error.
        wanted: is asked before a task is begun.
        deadline: when what is not done is given up, by `time.monotonic`.
        """
        waiting, lock = iter(list(tasks)), Lock()
        answers: Queue[tuple[Task, str | None] | None] = Queue()

        def follow(worker: Worker) -> None:
            try:
                while True:
                    with lock:
                        given = next((one for one in waiting if wanted(one[0])), None)
                    if given is None or (deadline is not None and monotonic() >= deadline):
                        break
                    line = json.dumps({"task": asdict(given[0]), "path": str(given[1])}).encode() + b"\n"
                    answers.put((given[0], worker.run(line)))
            finally:
                answers.put(None)

        threads = [Thread(target=follow, args=(worker,), daemon=True) for worker in self._workers]
        for thread in threads:
            thread.start()
        n_busy, limit = len(threads), deadline
        try:
            while n_busy:
                try:
                    answer = answers.get(timeout=None if limit is None else max(0.0, limit - monotonic()))
                except Empty:
                    limit = None
                    self.__exit__()
                    continue
                if answer is None:
                    n_busy -= 1
                elif answer[1] is not None:
                    told(answer[0], answer[1])
        except BaseException:
            # nothing new is begun, and what is under way ends
            with lock:
                waiting = iter(())
            self.__exit__()
            raise
