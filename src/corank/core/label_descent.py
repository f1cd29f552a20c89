# mypy: disable-error-code="no-untyped-call"
"""
Stochastic descent on the constraints of labels: a step draws an example and is pulled by all of its constraints.

With examples drawn in proportion to their weight times the number c of their constraints, the mean pull of the c is an
unbiased estimate of the pull of the mean over all constraints. The d weight vectors are w_r = scale · v_r under one
scale, and averaging keeps mass · v + z, both as in `corank.core.descent`; an L1 penalty is owed by all weights and paid
by each when it is looked at, and then z counts what was paid (Tsuruoka, Tsujii and Ananiadou, 2009).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.descent import SMALLEST_SCALE
from corank.core.dice import next_u64, roll
from corank.core.jit import jit
from corank.core.label_constraints import list_constraints, room
from corank.core.margins import pull
from corank.core.rows import add_scaled, dot, list_row
from corank.core.sgd_parts import PEGASOS, rate_at

SCALE, MASS, OWED, STEPS = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
N_ENTRIES = 4


class DescentPlan(NamedTuple):
    """
    What stays fixed: mean ℓ + alpha/2 ‖W‖² + l1 ‖W‖₁, by steps of rate 1/(alpha (i − 1) + 1/eta0).

    conversion: which constraints stand for an order.
    loss: code of `corank.core.margins`.
    fit_intercept: whether labels have levels; no penalty bends them, so that their rate falls as 1/√i.
    """

    conversion: tuple[bool, bool]
    loss: int
    alpha: float
    l1: float
    eta0: float
    fit_intercept: bool


class DescentState(NamedTuple):
    """
    What the steps change in place.

    weights, sums (d, n_features): v, and z or what was paid.
    biases, bias_sums (d,): levels and the sum of their iterates.
    ledger (N_ENTRIES,): SCALE; MASS = Σ scale; OWED = Σ η l1 / scale; STEPS.
    dice (4,): their state.
    """

    weights: NDArray[np.float64]
    sums: NDArray[np.float64]
    biases: NDArray[np.float64]
    bias_sums: NDArray[np.float64]
    ledger: NDArray[np.float64]
    dice: NDArray[np.uint64]


@jit
def descend_labels(rows, table, targets, plan, state, n):  # type: ignore[no-untyped-def]
    """
    Take n steps.

    table (n_examples, 2): alias table of the examples.
    """
    W, Z, ledger = state.weights, state.sums, state.ledger
    d, width = np.uint64(W.shape[0]), np.uint64(W.shape[1])
    u, g, out = np.zeros(d + 1), np.empty(d + 1), room(targets)
    columns, values = np.empty(width + 1, dtype=np.uint64), np.empty(width + 1)
    for _ in range(n):
        i = roll(next_u64(state.dice), table)
        if plan.l1 > 0.0:
            _pay(W, Z, ledger[OWED], columns[: list_row(rows, i, columns, values)])
        for r in range(d):
            u[r] = ledger[SCALE] * dot(rows, i, W[r]) + state.biases[r]
        c = list_constraints(targets, plan.conversion, i, out)
        g[:] = 0.0
        for k in range(c):
            a, b = out.winners[k], out.losers[k]
            h = pull(plan.loss, 1.0, u[a] - u[b]) / c
            g[a] += h
            g[b] -= h
        ledger[STEPS] += 1.0
        eta = rate_at(PEGASOS, plan.alpha, plan.eta0, ledger[STEPS])
        ledger[SCALE] *= 1.0 - eta * plan.alpha
        if ledger[SCALE] < SMALLEST_SCALE:
            _fold(W, Z, plan, ledger)
        for r in range(d):
            if g[r] != 0.0:
                change = eta * g[r] / ledger[SCALE]
                add_scaled(rows, i, change, W[r])
                if plan.l1 == 0.0:
                    add_scaled(rows, i, -change * ledger[MASS], Z[r])
                if plan.fit_intercept:
                    state.biases[r] += plan.eta0 / math.sqrt(ledger[STEPS]) * g[r]
            state.bias_sums[r] += state.biases[r]
        ledger[MASS] += ledger[SCALE]
        ledger[OWED] += eta * plan.l1 / ledger[SCALE]


@jit
def pay_all(W, paid, owed):  # type: ignore[no-untyped-def]
    """Let every weight pay what it owes."""
    for r in range(np.uint64(W.shape[0])):
        for j in range(np.uint64(W.shape[1])):
            W[r, j] = math.copysign(max(0.0, abs(W[r, j]) - (owed - paid[r, j])), W[r, j])
            paid[r, j] = owed


@jit
def _pay(W, paid, owed, columns):  # type: ignore[no-untyped-def]
    for r in range(np.uint64(W.shape[0])):
        for k in range(np.uint64(len(columns))):
            j = columns[k]
            W[r, j] = math.copysign(max(0.0, abs(W[r, j]) - (owed - paid[r, j])), W[r, j])
            paid[r, j] = owed


@jit
def _fold(W, Z, plan, ledger):  # type: ignore[no-untyped-def]
    """Make the scale 1 again, as `corank.core.descent` does."""
    if plan.l1 > 0.0:
        pay_all(W, Z, ledger[OWED])
        Z[:] = 0.0
    else:
        Z += ledger[MASS] * W
    W *= ledger[SCALE]
    ledger[SCALE], ledger[MASS], ledger[OWED] = 1.0, 0.0, 0.0
