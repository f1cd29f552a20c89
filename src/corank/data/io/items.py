"""Items to rank by pairwise comparison: names, displayed fields and numeric features."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.files import require_regular
from corank.data.io.tables import Table, read_table, suffix_of
from corank.errors import InputError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
NAMES = ("name", "title", "item", "id")
"""Names of the column of names; the first that is present is used."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Items:
    """Items to rank, in the order of their file."""

    names: Sequence[str]  # one per item, all different
    X: Floats = field(default_factory=lambda: np.empty((0, 0)))  # numeric features; none by default
    fields: Sequence[Mapping[str, str]] = ()  # displayed text of each item, by column; empty by default
    columns: Sequence[str] = ()  # names of the columns of X

    def __post_init__(self) -> None:
        n = len(self.names)
        X = np.asarray(self.X, dtype=np.float64)
        object.__setattr__(self, "X", X if X.size else np.empty((n, 0)))
        object.__setattr__(self, "fields", self.fields or [{}] * n)
        if n < 2:
            raise InputError(f"names has {n} items; pass at least two.")
        if self.X.ndim != 2 or len(self.X) != n or not np.isfinite(self.X).all():
            raise InputError(f"X has shape {self.X.shape} for {n} names; pass one row of finite numbers per name.")
        if len(self.fields) != n:
            raise InputError(f"fields has {len(self.fields)} values for {n} names; pass one per name.")
        if len(self.number) < n:
            twice = next(name for row, name in enumerate(self.names) if self.number[name] != row)
            raise InputError(f"two rows have the name {twice!r}; rename one of them.")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Items: {len(self)} items, {self.X.shape[1]} features>"

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of each item, from 0, by name."""
        return {name: row for row, name in enumerate(self.names)}


def read_items(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    features: Sequence[str] | None = None,
    judged: str | None = None,
) -> tuple[Items, Floats]:
    """
    Read items from CSV, JSON lines (compressed or not) or Parquet.

    Every column is displayed. Numeric columns are features; text is displayed, but not used by the model.
    """
    require_regular(path)
    if suffix_of(path) not in SUFFIXES:
        raise InputError(f"{path} has an unknown suffix; items are read from {', '.join(SUFFIXES)} files.")
    table = read_table(path)
    if not len(table):
        raise InputError(f"{path} has no rows; expected at least two items, one per row.")
    table.require(name, option="name")
    table.require(judged, option="judged")
    table.require(*(features or ()), option="features")
    name_column = name or table.find(NAMES) or table.names[0]
    if judged is not None and judged in (name_column, *(features or ())):
        what = "holds the names" if judged == name_column else "is a feature"
        raise InputError(f"{path}: column {judged!r} {what}, so it cannot hold the grades; choose another column.")
    texts = {column: list(map(_text, cells)) for column, cells in table.columns.items()}
    names = [text.strip() for text in texts[name_column]]
    if "" in names:
        where = table.place(names.index(""))
        raise InputError(f"{where}: column {name_column!r} is empty; fill it, or choose another with name=.")
    numbers = {column: _numbers(cells) for column, cells in table.columns.items() if column != name_column}
    y = np.empty(0) if judged is None else _finite(numbers.pop(judged), judged, table)
    if features is None:
        features = [item for item, values in numbers.items() if values is not None and item.casefold() != "id"]
    values = [_finite(numbers.get(column), column, table) for column in features]
    shown = [column for column in table.columns if column not in (name_column, judged)]
    fields = [{column: text for column in shown if (text := texts[column][row])} for row in range(len(table))]
    try:
        return Items(names, np.column_stack(values) if values else np.empty((0, 0)), fields, list(features)), y
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _numbers(cells: list[Any]) -> Floats | None:
    """Return a numeric column, NaN for empty cells; None if a cell is not a number, or all are empty."""
    numbers = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            continue
        try:
            numbers[row] = float(cell)
        except OverflowError:  # an integer of 309 digits or more
            numbers[row] = np.inf
        except (TypeError, ValueError):
            return None
    return None if np.isnan(numbers).all() else numbers


def _finite(values: Floats | None, column: str, table: Table) -> Floats:
    if values is None:
        raise InputError(f"{table.place(0)}: column {column!r} does not hold numbers; choose a numeric column.")
    missing = np.flatnonzero(~np.isfinite(values))
    if len(missing):
        what = "infinite" if np.isinf(values[missing[0]]) else "empty"
        where = table.place(int(missing[0]))
        raise InputError(f"{where}: column {column!r} is {what}; fill it, or choose other columns with features=.")
    return values


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).encode("utf-8", "replace").decode()
