"""Kill `corank prefer` (see `faults.sessions`): ``python tests/faults/kill_prefer.py --kills 200``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import ClassVar

from corank.cli import app
from corank_lab.preferences.answers import PreferenceEntry
from faults.sessions import Session, main


class Ask(Session):
    name = "prefer"
    keys = ("l", "r", "e", "s", "l", "u", "r", "r", "l", "u", "s", "l", "r", "r")
    words: ClassVar = {"l": "left", "r": "right", "e": "equal", "s": "skip", "u": "undo"}
    mark = "question "

    def __init__(self, folder: Path) -> None:
        """Nine items with one feature."""
        super().__init__(folder)
        self.path = folder / "things.csv"
        rows = [f"thing{at},{at * at % 7}" for at in range(9)]
        self.path.write_text("\n".join(["name,size", *rows]) + "\n")

    def run(self, keys: list[str]) -> None:
        """Keys are typed ahead into a terminal; the output is written to a file."""
        ours, theirs = os.openpty()
        os.write(ours, "".join((*keys, "q")).encode())
        with open(theirs) as sys.stdin, (self.folder / "shown").open("w") as sys.stdout:
            app(["prefer", str(self.path), "--repeat", "0.3"], standalone_mode=False)

    def lines(self) -> list[PreferenceEntry]:
        return self.stored(PreferenceEntry)

    def fault_of_lines(self, lines: list[PreferenceEntry]) -> str:
        kept: list[PreferenceEntry] = []
        for line in lines:
            if line.action == "undo":
                if (line.left, line.right) != (kept[-1].left, kept[-1].right):
                    return f"{line} takes back what was not answered last"
                kept.pop()
                continue
            pair = {line.left, line.right}
            if line.by != "repeat" and any(pair == {one.left, one.right} for one in kept):
                return f"{line} was asked before"
            kept.append(line)
        return ""


if __name__ == "__main__":
    main(Ask)
