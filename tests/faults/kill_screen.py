"""
Kill `corank screen` at many instants: no answer may be lost, none doubled.

``python tests/faults/kill_screen.py --kills 200``. A child reads keys from a file and is killed before the k-th call
that writes anything, or at a random time. Every answer after which it had shown another record must be in the journal;
the journal must be a beginning of what was typed; and a second run that is given the rest must end with each answer
once. One line of JSON; exit code 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corank.cli import app
from corank.data.records import read_records
from corank.screening.answers import Answers
from corank.screening.journal import Journal, Line
from faults.kill import Events, ended, events_of, forked

KEYS = ("r", "n", "n", "l", "note one", "r", "u", "r", "n", "n", "note two", "n", "u", "n", "r", "n", "n", "r")
WORDS = {"r": "relevant", "n": "not", "l": "later", "u": "undo", "note one": "note", "note two": "note"}


def works(folder: Path) -> Path:
    """Forty records of which every fifth is about tin."""
    path = folder / "works.csv"
    rng = random.Random(0)
    rows = [f"w{at},{'tin ore' if at % 5 == 0 else 'gold'} {' '.join(rng.sample(FILL, 6))}" for at in range(40)]
    path.write_text("\n".join(["id,title", *rows]) + "\n")
    return path


FILL = [f"word{k}" for k in range(30)]


def screen(path: Path, keys: list[str]) -> None:
    """Run the verb with keys as standard input, and keep what it shows."""
    typed, shown = path.parent / "typed", path.parent / "shown"
    typed.write_text("".join(f"{key}\n" for key in keys))
    with typed.open() as sys.stdin, shown.open("w") as sys.stdout:
        app(["screen", str(path), "--known", "w0"], standalone_mode=False)


def fault_of(path: Path, keys: list[str], lines: list[Line], n_shown: int) -> str:
    """What is wrong with a journal after so many records were shown."""
    actions = [line.action for line in lines if line.by != "known"]
    if actions != [WORDS[key] for key in keys[: len(actions)]]:
        return f"the journal has {actions}"
    # a record shows when all before it is on the disk; a note shows nothing
    acknowledged = [at for at, key in enumerate(keys, 1) if not key.startswith("note")][: max(n_shown - 1, 0)]
    if acknowledged and len(actions) < acknowledged[-1]:
        return f"{n_shown} records were shown, but {len(actions)} answers are on the disk"
    records, answers = read_records(path), Answers(read_records(path))
    for line in lines:
        if line.action in ("relevant", "not") and records.number[line.id] in answers.relevant:
            return f"{line.id} is answered twice"
        answers.take(line)
    return ""


def lines_of(path: Path) -> list[Line]:
    return next((lines for _, lines in Journal.read_all(path)), [])


def kill(kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill the verb at events spread over a run, and at random times."""
    root = Path(tempfile.mkdtemp())
    path, keys = works(root), list(KEYS)
    began = time.perf_counter()
    code = ended(forked(lambda: screen(path, keys)))
    seconds = time.perf_counter() - began
    assert code == 0, "an undisturbed run fails"
    assert not fault_of(path, keys, lines_of(path), len(KEYS) - 1)

    def afresh() -> None:
        shutil.rmtree(Journal.place(path, "me").parent, ignore_errors=True)
        (root / "shown").unlink(missing_ok=True)

    afresh()
    n_events = len(events_of(lambda: screen(path, keys), root))
    by_event = kills - kills // 4
    instants: list[int | None] = [at * n_events // by_event for at in range(by_event)]
    instants += [None] * (kills // 4)
    outcome: dict[str, Any] = {"writer": "screen", "events": n_events, "instants": len(instants)}
    outcome |= {"killed": 0, "answers": 0, "faults": []}
    for last in instants:
        afresh()

        def work(last: int | None = last) -> None:
            if last is not None:
                sys.setprofile(Events(last))
            screen(path, keys)

        child = forked(work)
        if last is None:
            time.sleep(rng.random() * seconds)
            os.kill(child, signal.SIGKILL)
        code = ended(child)
        outcome["killed"] += code == -signal.SIGKILL
        shown = root / "shown"
        lines = lines_of(path)
        n_shown = (
            shown.read_text().count("\nrecord ") + shown.read_text().startswith("record ") if shown.exists() else 0
        )
        fault = fault_of(path, keys, lines, n_shown)
        done = sum(line.by != "known" for line in lines)
        outcome["answers"] += done
        if not fault and ended(forked(lambda done=done: screen(path, keys[done:]))):
            fault = "the next run fails"
        fault = fault or fault_of(path, keys, lines_of(path), 0)
        if not fault and sum(line.by != "known" for line in lines_of(path)) != len(keys):
            fault = "the next run lost answers"
        if fault:
            outcome["faults"].append(f"event {last}: {fault}")
    shutil.rmtree(root)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    outcome = kill(given.kills, random.Random(given.seed))
    print(json.dumps(outcome), flush=True)
    sys.exit(bool(outcome["faults"]))


if __name__ == "__main__":
    main()
