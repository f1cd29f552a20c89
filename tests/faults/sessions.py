"""
Kill a session at many instants: no answer may be lost or repeated.

A child reads keys and is killed before the k-th call that writes anything, or at a random time. Every answer after
which it had shown another question must be in the journal; the journal must be a prefix of the keys; and a second run
with the other keys must end with each answer once. Prints one line of JSON; the exit code is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from corank_lab.database.backends import open_database
from corank_lab.database.journal import NAME, read_entry
from faults.kill import Events, ended, events_of, forked, watch


class Session(ABC):
    """
    A command that records answers.

    folder: an empty folder to work in.
    """

    name: str
    keys: tuple[str, ...]
    """Keys to type."""
    words: ClassVar[dict[str, str]]
    """Action of each key in the journal."""
    silent: frozenset[str] = frozenset()
    """Keys after which no new question appears."""
    mark: str
    """Start of the line that shows a question."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def run(self, keys: list[str]) -> None:
        """Run the command with these keys, and write its output to the file `shown`."""

    @abstractmethod
    def lines(self) -> list[Any]:
        """Entries of the journal that come from keys."""

    def stored(self, kind: type[Any]) -> list[Any]:
        """Entries of the judge in the database; none if it was killed before there was a project."""
        if not (self.folder / NAME).exists():
            return []
        with open_database(self.folder / NAME) as store:
            projects = store.projects()
            assert len(projects) < 2
            found = store.answers(projects[0].id) if projects else []
            return [read_entry(kind, one.entry, "") for one in found]

    def fault_of_lines(self, lines: list[Any]) -> str:
        """Further errors of a journal."""
        return ""

    def fault(self, n_shown: int) -> str:
        """Error of the journal after `n_shown` questions were shown; empty if there is none."""
        lines = self.lines()
        actions = [line.action for line in lines]
        if actions != [self.words[key] for key in self.keys[: len(actions)]]:
            return f"the journal has {actions}"
        # a question appears when all answers before it are on the disk
        loud = [at for at, key in enumerate(self.keys, 1) if key not in self.silent]
        acknowledged = loud[: max(n_shown - 1, 0)]
        if acknowledged and len(actions) < acknowledged[-1]:
            return f"{n_shown} questions were shown, but {len(actions)} answers are on the disk"
        return self.fault_of_lines(lines)

    def n_shown(self) -> int:
        shown = self.folder / "shown"
        return sum(line.startswith(self.mark) for line in shown.read_text().splitlines()) if shown.exists() else 0

    def afresh(self) -> None:
        for path in self.folder.glob(f"{NAME}*"):
            path.unlink()
        (self.folder / "shown").unlink(missing_ok=True)


def run_here(session: Session, keys: list[str]) -> None:
    """Run the command in this process."""
    streams = sys.stdin, sys.stdout
    try:
        session.run(keys)
    finally:
        sys.stdin, sys.stdout = streams


def kill(session: Session, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill a command at events spread over a run, and at random times."""
    keys = list(session.keys)
    run_here(session, keys)  # imports and compiles what every child needs
    session.afresh()
    began = time.perf_counter()
    code = ended(forked(lambda: session.run(keys)))
    seconds = time.perf_counter() - began
    assert code == 0, "an undisturbed run fails"
    assert not session.fault(session.n_shown())
    session.afresh()
    n_events = len(events_of(lambda: session.run(keys), session.folder))
    by_event = kills - kills // 4
    instants: list[int | None] = [at * n_events // by_event for at in range(by_event)]
    instants += [None] * (kills // 4)
    outcome: dict[str, Any] = {"writer": session.name, "events": n_events, "instants": len(instants)}
    outcome |= {"killed": 0, "answers": 0, "faults": []}
    for last in instants:
        session.afresh()

        def work(last: int | None = last) -> None:
            if last is not None:
                watch(Events(last))
            session.run(keys)

        child = forked(work)
        if last is None:
            time.sleep(rng.random() * seconds)
            os.kill(child, signal.SIGKILL)
        outcome["killed"] += ended(child) == -signal.SIGKILL
        fault, done = session.fault(session.n_shown()), len(session.lines())
        outcome["answers"] += done
        if not fault and ended(forked(lambda done=done: session.run(keys[done:]))):
            fault = "the next run fails"
        fault = fault or session.fault(0)
        if not fault and len(session.lines()) != len(keys):
            fault = "the next run lost answers"
        if fault:
            outcome["faults"].append(f"event {last}: {fault}")
    return outcome


def main(make: type[Session]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = kill(make(Path(folder)), given.kills, random.Random(given.seed))
    print(json.dumps(outcome), flush=True)
    sys.exit(bool(outcome["faults"]))
