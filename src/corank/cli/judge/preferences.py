"""Read preferences (winners and losers) from a table, and rows with their names."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from corank.data.formats.frames import read_csv, read_parquet
from corank.data.formats.read import common_format, open_source, read
from corank.data.formats.table_text import csv_rows, read_utf8
from corank.data.formats.text import Source, TextFile
from corank.data.problem.collection import Collection
from corank.errors import InputError, suggest_names

IDS = ("docid", "id", "name")
"""Names of the column that names rows; the first that is present is used."""


def read_named(
    data: Sequence[Source],
    qid: str | None,
    id_column: str | None,
    *,
    y: str | None = None,
    unscored: float | None = None,
    n_features: int | None = None,
    layout: Literal["auto", "dense"] = "auto",
) -> Collection:
    """
    Read rows, and their names if a table has a column of names.

    data: a table, LETOR text, or a store.
    qid, y, unscored, n_features, layout: as in `corank.read`; a qid of "none" ignores query ids.
    id_column: column of names; by default one of `IDS`, unless it is one of `n_features` columns.
    Returns: the rows, with the names as document ids.
    """
    sources = [open_source(one) for one in data]
    kind, source = common_format(sources), sources[0]
    if kind in ("csv", "parquet"):
        was_named = id_column is not None
        if kind == "csv" and not was_named and isinstance(source, TextFile):
            line = source.first_line().decode(errors="replace")
            columns = next(csv.reader([line], delimiter=max(",;\t", key=line.count)))
            id_column = next((one for one in IDS if one in columns), None)
        is_one = qid == "none"
        reader: Any = read_csv if kind == "csv" else read_parquet
        table = source if kind == "csv" else getattr(source, "path", source)
        roles = {"y": y, "qid": None if is_one else qid}
        rows: Collection = reader(table, docid=id_column, **roles)
        if not was_named and id_column not in (None, "docid") and rows.X.shape[1] + 1 == n_features:
            rows = reader(table, **roles)  # this column is a feature of the model
        scores = rows.y if unscored is None else np.where(rows.y == unscored, np.nan, rows.y)
        return rows.revised(rows.X, scores, one_query=is_one)
    if id_column is not None:
        raise InputError(f"--id names a column, but {source} is not a table; leave --id out.")
    column: str | Literal[False] | None = False if qid == "none" else qid
    return read(sources, y=y, qid=column, unscored=unscored, n_features=n_features, layout=layout)


def names_of(rows: Collection) -> list[str]:
    """Return the names of rows: document ids, or numbers from 1 if the file has none."""
    if rows.docids is None:
        return [str(number) for number in range(1, len(rows.y) + 1)]
    return [str(name) for name in rows.docids.tolist()]


def read_preferences(path: Path, names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """
    Read a table with the columns ``winner`` and ``loser``, and optionally ``weight``.

    names: names of the rows.
    Returns: pairs of row numbers, winners first, and the weights; None without that column.
    """
    columns, lines = csv_rows(read_utf8(path), str(path))
    for wanted in ("winner", "loser"):
        if wanted not in columns:
            raise InputError(f"{path} has no column {wanted!r}; expected a header winner,loser or winner,loser,weight.")
    if not lines:
        raise InputError(f"{path} has a header but no preferences; write a winner and a loser on each line.")
    numbers: dict[str, int] = {}
    for at, name in enumerate(names):
        numbers.setdefault(name, at)
    pairs = np.empty((len(lines), 2), dtype=np.int64)
    weights = np.ones(len(lines))
    for at, (where, cells) in enumerate(lines):
        for side, column in enumerate(("winner", "loser")):
            name = cells[column].strip()
            if name not in numbers:
                raise InputError(f"{where}: there is no row named {name!r}; {_near(name, numbers)}")
            pairs[at, side] = numbers[name]
        if pairs[at, 0] == pairs[at, 1]:
            raise InputError(f"{where}: {cells['winner']!r} is preferred to itself; expected two different rows.")
        if "weight" in columns:
            weights[at] = _weight(cells["weight"], where)
    return pairs, weights if "weight" in columns else None


def _near(name: str, numbers: dict[str, int]) -> str:
    if len(numbers) > 20:
        return f"rows are named by document ids or by numbers from 1, such as {next(iter(numbers))!r}."
    return f"{suggest_names(name, list(numbers))}."


def _weight(cell: str, where: str) -> float:
    try:
        weight = float(cell)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0.0):
        raise InputError(f"{where}: the weight is {cell!r}; expected a number of at least 0.")
    return weight
