# mypy: disable-error-code="no-untyped-call"
"""
The descent for M coupled weight vectors, and for penalties that look at each weight by itself.

A slot is one weight: column j as seen by a view. With margins m_v = w_v · p_v, a step with k examples and l unscored
pairs is, for each view v,

    w_v ← (1 − η alpha) w_v + η mean_k g(m_v) p_v − 4 coupling η mean_l Σ_{u≠v} (m_v − m_u) p_v

(equation 3 of the LCRA paper with means for sums), then, where asked, shrunk towards zero by η l1 or scaled into the
ball of radius 1/√alpha. In units of v = w / scale the L1 step k takes η_k l1 / scale_k from |v_j|, whatever v_j is, so
a weight that was not looked at pays the sum of what it owes when it is next looked at: exact, O(1) per weight.

AdaGrad is the primal-dual form of Duchi, Hazan and Singer (2011): with s_j the sum of all negative gradients, G_j the
sum of their squares and t the steps done, w_j = eta0 soft(s_j, t l1) / (√G_j + eta0 t alpha). Zeros are exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit
from corank.core.pairs.descent import SMALLEST_SCALE, ZERO
from corank.core.pairs.losses import negative_gradient, pair_target
from corank.core.pairs.sampling import draw_pairs
from corank.core.pairs.steps import (
    ADAGRAD,
    BIAS,
    BIAS_GRADIENT,
    BIAS_SQUARES,
    BIAS_SUM,
    MASS,
    NO_PARTNER,
    NORM,
    OWED,
    SCALE,
    UNSCORED_STREAM,
    bias_rate_at,
    draw_examples,
    on_prior,
    rate_at,
)
from corank.core.rows.access import list_difference, list_row, prefetch_row

# steps after which the tracked norms are summed anew
_RECOUNT = 65536
# rows and pairs drawn at once, where a step needs no more
_DRAWS = 256

_FIRST, _SECOND, _ONE = np.uint64(0), np.uint64(1), np.uint64(1)


class Columns(NamedTuple):
    """
    Which views see which columns.

    starts (n_features + 1,): column j owns the slots ``starts[j]`` to ``starts[j + 1]``.
    views (n_slots,): view of each slot.
    width: the most columns that a difference of two rows can have.
    """

    starts: NDArray[np.uint64]
    views: NDArray[np.uint64]
    width: int

    @property
    def of_slots(self) -> NDArray[np.int64]:
        """Column of each slot."""
        sizes = (self.starts[1:] - self.starts[:-1]).astype(np.int64)
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def of_views(self) -> list[NDArray[np.int64]]:
        """Ascending columns of each view."""
        return [self.of_slots[self.views == view] for view in range(1 + int(self.views.max(initial=0)))]


@jit
def descend_coupled(state, plan, columns, examples, rows, n):  # type: ignore[no-untyped-def]
    """
    Take n steps; `state` is changed in place.

    Parameters
    ----------
    state : DescentState
        One ledger entry per view.
    plan : DescentPlan
        Averaging and projection exclude l1 and AdaGrad.
    columns : Columns
        The views.
    examples : Examples
        The laws to draw from.
    rows : DenseRows or CSRRows
        The rows of X.
    n : int
        Number of steps.
    """
    M = np.uint64(len(state.ledger))
    k, coupled = np.uint64(plan.batch), plan.coupling > 0.0
    n_free = np.uint64(plan.unscored_batch) if coupled else np.uint64(0)
    chunk = max(np.uint64(_DRAWS) // (k + n_free), _ONE)
    drawn, scratch = np.empty((chunk * k, 2), dtype=np.uint64), np.empty((chunk * k, 2), dtype=np.uint64)
    free = np.empty((chunk * n_free, 2), dtype=np.uint64)
    listed = np.empty((k + n_free, np.uint64(columns.width) + _ONE), dtype=np.uint64)
    values, lengths = np.empty(listed.shape), np.empty(k + n_free, dtype=np.uint64)
    gradients = np.empty((k + n_free, M))
    left = np.uint64(n)
    while left > np.uint64(0):
        m = min(left, chunk)
        draw_examples(state.rng_state, plan.mix, examples, scratch, drawn[: m * k])
        if coupled:
            draw_pairs(state.rng_state[UNSCORED_STREAM], examples.unscored, free[: m * n_free])
        for step in range(m):
            for i in range(k + n_free):
                a, b = _rows_of(drawn, free, step, i, k, n_free)
                prefetch_row(rows, a)
                if b != NO_PARTNER:
                    prefetch_row(rows, b)
            for i in range(k + n_free):
                a, b = _rows_of(drawn, free, step, i, k, n_free)
                if b == NO_PARTNER:
                    lengths[i] = list_row(rows, a, listed[i], values[i])
                else:
                    lengths[i] = list_difference(rows, a, b, listed[i], values[i])
                _margins(state, plan, columns, listed[i, : lengths[i]], values[i], gradients[i])
                if i >= k:
                    _agree(plan, gradients[i])
                else:
                    _learn(state, plan, examples.y, examples.prior, a, b, gradients[i])
            state.steps[0] += 1
            eta = rate_at(plan.rate, plan.alpha, plan.eta0, float(state.steps[0]))
            _shrink(state, plan, columns, eta)
            for i in range(k + n_free):
                _add(state, plan, columns, listed[i, : lengths[i]], values[i], gradients[i], eta)
            _close(state, plan, columns, eta)
        left -= m


@inline
def _rows_of(drawn, free, step, i, k, n_free):  # type: ignore[no-untyped-def]
    """Return the two rows of list i of a step: k examples, then n_free unscored pairs."""
    if i < k:
        at = step * k + i
        return drawn[at, _FIRST], drawn[at, _SECOND]
    at = step * n_free + (i - k)
    return free[at, _FIRST], free[at, _SECOND]


@jit
def _margins(state, plan, columns, listed, values, out):  # type: ignore[no-untyped-def]
    """Write m_v for each view; weights that are looked at first pay what they owe."""
    v, sums, ledger = state.weights, state.sums, state.ledger
    starts, views = columns.starts, columns.views
    adagrad, pays = plan.rate == ADAGRAD, plan.l1 > 0.0 and plan.rate != ADAGRAD
    t = float(state.steps[0])
    out[:] = 0.0
    for i in range(np.uint64(len(listed))):
        for s in range(starts[listed[i]], starts[listed[i] + _ONE]):
            view = views[s]
            if adagrad:
                out[view] += values[i] * _dual_weight(v[s], sums[s], t, plan.l1, plan.alpha, plan.eta0)
            else:
                if pays:
                    _pay(v, sums, ledger[view], s)
                out[view] += values[i] * v[s]
    if not adagrad:
        for view in range(np.uint64(len(out))):
            out[view] *= ledger[view, SCALE]


@inline
def _dual_weight(s, G, t, l1, alpha, eta0):  # type: ignore[no-untyped-def]
    excess = abs(s) - t * l1
    # a weight that was never pulled has s = G = 0
    if excess <= 0.0:
        return 0.0
    return math.copysign(eta0 * excess / (math.sqrt(G) + eta0 * t * alpha), s)


@inline
def _pay(v, paid, entry, s):  # type: ignore[no-untyped-def]
    """Take from |v_s| what it owes of the L1 penalty; it stops at zero."""
    v[s] = math.copysign(max(0.0, abs(v[s]) - (entry[OWED] - paid[s])), v[s])
    paid[s] = entry[OWED]


@jit
def _learn(state, plan, y, prior, a, b, gradients):  # type: ignore[no-untyped-def]
    """Turn the margins of an example into gradients divided by the batch, and pull the biases."""
    ledger, t = state.ledger, float(state.steps[0])
    share = 1.0 / plan.batch
    eta = bias_rate_at(plan, t + 1.0)
    for view in range(np.uint64(len(gradients))):
        if b == NO_PARTNER:
            g = share * negative_gradient(plan.loss, y[a], on_prior(prior, gradients[view] + ledger[view, BIAS], a, b))
            if plan.fit_intercept and plan.rate == ADAGRAD:
                ledger[view, BIAS_GRADIENT] += g
                ledger[view, BIAS_SQUARES] += g * g
            elif plan.fit_intercept:
                # kept apart until every example of the batch has been looked at
                ledger[view, BIAS_GRADIENT] += eta * g
            gradients[view] = g
        else:
            gap = y[a] - y[b] if len(y) > 0 else 1.0
            gradients[view] = share * negative_gradient(
                plan.loss, pair_target(plan.loss, gap), on_prior(prior, gradients[view], a, b)
            )


@jit
def _agree(plan, gradients):  # type: ignore[no-untyped-def]
    """Turn the margins of an unscored pair into −4 coupling Σ_{u≠v} (m_v − m_u) / l."""
    total = gradients.sum()
    weight = 4.0 * plan.coupling / plan.unscored_batch
    for view in range(np.uint64(len(gradients))):
        gradients[view] = -weight * (len(gradients) * gradients[view] - total)


@jit
def _shrink(state, plan, columns, eta):  # type: ignore[no-untyped-def]
    if plan.rate == ADAGRAD:
        return
    shrink = 1.0 - eta * plan.alpha
    smallest = 1.0
    for view in range(np.uint64(len(state.ledger))):
        state.ledger[view, SCALE] *= shrink
        smallest = min(smallest, state.ledger[view, SCALE])
    if smallest < SMALLEST_SCALE:
        _fold(state, plan, columns, shrink > ZERO)


@jit
def _fold(state, plan, columns, keep):  # type: ignore[no-untyped-def]
    """Make every scale 1 again, as `corank.core.pairs.descent` does."""
    v, sums, ledger = state.weights, state.sums, state.ledger
    for s in range(np.uint64(len(v))):
        entry = ledger[columns.views[s]]
        if plan.l1 > 0.0:
            _pay(v, sums, entry, s)
            sums[s] = 0.0
        elif plan.average:
            sums[s] += entry[MASS] * v[s]
        v[s] *= entry[SCALE] if keep else 0.0
    for view in range(np.uint64(len(ledger))):
        scale = ledger[view, SCALE]
        ledger[view, NORM] *= scale * scale if keep else 0.0
        ledger[view, SCALE], ledger[view, MASS], ledger[view, OWED] = 1.0, 0.0, 0.0


@jit
def _add(state, plan, columns, listed, values, gradients, eta):  # type: ignore[no-untyped-def]
    """Add η pull_v p_v to each view (AdaGrad: to the sums of gradients and their squares); `gradients` is used up."""
    v, sums, ledger = state.weights, state.sums, state.ledger
    starts, views = columns.starts, columns.views
    adagrad, average, project = plan.rate == ADAGRAD, plan.average, plan.project
    idle = True
    for view in range(np.uint64(len(gradients))):
        idle &= gradients[view] == 0.0
        if not adagrad:
            gradients[view] *= eta / ledger[view, SCALE]
    if idle:
        return
    for i in range(np.uint64(len(listed))):
        for s in range(starts[listed[i]], starts[listed[i] + _ONE]):
            view = views[s]
            change = gradients[view] * values[i]
            if adagrad:
                sums[s] += change * change
            elif average:
                sums[s] -= ledger[view, MASS] * change
            if project:
                ledger[view, NORM] += change * (2.0 * v[s] + change)
            v[s] += change


@jit
def _close(state, plan, columns, eta):  # type: ignore[no-untyped-def]
    """Finish a step: biases, the L1 debt of the step, the ball, the sums of averaging."""
    ledger = state.ledger
    if plan.project and state.steps[0] % _RECOUNT == 0:
        ledger[:, NORM] = 0.0
        for s in range(np.uint64(len(state.weights))):
            ledger[columns.views[s], NORM] += state.weights[s] * state.weights[s]
    for view in range(np.uint64(len(ledger))):
        entry = ledger[view]
        if plan.rate == ADAGRAD:
            if entry[BIAS_SQUARES] > 0.0:
                entry[BIAS] = plan.eta0 * entry[BIAS_GRADIENT] / math.sqrt(entry[BIAS_SQUARES])
            continue
        entry[BIAS] += entry[BIAS_GRADIENT]
        entry[BIAS_GRADIENT] = 0.0
        entry[OWED] += eta * plan.l1 / entry[SCALE]
        if plan.project:
            norm = entry[SCALE] * math.sqrt(max(entry[NORM], 0.0))
            if norm * math.sqrt(plan.alpha) > 1.0:
                entry[SCALE] /= norm * math.sqrt(plan.alpha)
        entry[MASS] += entry[SCALE]
        entry[BIAS_SUM] += entry[BIAS]
