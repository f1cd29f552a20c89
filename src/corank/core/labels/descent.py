# mypy: disable-error-code="no-untyped-call"
"""
Stochastic gradient descent on the constraints of labels: a step draws an example and uses all of its constraints.

Examples are drawn in proportion to their weight times their number c of constraints, so that the mean gradient of the
c is an unbiased estimate of the gradient of the mean over all constraints. Only sums S_t of negative gradients are
kept. The weights after step t are w = S_t / D_t with D_t = alpha t + 1/eta0: those of plain descent at the rate 1/D_t,
while a step changes only the columns of its row. The sum of the iterates is mass · S + z, mass = Σ 1/D_k, as in
`corank.core.pairs.steps`. With an L1 penalty, w is S_t moved towards 0 by t l1, divided by alpha t + √t/eta0: dual
averaging (Xiao, 2010), which keeps weights at exactly 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit
from corank.core.labels.constraints import buffers_for, list_constraints
from corank.core.pairs.losses import negative_gradient
from corank.core.random import draw_alias, next_u64
from corank.core.rows.access import add_scaled, dot, list_row

MASS, STEPS = np.uint64(0), np.uint64(1)
N_ENTRIES = 2


class DescentPlan(NamedTuple):
    """Settings of the descent."""

    conversion: tuple[bool, bool]  # which constraints represent an order
    loss: int  # code of `corank.core.pairs.losses`
    alpha: float  # alpha, l1: weights of ½‖W‖² and ‖W‖₁
    l1: float
    eta0: float  # first learning rate
    fit_intercept: bool  # whether labels have intercepts; these have no penalty, so their rate falls as 1/√t


class DescentState(NamedTuple):
    """State that the steps change in place."""

    gradient_sums: NDArray[np.float64]  # gradient_sums, sums (d, n_features): S and z
    sums: NDArray[np.float64]
    biases: NDArray[np.float64]  # biases, bias_sums (d,): intercepts and the sum of their iterates
    bias_sums: NDArray[np.float64]
    ledger: NDArray[np.float64]  # (N_ENTRIES,): MASS and STEPS
    rng_state: NDArray[np.uint64]  # (4,): state of the random generator


@jit
def descend_labels(rows, table, targets, plan, state, n):  # type: ignore[no-untyped-def]
    """
    Take n steps.

    table (n_examples, 2): alias table of the examples.
    """
    S, ledger = state.gradient_sums, state.ledger
    d, width = np.uint64(S.shape[0]), np.uint64(S.shape[1])
    u, g, out = np.zeros(d + 1), np.empty(d + 1), buffers_for(targets)
    columns, values = np.empty(width + 1, dtype=np.uint64), np.empty(width + 1)
    for _ in range(n):
        i = draw_alias(next_u64(state.rng_state), table)
        divisor = _divisor(plan, ledger[STEPS])
        if plan.l1 > 0.0:
            m = list_row(rows, i, columns, values)
            for r in range(d):
                total = 0.0
                for k in range(m):
                    total += values[k] * _moved(S[r, columns[k]], ledger[STEPS] * plan.l1)
                u[r] = total / divisor + state.biases[r]
        else:
            for r in range(d):
                u[r] = dot(rows, i, S[r]) / divisor + state.biases[r]
        c = list_constraints(targets, plan.conversion, i, out)
        g[:] = 0.0
        for k in range(c):
            a, b = out.winners[k], out.losers[k]
            h = negative_gradient(plan.loss, 1.0, u[a] - u[b]) / c
            g[a] += h
            g[b] -= h
        ledger[STEPS] += 1.0
        for r in range(d):
            if g[r] != 0.0:
                add_scaled(rows, i, g[r], S[r])
                if plan.l1 == 0.0:
                    add_scaled(rows, i, -g[r] * ledger[MASS], state.sums[r])
                if plan.fit_intercept:
                    state.biases[r] += plan.eta0 / math.sqrt(ledger[STEPS]) * g[r]
            state.bias_sums[r] += state.biases[r]
        ledger[MASS] += 1.0 / _divisor(plan, ledger[STEPS])


@jit
def last_weights(state, plan, out):  # type: ignore[no-untyped-def]
    """Write the weights after the last step."""
    steps = state.ledger[STEPS]
    for r in range(np.uint64(out.shape[0])):
        for j in range(np.uint64(out.shape[1])):
            out[r, j] = _moved(state.gradient_sums[r, j], steps * plan.l1) / _divisor(plan, steps)


@inline
def _divisor(plan, steps):  # type: ignore[no-untyped-def]
    return plan.alpha * steps + (math.sqrt(max(steps, 1.0)) if plan.l1 > 0.0 else 1.0) / plan.eta0


@inline
def _moved(s, by):  # type: ignore[no-untyped-def]
    """Return s moved towards 0 by at most its size (soft thresholding)."""
    return math.copysign(max(0.0, abs(s) - by), s)
