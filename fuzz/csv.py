"""CSV and TSV: tables of text, whole or damaged, read against plain splitting where nothing is quoted or odd."""

from __future__ import annotations

import math
import re
from pathlib import Path
from random import Random
from typing import Any

from corank.data.formats.frames import read_csv
from fuzz.dice import HARD_NUMBERS, ODD_BYTES, mutate, number
from fuzz.format import Format, Unclear
from fuzz.frames import Column, Table, check_table, table_of

WORDS = [*ODD_BYTES, *(word.encode() for word in HARD_NUMBERS), b"NA", b'""', b'","', b"label", b"label,"]


class Csv(Format):
    name = "csv"
    suffix = ".csv"
    is_text = True

    def prepare(self) -> None:
        """Import pyarrow, as for Parquet."""
        import pyarrow.csv  # noqa: F401

    def generate(self, dice: Random) -> bytes:
        text = _csv(dice)
        return text if dice.random() < 0.5 else mutate(text, dice, WORDS, lambda: _csv(dice))

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "in.csv"
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        return check_table(lambda: read_csv(path), lambda: _read_csv(content))


def _csv(dice: Random) -> bytes:
    mark = dice.choice((b",", b",", b"\t", b";"))
    names = [b"label", *dice.sample([b"qid", b"docid", b"f1", b"f2", b"f 3"], dice.randrange(1, 5))]
    if dice.random() < 0.1:
        names.append(dice.choice((b"label", b"f1", b"", b"\xff", b'"f,4"')))
    if dice.random() < 0.3:
        dice.shuffle(names)
    lines = [mark.join(names)]
    fine = dice.random() < 0.6
    for _ in range(dice.choice((0, 1, 2, 3, 6))):
        cells = [_cell(dice, name, fine) for name in names]
        lines.append(mark.join(cells if fine or dice.random() < 0.95 else cells[1:]))
    end = dice.choice((b"\n", b"\n", b"\r\n"))
    return end.join(lines) + dice.choice((end, b"", end * 2))


def _cell(dice: Random, name: bytes, fine: bool) -> bytes:
    if name in (b"qid", b"docid"):
        words = (b"a", b"7", b"-3", b"12", b"x y", b"9223372036854775807")
        return dice.choice(words if fine else (*words, b"", b"007", b"\xff", b'"q,1"', b"NA", b"1.0", b"9" * 30, b"\0"))
    if name == b"label" and dice.random() < 0.1:
        return b""
    return (
        b"%d" % dice.randrange(9)
        if fine and dice.random() < 0.5
        else repr(dice.gauss(0, 1)).encode()
        if fine
        else number(dice).encode()
    )


def _read_csv(content: bytes) -> Table | None:
    """A table without quotes and odd bytes, by splitting; unclear otherwise."""
    if re.search(rb'["\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\xff]|\r(?!\n)', content):
        raise Unclear
    lines = [line.removesuffix("\r") for line in content.decode().split("\n")]
    lines = [line for line in lines if line]
    if not all(line.strip() for line in lines):
        raise Unclear
    if not lines:
        return None
    mark = max(",\t;", key=lines[0].count)
    names, *rows = [line.split(mark) for line in lines]
    if "" in names or any(" " in name for name in names if name.strip() != name):
        raise Unclear
    if any(len(row) != len(names) for row in rows):
        return None
    columns: list[Column] = []
    for name, cells in zip(names, map(list, zip(*rows, strict=True)) if rows else [[] for _ in names], strict=True):
        columns.append((name, *_typed(name, cells)))
    return table_of(columns)


def _typed(name: str, cells: list[str]) -> tuple[str, list[Any]]:
    if name == "docid":
        return "string", list(cells)
    if name == "qid":
        if all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", cell) for cell in cells):
            return "int64", [int(cell) for cell in cells]
        if any(re.fullmatch(r"-?[0-9]{18,}", cell) for cell in cells):
            raise Unclear  # more digits than it takes to be sure
        return "string", [cell or None for cell in cells]
    if not all(re.fullmatch(r"(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)?", cell) for cell in cells):
        raise Unclear
    values = [float(cell) if cell else None for cell in cells]
    if any(value is not None and math.isinf(value) for value in values):
        raise Unclear
    return "float64", values
