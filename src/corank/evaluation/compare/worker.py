"""
A process that does tasks for a comparison, each in a process of its own that is forked from it.

What is imported and compiled is so once; a task's time and memory are its own, and ending it harms nothing else. It
reads lines from standard input and answers each by a line. At the end of input, also where the comparison was killed,
it ends what it is doing, and itself. Where a system cannot fork, or its libraries would not bear it (macOS), it does
one task and ends.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

CAN_FORK = hasattr(os, "fork") and sys.platform != "darwin"


def serve() -> None:
    """Answer tasks until the input ends."""
    answers = os.dup(1)
    # what a library prints is no answer
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    hello = sys.stdin.buffer.readline()
    if not hello:
        return
    # made by the process that started this one, and handed over by its pipe
    work = Work(*pickle.loads(b64decode(hello)))
    for line in iter(sys.stdin.buffer.readline, b""):
        answer = work.answer(json.loads(line))
        os.write(answers, json.dumps(answer).encode() + b"\n")
        if not CAN_FORK:
            return


class Work:
    """
    The problem and its methods.

    folder: what `Problem.save` wrote.
    methods, settings: see `corank.evaluation.compare.methods` and `corank.evaluation.compare.fold`.
    """

    def __init__(self, folder: str, methods: dict[str, Any], settings: Any) -> None:
        from corank.evaluation.compare.problem import Problem

        self.problem = Problem.open(Path(folder))
        self.methods, self.settings = methods, settings
        self.warm: set[str] = set()

    def answer(self, given: dict[str, Any]) -> dict[str, str]:
        """Do a task; return ``error``, empty where there was none."""
        from corank.evaluation.compare.results import Task
        from corank.evaluation.compare.task import warm_up

        path, task = Path(given["path"]), Task(**given["task"])
        method = self.methods[task.method]
        if method.warms_up and method.name not in self.warm:
            self.warm.add(method.name)
            warm_up(self.problem, method, self.settings)
        return {"error": self._forked(task, path) if CAN_FORK else self._tried(task, path)}

    def _tried(self, task: Any, path: Path) -> str:
        from corank.evaluation.compare.task import fault, perform

        try:
            perform(self.problem, self.methods[task.method], self.settings, task, path)
        except Exception as error:
            return fault(error)
        return ""

    def _forked(self, task: Any, path: Path) -> str:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                os.write(writing, self._tried(task, path).encode()[:60_000])
            finally:
                os._exit(0)
        os.close(writing)
        said = b""
        while True:
            # no task comes before this one is answered: input is its end
            ready, _, _ = select.select([0, reading], [], [])
            if 0 in ready:
                os.kill(child, signal.SIGKILL)
                os._exit(0)
            piece = os.read(reading, 65_536)
            if not piece:
                break
            said += piece
        os.close(reading)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            return f"its process was ended by {name}" + (", perhaps for want of memory." if name == "SIGKILL" else ".")
        return said.decode()
