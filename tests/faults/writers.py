"""
What a writer is, and the files that writers read: two versions of everything.

A writer is called with the folder to write in, the version (0 or 1) and whether to overwrite. Folders are compared byte
for byte: all writers give the same bytes for the same rows. `faults.commands` and `faults.functions` list all writers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import corank
from corank.data.io.items import read_items
from corank.data.synthetic import make_ranking
from corank_lab.preferences import PreferenceJournal, PreferenceSession
from corank_lab.records.records import read_records
from corank_lab.screening.screening import Screening
from corank_lab.screening.team import ScreeningJournal
from helpers.files import files

PROBLEMS = [make_ranking(n, 8, features_per_view=5, random_state=n) for n in (6, 9)]

Tree = dict[str, bytes]

_SOURCES = tempfile.TemporaryDirectory()  # removed when Python ends


@dataclass(frozen=True)
class Writer:
    """
    One writer.

    name: the command or function.
    target: name of its output in the folder.
    write: called with the target, the version, and whether to overwrite.
    in_parts: whether it writes several files, each atomic by itself.
    replaces: whether it replaces an existing file without being asked to.
    is_slow: whether it draws plots, so that it is killed less often.
    """

    name: str
    target: str
    write: Callable[[Path, int, bool], None]
    in_parts: bool = False
    replaces: bool = False
    is_slow: bool = False

    def __call__(self, folder: Path, version: int, overwrite: bool = True) -> None:
        self.write(folder / self.target, version, overwrite)

    def allows(self, found: Tree, old: Tree, new: Tree) -> bool:
        """Whether this is allowed after the writer was killed."""
        if not self.in_parts:
            return found in (old, new)
        found, log = {**found}, "results.jsonl"  # it grows by lines; an incomplete last line is ignored
        if log in new:
            grown = found.pop(log, b"")
            lines = grown[: grown.rfind(b"\n") + 1]
            if not (new[log].startswith(grown) and lines.startswith(old.get(log, b""))):
                return False
        is_known = all(text in (old.get(name), new.get(name)) for name, text in found.items())
        return is_known and old.keys() <= found.keys() | {log}


def tree(folder: Path) -> Tree:
    """Every file below a folder, except those in scratch folders."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = {path.relative_to(folder): path.read_bytes() for path in files}
    return {str(name): content for name, content in found.items() if not name.parts[0].endswith(".part")}


@cache
def sources() -> Path:
    folder = Path(_SOURCES.name)
    for version, made in enumerate(PROBLEMS):
        corank.data.write_letor(folder / f"{version}.txt", made.X, made.y, made.qid)
        corank.save(model(version), folder / f"{version}.safetensors")
        (folder / f"{version}.scores").write_text("".join(f"{row % 5}\n" for row in range(len(made.y))))
        _more_sources(folder / str(version), version)
    for place in (folder, folder / "0", folder / "1"):  # other users may read them
        place.chmod(0o755)
    return folder


def _more_sources(folder: Path, version: int) -> None:
    """Files of every command; those of version 0 have fewer rows."""
    files(folder)
    for name, n_rows in (
        ("records.csv", 12),
        ("items.csv", 4),
        ("clicks.csv", 120),
        ("links.tsv", 15),
        ("judged.csv", 24),
    ):
        if version == 0:
            (folder / name).write_text("".join((folder / name).read_text().splitlines(keepends=True)[: n_rows + 1]))
    if version == 0:
        (folder / "articles" / "a0.txt").unlink()
    for name in ("records.csv", "items.csv"):
        write_journal(folder, name)


def write_journal(folder: Path, source: str) -> None:
    """Answers that can be exported."""
    if source == "records.csv":
        with ScreeningJournal(folder / "corank.db") as journal:
            Screening(read_records(folder / source), known=["0"], journal=journal).answer(1, True)
        return
    with PreferenceJournal(folder / "corank.db") as journal:
        items = read_items(folder / source)[0]
        journal.begin(items, source)
        session = PreferenceSession(items, journal=journal)
        session.answer(session.next(), "left")


@cache
def model(version: int) -> corank.SPD:
    made = PROBLEMS[version]
    return corank.SPD(n_steps=500, random_state=0).fit(made.X, made.y, qid=made.qid)
