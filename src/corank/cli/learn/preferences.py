"""Read preferences (winners and losers) from a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data.io.table_text import csv_rows, read_utf8
from corank.errors import InputError, suggest_names


def read_preferences(path: Path, names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Read a table with the columns ``winner`` and ``loser``, and optionally ``weight``."""
    columns, lines = csv_rows(read_utf8(path), str(path))
    for wanted in ("winner", "loser"):
        if wanted not in columns:
            raise InputError(f"{path} has no column {wanted!r}; expected a header winner,loser or winner,loser,weight.")
    if not lines:
        raise InputError(f"{path} has a header but no preferences; write a winner and a loser on each line.")
    numbers: dict[str, int] = {}
    for i, name in enumerate(names):
        numbers.setdefault(name, i)
    pairs = np.empty((len(lines), 2), dtype=np.int64)
    weights = np.ones(len(lines))
    for i, (where, cells) in enumerate(lines):
        for side, column in enumerate(("winner", "loser")):
            name = cells[column].strip()
            if name not in numbers:
                raise InputError(f"{where}: there is no row named {name!r}; {_near(name, numbers)}")
            pairs[i, side] = numbers[name]
        if pairs[i, 0] == pairs[i, 1]:
            raise InputError(f"{where}: {cells['winner']!r} is preferred to itself; expected two different rows.")
        if "weight" in columns:
            weights[i] = _weight(cells["weight"], where)
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
