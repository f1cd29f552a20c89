# mypy: disable-error-code="no-untyped-call"
"""What all constraints of examples cost at given utilities, with first and second derivatives, example by example."""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit
from corank.core.labels.constraints import list_constraints, room
from corank.core.pairs.losses import cost


@jit
def label_costs(targets, conversion, loss, U, weights, slopes, first, last):  # type: ignore[no-untyped-def]
    """
    Return Σ_i v_i Σ ℓ(1, u_winner − u_loser) over the examples first..last−1, and write its slope in U to `slopes`.

    U, slopes (n, d): utilities of the labels, and derivatives by them; the zero point has no column.
    weights (n,): v.
    """
    out = room(targets)
    d = U.shape[1]
    u, g = np.zeros(d + 1), np.zeros(d + 1)
    total = 0.0
    for i in range(first, last):
        u[:d] = U[i]
        g[:] = 0.0
        if weights[i] > 0.0:
            for k in range(list_constraints(targets, conversion, i, out)):
                a, b = out.winners[k], out.losers[k]
                value, pull, _ = cost(loss, 1.0, u[a] - u[b])
                total += weights[i] * value
                g[a] -= weights[i] * pull
                g[b] += weights[i] * pull
        slopes[i] = g[:d]
    return total


@jit
def label_bends(targets, conversion, loss, U, weights, V, bends, first, last):  # type: ignore[no-untyped-def]
    """Write the second derivative at U times V to `bends`, all (n, d), for the examples first..last−1."""
    out = room(targets)
    d = U.shape[1]
    u, v, h = np.zeros(d + 1), np.zeros(d + 1), np.zeros(d + 1)
    for i in range(first, last):
        u[:d] = U[i]
        v[:d] = V[i]
        h[:] = 0.0
        if weights[i] > 0.0:
            for k in range(list_constraints(targets, conversion, i, out)):
                a, b = out.winners[k], out.losers[k]
                bend = weights[i] * cost(loss, 1.0, u[a] - u[b])[2] * (v[a] - v[b])
                h[a] += bend
                h[b] -= bend
        bends[i] = h[:d]
