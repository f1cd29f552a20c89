"""
The logistic loss over all pairs of a query, one by one.

For y_i > y_j the target is t = (1 + y_i − y_j)/2 and ℓ = log(1 + eᵐ) − t m with m = s_i − s_j.
"""

from __future__ import annotations

import math

from corank.core.jit import jit


@jit
def likely_sweep(block, s, first, last, slope):  # type: ignore[no-untyped-def]
    """Return Σ w_i w_j ℓ over the pairs of queries first..last-1, and write its derivative to `slope`."""
    loss = 0.0
    for q in range(first, last):
        begin, end = block.starts[q], block.starts[q + 1]
        slope[begin:end] = 0.0
        lower = begin
        for i in range(begin, end):
            if block.grade[i] != block.grade[lower]:
                lower = i
            # rows ascend by grade: everything before the first row of i's grade is lower
            own, cost = 0.0, 0.0
            for j in range(begin, lower):
                m = s[i] - s[j]
                t = 0.5 * (1.0 + block.y[i] - block.y[j])
                e = math.exp(-abs(m))
                pull = block.weight[j] * ((1.0 if m >= 0.0 else e) / (1.0 + e) - t)
                cost += block.weight[j] * (max(m, 0.0) + math.log1p(e) - t * m)
                own += pull
                slope[j] -= block.weight[i] * pull
            slope[i] += block.weight[i] * own
            loss += block.weight[i] * cost
    return loss


@jit
def likely_bend(block, s, z, first, last, out):  # type: ignore[no-untyped-def]
    """Write the second derivative along z: w_i Σ_j w_j σ(m)(1 − σ(m)) (z_i − z_j) over the partners j of i."""
    for q in range(first, last):
        begin, end = block.starts[q], block.starts[q + 1]
        out[begin:end] = 0.0
        lower = begin
        for i in range(begin, end):
            if block.grade[i] != block.grade[lower]:
                lower = i
            own = 0.0
            for j in range(begin, lower):
                e = math.exp(-abs(s[i] - s[j]))
                force = block.weight[j] * e / ((1.0 + e) * (1.0 + e)) * (z[i] - z[j])
                own += force
                out[j] -= block.weight[i] * force
            out[i] += block.weight[i] * own
