# mypy: disable-error-code="no-untyped-call"
"""
Algorithm 1 of Brinker and Hüllermeier (Calibrated label-ranking, 2005): one example, one step, linear or dual.

An example with loss > 0 moves the weights of label i by loss · β_i / c · x. β_i counts its violated constraints, +1 if
the label should be higher and −1 if it should be lower; c counts all violated constraints; a tie violates. For
averaging, z = Σ_k (k − 1) δ_k is kept, δ_k the change at example k: the mean of the iterates after T is w − z/T.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit
from corank.core.labels.constraints import (
    IRRELEVANT,
    RELEVANT,
    UNKNOWN,
    buffers_for,
    footrule,
    kendall,
    list_constraints,
)
from corank.core.rows.access import add_scaled, dot

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
