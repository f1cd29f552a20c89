# mypy: disable-error-code="no-untyped-call"
"""
Distances and correlation of two orders of the same labels, with ties. An order is given by scores, higher is better.

The distances are those of Fagin, Kumar, Mahdian, Sivakumar and Vee (Comparing and aggregating rankings with ties,
2004), divided by their largest value: K^(½), where a pair tied in only one order counts one half, and the footrule on
average positions. Spearman's ρ is that of scipy. A label that is NaN in either order is left out.
"""

from __future__ import annotations

import math

import numpy as np

from corank.core.jit import jit

KENDALL, FOOTRULE, RHO = 0, 1, 2


@jit
def kendall(a, b):  # type: ignore[no-untyped-def]
    """Return K^(½) of two orders over the number of pairs."""
    n = np.uint64(len(a))
    wrong = 0.0
    for i in range(n):
        for j in range(i + np.uint64(1), n):
            x, y = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
            # 1 where the two disagree, ½ where one of them is tied
            wrong += 0.5 * abs(x - y)
    return wrong / (0.5 * n * (n - 1.0))


@jit
def footrule(a, b):  # type: ignore[no-untyped-def]
    """Return Σ |position in a − position in b| over its largest value, ⌊n²/2⌋."""
    n = len(a)
    total = 0.0
    for i in range(np.uint64(n)):
        total += abs(_position(a, i) - _position(b, i))
    return total / (n * n // 2)


@jit
def rho(a, b):  # type: ignore[no-untyped-def]
    """Return Spearman's ρ, the correlation of average positions; NaN where all labels of an order are tied."""
    n = len(a)
    middle = 0.5 * (n + 1.0)
    both, in_a, in_b = 0.0, 0.0, 0.0
    for i in range(np.uint64(n)):
        x, y = _position(a, i) - middle, _position(b, i) - middle
        both += x * y
        in_a += x * x
        in_b += y * y
    return both / math.sqrt(in_a * in_b) if in_a > 0.0 and in_b > 0.0 else math.nan


@jit
def _position(a, i):  # type: ignore[no-untyped-def]
    """Return the average position of label i, 1 for the best."""
    ahead, tied = 0, 0
    for j in range(np.uint64(len(a))):
        ahead += a[j] > a[i]
        tied += a[j] == a[i]
    return ahead + 0.5 * (tied + 1)


@jit
def compare_orders(kind, A, B, out):  # type: ignore[no-untyped-def]
    """Write how each row of A compares with that of B; NaN where fewer than two labels are known in both."""
    d = A.shape[1]
    a, b = np.empty(d), np.empty(d)
    for i in range(len(A)):
        n = 0
        for r in range(d):
            if not (math.isnan(A[i, r]) or math.isnan(B[i, r])):
                a[n], b[n] = A[i, r], B[i, r]
                n += 1
        if n < 2:
            out[i] = math.nan
        elif kind == KENDALL:
            out[i] = kendall(a[:n], b[:n])
        elif kind == FOOTRULE:
            out[i] = footrule(a[:n], b[:n])
        else:
            out[i] = rho(a[:n], b[:n])
