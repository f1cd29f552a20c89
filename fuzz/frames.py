"""Parquet files with all types of columns, valid or damaged, compared with the values they were made from."""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from corank.data.io.frames import read_parquet
from corank.errors import InputError
from fuzz.format import Format, Unclear, Wrong
from fuzz.mutations import EDGE_INTEGERS, mutate

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = {"float16": "<e", "float32": "<f", "float64": "<d"}
TEXTS = ("string", "large_string", "dictionary")
OTHERS = ("binary", "not text", "null", "list", "struct", "date32", "timestamp", "decimal")
WORDS = ["a", "b", "", "a\0", "é", "\U0001f600", "7", "07", "x" * 50, "nan", " a", "\n", '"']
VARINTS = [
    b"\x00", b"\x01", b"\x7f", b"\xff\x01", b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\xff\x7f", b"\x15", b"\x16",
    b"\x80\x80\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
]  # fmt: skip
"""Fragments of the compact Thrift encoding of Parquet metadata."""

Column = tuple[str, str, list[Any]]
"""Name, type and values."""


@dataclass(frozen=True)
class Table:
    """The expected result of a reader."""

    X: list[list[float]]
    y: list[float]
    qid: list[Any] | None
    docids: list[str] | None


class Parquet(Format):
    """An input is a JSON plan of columns and how to write them, or the bytes of a file."""

    name = "parquet"
    suffix = ".parquet"
    share = 2.0

    def prepare(self) -> None:
        """Import pyarrow without reading a file: its threads must not exist before a fork."""
        import pyarrow.parquet  # noqa: F401

    def generate(self, rng: Random) -> bytes:
        plan = _plan(rng)
        written = _written(plan) if rng.random() < 0.5 else None
        return json.dumps(plan).encode() if written is None else _damaged(written, rng)

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "in.parquet"
        if not content.startswith(b'{"columns"'):
            path.write_bytes(content)
            return check_table(lambda: read_parquet(path), _unclear)
        plan = json.loads(content)
        written = _written(plan)
        if written is None:
            return False
        path.write_bytes(written)
        return check_table(lambda: read_parquet(path), lambda: table_of(plan["columns"]))


def check_table(read: Callable[[], Any], expect: Callable[[], Table | None]) -> bool:
    """
    Read a table and compare it.

    expect: the expected result, or None if the table must be rejected.
    Returns: whether it was accepted.
    """
    is_clear, wanted = True, None
    try:
        wanted = expect()
    except Unclear:
        is_clear = False
    try:
        found = read()
        lists = [part if part is None else part.tolist() for part in (found.X, found.y, found.qid, found.docids)]
        _ = found.data.n_pairs
    except InputError as error:
        if wanted is not None:
            raise Wrong("refused", error) from error
        return False
    if not is_clear:
        return True
    if wanted is None:
        raise Wrong("accepted", "expected a refusal")
    for name, part in zip(("X", "y", "qid", "docids"), lists, strict=True):
        # repr distinguishes -0.0 from 0.0 and 1 from 1.0, and is equal for NaN
        if repr(part) != repr(getattr(wanted, name)):
            raise Wrong(name, f"{part} for {getattr(wanted, name)}")
    return True


def _unclear() -> Table | None:
    raise Unclear


def _plan(rng: Random) -> dict[str, Any]:
    n = rng.choice((0, 1, 2, 3, 5, 9)) if rng.random() < 0.9 else 40
    fine = rng.random() < 0.6
    columns = [("label", rng.choice((*INTEGERS, *FLOATS)), rng.random() < 0.3)]
    if rng.random() < 0.7:
        columns.append(
            ("qid", rng.choice((*INTEGERS, *TEXTS) if fine else (*INTEGERS, *TEXTS, *FLOATS, *OTHERS)), False)
        )
    if rng.random() < 0.5:
        columns.append(("docid", rng.choice(TEXTS if fine else (*INTEGERS, *TEXTS, *OTHERS)), False))
    for k in range(rng.choice((1, 1, 2, 3))):
        kinds = ("float32", "float32", "float64", *INTEGERS, "bool_") if fine else (*FLOATS, *TEXTS, *OTHERS, "bool_")
        columns.append((f"f{k}", rng.choice(kinds), False))
    if not fine:
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(columns))
            name, kind, _ = columns[at]
            columns[at] = (rng.choice((name, name, "label", "qid", "x", "", "é", "a\0")), kind, rng.random() < 0.5)
    rng.shuffle(columns)
    return {
        "columns": [[name, kind, [_value(rng, kind, fine, null) for _ in range(n)]] for name, kind, null in columns],
        "options": {
            "compression": rng.choice(("none", "snappy", "gzip", "zstd")),
            "row_group_size": rng.choice((1, 2, 1000)),
            "data_page_version": rng.choice(("1.0", "2.0")),
            "use_dictionary": rng.random() < 0.5,
        },
    }


def _value(rng: Random, kind: str, fine: bool, null: bool) -> Any:
    if null and rng.random() < 0.3:
        return None
    if kind in INTEGERS:
        bits = int(kind.lstrip("uint"))
        low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return min(max(rng.choice([*EDGE_INTEGERS, rng.randrange(4)]), low), high)
    if kind in FLOATS:
        if not fine and rng.random() < 0.1:
            return rng.choice((math.nan, math.inf, -math.inf))
        value = rng.choice((0.0, -0.0, 1.0, rng.random(), rng.gauss(0, 1000), 5e-8))
        return struct.unpack(FLOATS[kind], struct.pack(FLOATS[kind], value))[0]
    if kind == "bool_":
        return rng.random() < 0.5
    if kind == "decimal":
        return f"{rng.randrange(-(10**6), 10**6)}.{rng.randrange(100):02d}"
    return rng.choice(WORDS)


def _written(plan: dict[str, Any]) -> bytes | None:
    """Return the Parquet file of a plan; None if pyarrow cannot write it."""
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        arrays = [_array(arrow, kind, values) for _, kind, values in plan["columns"]]
        table = arrow.Table.from_arrays(arrays, names=[name for name, _, _ in plan["columns"]])
        file = io.BytesIO()
        parquet.write_table(table, file, **plan["options"])
    except (arrow.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return file.getvalue()


def _array(arrow: Any, kind: str, values: list[Any]) -> Any:
    n = len(values)
    match kind:
        case "float16":
            return arrow.array([None if v is None else np.float16(v) for v in values], arrow.float16())
        case "decimal":
            return arrow.array([None if v is None else Decimal(v) for v in values], arrow.decimal128(20, 2))
        case "dictionary":
            return arrow.array(values, arrow.string()).dictionary_encode()
        case "binary":
            return arrow.array([None if v is None else v.encode() for v in values], arrow.binary())
        case "not text":
            loose = arrow.array([b"\xff\xfe" if k % 2 else b"\xc3" for k in range(n)], arrow.binary())
            return arrow.Array.from_buffers(arrow.string(), n, loose.buffers())
        case "null":
            return arrow.nulls(n)
        case "list":
            return arrow.array([[1.0]] * n, arrow.list_(arrow.float64()))
        case "struct":
            return arrow.array([{"a": 1}] * n, arrow.struct([("a", arrow.int8())]))
        case "date32":
            return arrow.array(range(n), arrow.int32()).cast(arrow.date32())
        case "timestamp":
            return arrow.array(range(n), arrow.int64()).cast(arrow.timestamp("ns"))
    return arrow.array(values, getattr(arrow, kind)())


def _damaged(written: bytes, rng: Random) -> bytes:
    """Change the pages, or the footer with a corrected length."""
    (length,) = struct.unpack("<I", written[-8:-4])
    pages, footer = written[: -8 - length], written[-8 - length : -8]
    if rng.random() < 0.5:
        pages = mutate(pages, rng, VARINTS)
    else:
        footer = mutate(footer, rng, VARINTS)
    whole = pages + footer + struct.pack("<I", len(footer)) + b"PAR1"
    return whole if rng.random() < 0.95 else mutate(whole, rng, VARINTS)


def table_of(columns: list[Column]) -> Table | None:
    """Return the expected result of reading these columns."""
    names = [name for name, _, _ in columns]
    if len(set(names)) < len(names) or "label" not in names:
        return None
    if "" in names:
        raise Unclear  # a column without a name is left out
    by_name = {name: (kind, values) for name, kind, values in columns}
    features = [name for name in names if name not in ("label", "qid", "docid")]
    numbers = [_numbers(*by_name[name]) for name in features]
    label = _numbers(*by_name["label"])
    is_known = [part is not None or by_name[name][0] in TEXTS for name, part in zip(features, numbers, strict=True)]
    if not features or not columns[0][2] or label is None or not all(is_known):
        return None
    if any(value is not None and math.isinf(value) for part in (label, *numbers) for value in part or []):
        return None
    qid = _ids(*by_name["qid"]) if "qid" in by_name else None
    docids = _ids(*by_name["docid"]) if "docid" in by_name else None
    if None in (qid or []) or None in (docids or []):
        return None
    if any(by_name[name][0] in TEXTS for name in features):
        raise Unclear  # columns of categories
    X = [
        [math.nan if value is None else value for value in row]
        for row in zip(*(part or [] for part in numbers), strict=True)
    ]
    y = [math.nan if value is None else value for value in label]
    return Table(X, y, qid, docids if docids is None else [str(one) for one in docids])


def _numbers(kind: str, values: list[Any]) -> list[float | None] | None:
    """Return values as float64; None if the column is not numeric."""
    if kind == "decimal":
        raise Unclear
    if kind in INTEGERS or kind in FLOATS or kind == "bool_":
        return [None if value is None else float(value) for value in values]
    return None


def _ids(kind: str, values: list[Any]) -> list[Any]:
    if kind not in INTEGERS and kind not in TEXTS:
        raise Unclear
    return values
