"""Choices: things that somebody chooses between: a name each, what is shown of it, and numbers it is compared by."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.formats.frames import parquet_rows
from corank.data.formats.table_text import Rows, csv_rows, jsonl_rows, read_utf8, suffix_of
from corank.errors import InputError, suggest_names

TEXTS = {".csv": csv_rows, ".tsv": csv_rows, ".jsonl": jsonl_rows, ".ndjson": jsonl_rows}
NAMES = ("name", "title", "item", "id")
"""What the column of names may be called, first name first."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Choices:
    """
    Things to choose between, in the order of their file.

    Attributes
    ----------
    names : sequence of str
        One for each, all different.
    X : array of shape (n, n_features)
        Numbers that they are compared by; none by default.
    fields : sequence of mappings of str to str
        What else is shown of each, by column; nothing by default.
    columns : sequence of str
        Names of the columns of X.

    Examples
    --------
    >>> Choices(["tea", "coffee", "milk"])
    <Choices: 3, compared by 0 columns>
    """

    names: Sequence[str]
    X: Floats = field(default_factory=lambda: np.empty((0, 0)))
    fields: Sequence[Mapping[str, str]] = ()
    columns: Sequence[str] = ()

    def __post_init__(self) -> None:
        n = len(self.names)
        X = np.asarray(self.X, dtype=np.float64)
        object.__setattr__(self, "X", X if X.size else np.empty((n, 0)))
        object.__setattr__(self, "fields", self.fields or [{}] * n)
        if n < 2:
            raise InputError(f"there are {n} things to choose between; pass at least two.")
        if self.X.ndim != 2 or len(self.X) != n or not np.isfinite(self.X).all():
            raise InputError(f"X has shape {self.X.shape} for {n} names; pass one row of finite numbers for each.")
        if len(self.fields) != n:
            raise InputError(f"fields has {len(self.fields)} values for {n} names; pass one for each.")
        if len(self.number) < n:
            twice = next(one for at, one in enumerate(self.names) if self.number[one] != at)
            raise InputError(f"two rows are called {twice!r}; give each a name of its own.")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Choices: {len(self)}, compared by {self.X.shape[1]} columns>"

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of each, from 0, by its name."""
        return {one: at for at, one in enumerate(self.names)}


def read_choices(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    features: Sequence[str] | None = None,
    judged: str | None = None,
) -> tuple[Choices, Floats]:
    """
    Read things to choose between from CSV, JSON lines (packed or not) or Parquet.

    Every column is shown; columns of numbers are what things are compared by. Texts are shown, and not learnt from.

    Parameters
    ----------
    path : path
        Ends in .csv, .tsv, .jsonl or .parquet.
    name : str, optional
        Column of names, all different; by default the one called ``name``, ``title``, ``item`` or ``id``, else the
        first.
    features : sequence of str, optional
        Columns of numbers to compare by; by default all of them but one called ``id``, an empty list none.
    judged : str, optional
        Column of numbers that says how good each is, for replays; it is neither shown nor learnt from.

    Returns
    -------
    choices : Choices
        One for each row.
    y : array of shape (n,)
        The judged column; empty where none was named.
    """
    columns, rows = _rows(path)
    if not rows:
        raise InputError(f"{path} has no rows; expected a name a row, at least two.")
    folded = {column.casefold(): column for column in reversed(columns)}
    usual = next((folded[one] for one in NAMES if one in folded), columns[0])
    for option, wanted in (("name", name), ("judged", judged), *(("features", one) for one in features or ())):
        if wanted is not None and wanted not in columns:
            raise InputError(f"{path} has no column {wanted!r} for {option}=; {suggest_names(wanted, columns)}.")
    called = name or usual
    if judged is not None and judged in (called, *(features or ())):
        what = "holds the names" if judged == called else "is to be compared by"
        raise InputError(f"{path}: column {judged!r} {what}, and cannot be the judge too; choose another.")
    names = [_text(row.get(called)).strip() for _, row in rows]
    if "" in names:
        raise InputError(f"{rows[names.index('')][0]}: column {called!r} is empty; name every row, or choose name=.")
    numbers = {column: _numbers([row.get(column) for _, row in rows]) for column in columns if column != called}
    y = np.empty(0) if judged is None else _whole(numbers.pop(judged), judged, rows)
    if features is None:
        features = [one for one, values in numbers.items() if values is not None and one.casefold() != "id"]
    compared = [_whole(numbers.get(column), column, rows) for column in features]
    shown = [
        {column: text for column in columns if column not in (called, judged) and (text := _text(row.get(column)))}
        for _, row in rows
    ]
    try:
        return Choices(names, np.column_stack(compared) if compared else np.empty((0, 0)), shown, list(features)), y
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _rows(path: str | os.PathLike[str]) -> tuple[list[str], Rows]:
    suffix = suffix_of(path)
    if suffix == ".parquet":
        return parquet_rows(path)
    if suffix not in TEXTS:
        raise InputError(f"{path} does not say what it is; things are read from {', '.join((*TEXTS, '.parquet'))}.")
    return TEXTS[suffix](read_utf8(path), str(path))


def _numbers(cells: list[Any]) -> Floats | None:
    """A column of numbers, NaN where a cell is empty; None where one is something else, or all are empty."""
    found = np.full(len(cells), np.nan)
    for at, cell in enumerate(cells):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            continue
        try:
            found[at] = float(cell)
        except (TypeError, ValueError):
            return None
    return None if np.isnan(found).all() else found


def _whole(values: Floats | None, column: str, rows: Rows) -> Floats:
    if values is None:
        raise InputError(f"{rows[0][0]}: column {column!r} does not hold numbers; choose columns that do.")
    missing = np.flatnonzero(~np.isfinite(values))
    if len(missing):
        what = "infinite" if np.isinf(values[missing[0]]) else "empty"
        raise InputError(
            f"{rows[missing[0]][0]}: column {column!r} is {what}; fill it, or choose other columns with features=."
        )
    return values


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).encode("utf-8", "replace").decode()
