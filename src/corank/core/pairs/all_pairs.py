"""Any smooth loss over all pairs of a query, one by one."""

from __future__ import annotations

from corank.core.jit import jit
from corank.core.pairs.margins import cost, pair_target


@jit
def visit(loss, block, s, first, last, slope):  # type: ignore[no-untyped-def]
    """Return Σ w_i w_j ℓ over the pairs of queries first..last-1, and write its derivative to `slope`."""
    total = 0.0
    for q in range(first, last):
        begin, end = block.starts[q], block.starts[q + 1]
        slope[begin:end] = 0.0
        lower = begin
        for i in range(begin, end):
            if block.grade[i] != block.grade[lower]:
                lower = i
            # rows ascend by grade: everything before the first row of i's grade is lower
            own, costs = 0.0, 0.0
            for j in range(begin, lower):
                value, pull, _ = cost(loss, pair_target(loss, block.y[i] - block.y[j]), s[i] - s[j])
                costs += block.weight[j] * value
                own += block.weight[j] * pull
                slope[j] += block.weight[i] * block.weight[j] * pull
            slope[i] -= block.weight[i] * own
            total += block.weight[i] * costs
    return total


@jit
def visit_bend(loss, block, s, z, first, last, out):  # type: ignore[no-untyped-def]
    """Write the second derivative along z: w_i Σ_j w_j ℓ'' (z_i − z_j) over the partners j of i."""
    for q in range(first, last):
        begin, end = block.starts[q], block.starts[q + 1]
        out[begin:end] = 0.0
        lower = begin
        for i in range(begin, end):
            if block.grade[i] != block.grade[lower]:
                lower = i
            own = 0.0
            for j in range(begin, lower):
                _, _, bend = cost(loss, pair_target(loss, block.y[i] - block.y[j]), s[i] - s[j])
                force = block.weight[j] * bend * (z[i] - z[j])
                own += force
                out[j] -= block.weight[i] * force
            out[i] += block.weight[i] * own
