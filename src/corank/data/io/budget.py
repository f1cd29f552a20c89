"""What reading may take: bytes after unpacking, cells of tables and values of JSON or XML, counted while reading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from corank.errors import InputError

ROW_CELLS = 4
"""Cells that a row counts in addition to its own, for the object that holds them."""

MAX_VALUES = 500_000_000
"""Cells, or values, of one file outside of a server: a click log of 60 million rows."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{,:]', re.DOTALL)


class Budget:
    """
    Limits that all containers read within it share: archives, workbooks, compressed files and JSON, also nested ones.

    n_bytes: bytes after unpacking; None for no limit, where each file is limited by its packed size.
    cells: cells of tables, empty ones included.
    values: values and keys of JSON, and elements of XML.
    is_exceeded: whether a limit was exceeded.
    """

    def __init__(self, *, n_bytes: int | None = None, cells: int = MAX_VALUES, values: int = MAX_VALUES) -> None:
        self._limits = {"bytes": n_bytes, "cells": cells, "values": values}
        self._taken = dict.fromkeys(self._limits, 0)
        self.is_exceeded = False

    def take(self, unit: str, count: int, name: object) -> None:
        """Count what was read; raise `InputError` if it is too much."""
        self._taken[unit] += count
        limit = self._limits[unit]
        if limit is not None and self._taken[unit] > limit:
            self.is_exceeded = True
            size = f"{limit >> 20} MB" if unit == "bytes" and limit >= 1 << 20 else f"{limit:,} {unit}"
            raise InputError(f"{name} unpacks to more than {size}, which is the limit; split it into smaller files.")

    def left(self, unit: str) -> int | None:
        """Return what may still be read; None for no limit."""
        limit = self._limits[unit]
        return None if limit is None else max(limit - self._taken[unit], 0)

    def take_json(self, text: str, name: object) -> None:
        """Count the values of a JSON text before it is parsed; a list or an object counts at most twice."""
        # an upper bound, which also counts marks within strings, is enough for most files
        bound = 1 + sum(map(text.count, "[{,:"))
        left = self.left("values")
        if left is not None and bound > left:
            bound = 1
            for token in _TOKEN.finditer(text):
                bound += token[0][0] != '"'
                if bound > left:
                    break
        self.take("values", bound, name)


_shared: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def spending(budget: Budget) -> Iterator[Budget]:
    """Count everything that is read in the block against one budget."""
    token = _shared.set(budget)
    try:
        yield budget
    finally:
        _shared.reset(token)


def current_budget(*, cells: int = MAX_VALUES) -> Budget:
    """Return the budget of the block, or a new one for a single file, which may have so many cells."""
    return _shared.get() or Budget(cells=cells)
