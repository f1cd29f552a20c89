"""TREC runs and qrels: blank-separated columns, compared with plain Python, written and read again."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from corank.data.io import trec
from corank.data.io.runs import read_runs
from corank.errors import InputError
from fuzz.format import Format, Wrong, tune
from fuzz.mutations import EDGE_INTEGERS, HARD_NUMBERS, ODD_BYTES, mutate, number
from fuzz.reference import read_columns

WORDS = [*ODD_BYTES, *(word.encode() for word in HARD_NUMBERS), b" Q0 ", b" 0 "]
NAMES = [
    b"1", b"q", b"d-7", b"\xc3\xa9", b"x" * 30, b"\xff", b"a:b", b"#", b"\x0b", b"\x0c", b"a\x0bb", b"\0", b"\xc2\x85",
    b"nan", b"\xe2\x80\xa8", b"'", b"\xef\xbb\xbf", *(b"%d" % k for k in EDGE_INTEGERS),
]  # fmt: skip
PIECES = (1 << 28, 1, 64, 16)
"""Chunk sizes, one per setting; the last setting also writes the result."""


class Trec(Format):
    """
    Runs or qrels.

    columns, number: names of the columns, and the one that is read as a number.
    """

    suffix = ".txt"
    share = 1.5
    ways = len(PIECES)
    is_text = True

    def __init__(self, name: str, columns: tuple[str, ...], number: str) -> None:
        self.name, self.columns, self.number = name, columns, number
        self.sample = b"".join(b" ".join([b"%d" % k] * len(columns)) + b"\n" for k in range(5))

    def generate(self, rng: Random) -> bytes:
        text = self._text(rng)
        return text if rng.random() < 0.4 else mutate(text, rng, WORDS, lambda: self._text(rng))

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        tune(trec, PIECE=PIECES[way])
        path = folder / "in.txt"
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        table = read_columns(content, self.columns, self.number)
        try:
            found = self._read(path)
        except InputError as error:
            if table is not None:
                raise Wrong("refused", error) from error
            return False
        if table is None:
            raise Wrong("accepted", "expected a refusal")
        query, document, numbers = (
            [row[self.columns.index(name)] for row in table] for name in ("query", "document", self.number)
        )
        rows = list(zip(query, document, [repr(float(word)) for word in numbers], strict=True))
        if (given := _rows(found)) != rows:
            raise Wrong("rows", f"{given} for {rows}")
        if self.name == "run" and found.tag != table[0][-1]:
            raise Wrong("tag", f"{found.tag!r} for {table[0][-1]!r}")
        if way == len(PIECES) - 1:
            self._write(folder / "again.txt", found)
            if sorted(again := _rows(self._read(folder / "again.txt"))) != sorted(rows):
                raise Wrong("rows written", f"{again} for {rows}")
            _join(found)
        if self.name == "run":
            _read_lists(path, rows)
        return True

    def _text(self, rng: Random) -> bytes:
        names = NAMES[:5] if rng.random() < 0.5 else NAMES
        lines = []
        for _ in range(rng.choice((1, 1, 2, 3, 5, 8, 20))):
            words = [number(rng).encode() if name == self.number else rng.choice(names) for name in self.columns]
            lines.append(rng.choice((b" ", b"\t", b"  ")).join(words))
            if rng.random() < 0.05:
                lines.append(rng.choice((b"", b" \t\r", b"\r")))
        end = rng.choice((b"\n", b"\n", b"\r\n", b" \n"))
        return end.join(lines) + (end if rng.random() < 0.7 else b"")

    def _read(self, path: Path) -> Any:
        return trec.read_run(path) if self.name == "run" else trec.read_qrels(path)

    def _write(self, path: Path, found: Any) -> None:
        if self.name == "run":
            trec.write_run(path, found.qid, found.docids, found.scores, found.tag, overwrite=True)
        else:
            trec.write_qrels(path, found.qid, found.docids, found.y, overwrite=True)


def runs() -> Trec:
    return Trec("run", trec.RUN_COLUMNS, "score")


def qrels() -> Trec:
    return Trec("qrels", trec.QRELS_COLUMNS, "grade")


def _rows(found: Any) -> list[tuple[str, str, str]]:
    numbers = found.scores if isinstance(found, trec.Run) else found.y
    return list(zip(found.qid.tolist(), found.docids.tolist(), map(repr, numbers.tolist()), strict=True))


def _read_lists(path: Path, rows: list[tuple[str, str, str]]) -> None:
    """Check that the reader of a fusion has the same documents, with their scores or ranks, or refuses the file."""
    try:
        lists = read_runs(path)
    except InputError as error:
        if len({row[:2] for row in rows}) == len(rows) and "appears twice" in str(error):
            raise Wrong("lists refused", error) from error
        return
    keys = list(zip(lists.qid.tolist(), lists.docids.tolist(), strict=True))
    if sorted(keys) != sorted(row[:2] for row in rows) or lists.X.shape != (len(rows), 1):
        raise Wrong("lists", f"{keys} for {rows}")
    scores = {row[:2]: float(row[2]) for row in rows}
    if [scores[key] for key in keys] != lists.X[:, 0].tolist() and not any(
        "its ranks are" in note for note in lists.notes
    ):
        raise Wrong("scores of lists", f"{lists.X[:, 0].tolist()} for {rows}")


def _join(found: Any) -> None:
    """Check that a run joined with itself as judgements has its scores as grades, unless a document is repeated."""
    if not isinstance(found, trec.Run):
        return
    keys = set(zip(found.qid, found.docids, strict=True))
    try:
        judged = trec.join_run(found, trec.Qrels(found.qid, found.docids, found.scores))
    except InputError as error:
        if len(keys) == len(found.scores):
            raise Wrong("join refused", error) from error
        return
    if len(keys) < len(found.scores) or not np.array_equal(judged.y, found.scores) or len(judged.missed_y):
        raise Wrong("join", judged)
