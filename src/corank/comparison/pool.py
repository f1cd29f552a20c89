"""
A pool of worker processes with a time limit, per-task memory and recovery from killed tasks.

`concurrent.futures` and loky cannot replace it: a killed task breaks their whole pool, workers outlive a killed parent,
and the peak memory of a task cannot be measured in a process that earlier tasks have used.
"""

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

from corank.comparison.methods import pickled
from corank.comparison.task import CAN_FORK, FoldTask

_SERVE = "from corank.comparison.task import serve; serve()"
# one thread per process, so that processor times of methods are comparable
_ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA", "BLIS")
}
_PATIENCE = 5.0
"""Seconds to wait for a process to exit before it is killed."""


class Worker:
    """
    One process that runs `corank.comparison.task.serve`, started when it is first needed.

    setup: first line of its input.
    log: file for its standard error.
    """

    def __init__(self, setup: bytes, log: Path) -> None:
        self._setup, self._log = setup, log
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def run(self, line: bytes) -> str | None:
        """Run a task; return its error message, "" for success, or None if the worker was stopped."""
        process, setup = self._started()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(setup + line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):  # broken or closed pipe
            answer = b""
        with self._lock:
            was_stopped = self._process is not process
            if not answer or not CAN_FORK:
                self._process = None
        if was_stopped:
            return None
        if not answer:
            self._end(process)
            return f"the worker process exited unexpectedly{self._last_log_line()}."
        if not CAN_FORK:
            self._end(process)
        return str(json.loads(answer)["error"])

    def stop(self) -> None:
        """End the process and its current task."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            self._end(process)

    def _started(self) -> tuple[subprocess.Popen[bytes], bytes]:
        """Return the process, and the input that it needs before the task."""
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
                    start_new_session=True,  # Ctrl-C reaches the parent only, which stops its workers
                )
            return self._process, self._setup

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

    def _last_log_line(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f" ({lines[-1]})" if lines else ""


@dataclass
class WorkerPool:
    """Workers that share one problem."""

    scratch: Path  # folder written by `ComparisonProblem.save`
    methods: dict[str, Any]
    settings: Any
    n: int  # number of workers
    _workers: list[Worker] = field(default_factory=list)

    def __enter__(self) -> Self:
        own = {name: method for name, method in self.methods.items() if method.signature}  # workers have the named ones
        setup = b64encode(pickled((str(self.scratch), own, self.settings))) + b"\n"
        self._workers = [Worker(setup, self.scratch / f"worker-{i}.log") for i in range(self.n)]
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.stop()

    def run(
        self,
        tasks: Iterable[tuple[FoldTask, Path]],
        on_done: Callable[[FoldTask, str], None],
        is_wanted: Callable[[FoldTask], bool],
        deadline: float | None,
    ) -> None:
        """Run tasks in order."""
        waiting, lock = iter(list(tasks)), Lock()
        answers: Queue[tuple[FoldTask, str | None] | None] = Queue()

        def follow(worker: Worker) -> None:
            try:
                while True:
                    with lock:
                        entry = next((item for item in waiting if is_wanted(item[0])), None)
                    if entry is None or (deadline is not None and monotonic() >= deadline):
                        break
                    line = json.dumps({"task": asdict(entry[0]), "path": str(entry[1])}).encode() + b"\n"
                    answers.put((entry[0], worker.run(line)))
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
                    on_done(answer[0], answer[1])
        except BaseException:
            # start no further task and stop the running ones
            with lock:
                waiting = iter(())
            self.__exit__()
            raise
