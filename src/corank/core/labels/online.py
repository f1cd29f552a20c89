# mypy: disable-error-code="no-untyped-call"
"""
Algorithm 1 of Brinker and Hüllermeier (Calibrated label-ranking, 2005): one example, one step, linear or dual.

An example with loss > 0 moves the weights of label i by loss · β_i / c · x. β_i counts its violated constraints, +1 if
the label should be higher and −1 if it should be lower; c counts all violated constraints; a tie violates. For
averaging, z = Σ_k (k − 1) δ_k is kept, δ_k the change at example k: the mean of the iterates after T is w − z/T.

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
from corank.core.labels.constraints import (
    IRRELEVANT,
    RELEVANT,
    UNKNOWN,
    buffers_for,
    footrule,
    kendall,
    list_constraints,
)
from corank.core.pairs.losses import negative_gradient
from corank.core.random import draw_alias, next_u64
from corank.core.rows.access import add_scaled, dot, list_row

# projection of utilities before they are compared with the truth: the order, the order of labels above the zero point,
# the set of those labels, the best label
ORDER, TOP, SET, BEST = 0, 1, 2, 3
# losses
SHARE, KENDALL, FOOTRULE, GIVEN = 0, 1, 2, 3

SEEN, CUMULATED, UPDATES = np.uint64(0), np.uint64(1), np.uint64(2)
N_TALLIES = 3


class StepPlan(NamedTuple):
    """Settings of the steps."""

    conversion: tuple[bool, bool]  # which constraints represent an order
    loss: int  # loss, projection: codes of this module
    projection: int
    average: bool  # whether z is kept
    fit_intercept: bool  # whether every row has one more column, of ones
    given: float = 0.0  # the loss of the example, if it is computed elsewhere


class StepState(NamedTuple):
    """
    State that the steps change in place.

    weights, sums (d, n_features), or (n_rows, d) with a kernel: w and z; z is empty without averaging.
    biases, bias_sums (d,): the same for the column of ones.
    tally (N_TALLIES,): number of examples, sum of their losses before each step, and number of updates.
    """

    weights: NDArray[np.float64]
    sums: NDArray[np.float64]
    biases: NDArray[np.float64]
    bias_sums: NDArray[np.float64]
    tally: NDArray[np.float64]


@jit
def learn_linear(rows, order, targets, plan, state):  # type: ignore[no-untyped-def]
    """Take one step for each of the examples `order`; u_r = w_r · x + b_r."""
    d = np.uint64(len(state.biases))
    u, betas, out, scratch = np.zeros(d + 1), np.empty(d + 1), buffers_for(targets), np.empty((2, d + 1))
    for k in range(len(order)):
        i = order[k]
        for r in range(d):
            u[r] = dot(rows, i, state.weights[r]) + state.biases[r]
        step = _step(targets, plan, i, u, betas, out, scratch, state.tally)
        if step == 0.0:
            continue
        before = state.tally[SEEN] - 1.0
        for r in range(d):
            if betas[r] != 0.0:
                add_scaled(rows, i, step * betas[r], state.weights[r])
                if plan.average:
                    add_scaled(rows, i, step * betas[r] * before, state.sums[r])
        _move_biases(plan, state, step, betas, before)


@jit
def learn_dual(K, own, targets, plan, state):  # type: ignore[no-untyped-def]
    """
    Take one step for each example in turn; u_r(x) = Σ_j a_jr k(x_j, x) + b_r.

    K (n, m): similarities of the examples to all rows that may have coefficients.
    own (n,): the row of each example among those.
    """
    d = np.uint64(len(state.biases))
    u, betas, out, scratch = np.zeros(d + 1), np.empty(d + 1), buffers_for(targets), np.empty((2, d + 1))
    for i in range(np.uint64(len(own))):
        u[:d] = state.biases
        for j in range(np.uint64(K.shape[1])):
            for r in range(d):
                u[r] += K[i, j] * state.weights[j, r]
        step = _step(targets, plan, i, u, betas, out, scratch, state.tally)
        if step == 0.0:
            continue
        before = state.tally[SEEN] - 1.0
        for r in range(d):
            state.weights[own[i], r] += step * betas[r]
            if plan.average:
                state.sums[own[i], r] += step * betas[r] * before
        _move_biases(plan, state, step, betas, before)


@jit
def _move_biases(plan, state, step, betas, before):  # type: ignore[no-untyped-def]
    if plan.fit_intercept:
        for r in range(np.uint64(len(state.biases))):
            state.biases[r] += step * betas[r]
            state.bias_sums[r] += step * betas[r] * before


@jit
def _step(targets, plan, i, u, betas, out, scratch, tally):  # type: ignore[no-untyped-def]
    """Write β and return loss / c; 0 if example i changes nothing."""
    n = list_constraints(targets, plan.conversion, i, out)
    betas[:] = 0.0
    violated = 0.0
    for k in range(n):
        a, b = out.winners[k], out.losers[k]
        # arithmetic instead of a branch, which processors cannot predict here
        wrong = np.float64(u[a] <= u[b])
        betas[a] += wrong
        betas[b] -= wrong
        violated += wrong
    tally[SEEN] += 1.0
    if violated == 0.0:
        return 0.0
    loss = violated / n
    if plan.loss == GIVEN:
        loss = plan.given
    elif plan.loss != SHARE:
        loss = _distance(targets.levels[i], targets.sides[i], u, plan, scratch)
    tally[CUMULATED] += loss
    if loss > 0.0:
        tally[UPDATES] += 1.0
    return loss / violated


@jit
def _distance(levels, sides, u, plan, scratch):  # type: ignore[no-untyped-def]
    """
    Return the distance of the projected utilities from the true order of the labels of known level.

    If a full order is calibrated, the zero point is one of the labels. A single label with a violated constraint has
    distance 1.
    """
    truth, result = scratch[0], scratch[1]
    n = 0
    best, low, high = -math.inf, math.inf, -math.inf
    for r in range(np.uint64(len(levels))):
        best = max(best, u[r])
        if levels[r] == UNKNOWN:
            continue
        truth[n], result[n] = levels[r], u[r]
        if plan.projection == TOP:
            result[n] = max(u[r], 0.0)
        elif plan.projection == SET:
            result[n] = 1.0 if u[r] > 0.0 else 0.0
        n += 1
        if sides[r] == RELEVANT:
            low = min(low, levels[r])
        elif sides[r] == IRRELEVANT:
            high = max(high, levels[r])
    if plan.projection == BEST:
        for k in range(n):
            result[k] = 1.0 if result[k] == best else 0.0
    if plan.projection == ORDER and (low < math.inf or high > -math.inf):
        truth[n], result[n] = low - 0.5 if low < math.inf else high + 0.5, 0.0
        n += 1
    if n < 2:
        return 1.0
    return kendall(truth[:n], result[:n]) if plan.loss == KENDALL else footrule(truth[:n], result[:n])


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
