"""CSV and TSV: valid or damaged tables, compared with plain splitting if they have no quotes or odd bytes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from random import Random
from typing import Any

from corank.data.io.frames import read_csv
from fuzz.format import Format, Unclear
from fuzz.frames import Column, Table, check_table, table_of
from fuzz.mutations import HARD_NUMBERS, ODD_BYTES, mutate, number

WORDS = [*ODD_BYTES, *(word.encode() for word in HARD_NUMBERS), b"NA", b'""', b'","', b"label", b"label,"]


# usual names of roles, without separators; mutations reach other spellings and the short ones
ROLES = ("label", "qid", "docid", "id", "y")


class Csv(Format):
    name = "csv"
    suffix = ".csv"
    is_text = True

    def prepare(self) -> None:
        """Import pyarrow, as for Parquet."""
        import pyarrow.csv  # noqa: F401

    def generate(self, rng: Random) -> bytes:
        text = _csv(rng)
        return text if rng.random() < 0.5 else mutate(text, rng, WORDS, lambda: _csv(rng))

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "in.csv"
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        return check_table(lambda: read_csv(path), lambda: _read_csv(content))


def _csv(rng: Random) -> bytes:
    mark = rng.choice((b",", b",", b"\t", b";"))
    names = [b"label", *rng.sample([b"qid", b"docid", b"f1", b"f2", b"f 3"], rng.randrange(1, 5))]
    if rng.random() < 0.1:
        names.append(rng.choice((b"label", b"f1", b"", b"\xff", b'"f,4"')))
    if rng.random() < 0.3:
        rng.shuffle(names)
    lines = [mark.join(names)]
    fine = rng.random() < 0.6
    for _ in range(rng.choice((0, 1, 2, 3, 6))):
        cells = [_cell(rng, name, fine) for name in names]
        lines.append(mark.join(cells if fine or rng.random() < 0.95 else cells[1:]))
    end = rng.choice((b"\n", b"\n", b"\r\n"))
    return end.join(lines) + rng.choice((end, b"", end * 2))


def _cell(rng: Random, name: bytes, fine: bool) -> bytes:
    if name in (b"qid", b"docid"):
        words = (b"a", b"7", b"-3", b"12", b"x y", b"9223372036854775807")
        return rng.choice(words if fine else (*words, b"", b"007", b"\xff", b'"q,1"', b"NA", b"1.0", b"9" * 30, b"\0"))
    if name == b"label" and rng.random() < 0.1:
        return b""
    return (
        b"%d" % rng.randrange(9)
        if fine and rng.random() < 0.5
        else repr(rng.gauss(0, 1)).encode()
        if fine
        else number(rng).encode()
    )


def _read_csv(content: bytes) -> Table | None:
    """Split a table without quotes and odd bytes; otherwise the result is unclear."""
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
    if any(re.sub("[ _-]", "", name).lower() in ROLES and name not in ROLES[:3] for name in names):
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
