"""Sorting inside blocks: the rows of one query by their score."""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit


@jit
def sort_blocks(keys, order, starts, first, last):  # type: ignore[no-untyped-def]
    """Sort `order` in place by `keys[order]` inside blocks first..last-1; stable, NaN last."""
    for block in range(first, last):
        begin, end = starts[block], starts[block + 1]
        rows = order[begin:end].copy()
        order[begin:end] = rows[np.argsort(keys[rows], kind="mergesort")]
