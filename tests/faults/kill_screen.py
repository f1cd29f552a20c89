"""Kill `corank screen` (see `faults.sessions`): ``python tests/faults/kill_screen.py --kills 200``."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import ClassVar

from corank.cli import app
from corank_lab.records.records import read_records
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry
from faults.sessions import Session, main

FILL = [f"word{k}" for k in range(30)]


class Screen(Session):
    name = "screen"
    keys = (
        "r", "n dose", "n", "l", "note one", "r", "u", "r", "1", "n", "note two", "change w0 not", "n", "u", "n",
        "duplicate w0", "n", "n", "r",
    )  # fmt: skip
    words: ClassVar = {
        "r": "relevant", "n": "not", "n dose": "not", "1": "not", "l": "later", "u": "undo", "note one": "note",
        "note two": "note", "change w0 not": "not", "duplicate w0": "duplicate",
    }  # fmt: skip
    silent = frozenset(["note one", "note two", "change w0 not"])
    mark = "record "

    def __init__(self, folder: Path) -> None:
        """Forty records of which every fifth is about tin."""
        super().__init__(folder)
        self.path = folder / "works.csv"
        rng = random.Random(0)
        rows = [f"w{at},{'tin ore' if at % 5 == 0 else 'gold'} {' '.join(rng.sample(FILL, 6))}" for at in range(40)]
        self.path.write_text("\n".join(["id,title", *rows]) + "\n")

    def run(self, keys: list[str]) -> None:
        typed = self.folder / "typed"
        typed.write_text("".join(f"{key}\n" for key in keys))
        with typed.open() as sys.stdin, (self.folder / "shown").open("w") as sys.stdout:
            app(["screen", str(self.path), "--known", "w0", "--reason", "dose"], standalone_mode=False)

    def all_lines(self) -> list[ScreeningEntry]:
        return self.stored(ScreeningEntry)

    def lines(self) -> list[ScreeningEntry]:
        return [line for line in self.all_lines() if line.by != "known"]

    def fault_of_lines(self, lines: list[ScreeningEntry]) -> str:
        records = read_records(self.path)
        answers = ScreeningAnswers(records)
        for line in self.all_lines():
            number = records.number[line.id]
            if line.action in ("relevant", "not", "duplicate") and line.by != "history" and number in answers.relevant:
                return f"{line.id} is answered twice"
            if not (line.time and line.judge == "me" and line.version and line.records and line.keys and line.title):
                return f"{line} lacks a part"
            answers.add(line)
        return "" if not answers.unmatched else f"{answers.unmatched} name no record"


if __name__ == "__main__":
    main(Screen)
