"""Products of chosen rows with a weight vector, and back, without copying a row."""

from __future__ import annotations

from corank.core.jit import jit
from corank.core.rows import add_scaled, dot


@jit
def score_rows(rows, order, w, out, first, last):  # type: ignore[no-untyped-def]
    """Write x_i · w to `out[k]` for i = order[k], k from first to last-1."""
    for k in range(first, last):
        out[k] = dot(rows, order[k], w)  # type: ignore[no-untyped-call]


@jit
def gather_rows(rows, order, h, out, first, last):  # type: ignore[no-untyped-def]
    """Add Σ_k h_k x_i to `out`, i = order[k], k from first to last-1."""
    for k in range(first, last):
        if h[k] != 0.0:
            add_scaled(rows, order[k], h[k], out)  # type: ignore[no-untyped-call]
