# mypy: disable-error-code="no-untyped-call"
"""
Stochastic gradient descent for M coupled weight vectors (views), L1 penalties and AdaGrad.

A slot is one weight: column j in a view. With margins m_v = w_v · p_v, a step with k examples and l unjudged
pairs is, for each view v,

    w_v ← (1 − η_v alpha_v) w_v + η_v mean_k g(m_v) p_v − 4 coupling η_v mean_l Σ_{u≠v} (m_v − m_u) p_v

(equation 3 of the LCRA paper with means instead of sums and a penalty of each view), optionally followed by soft
thresholding with η l1 or by projection onto the ball of radius 1/√alpha. In units of v = w / scale, step k of the L1
penalty subtracts η_k l1 / scale_k from |v_j|, independent of v_j. The penalty is therefore applied lazily, when a
weight is next used: exact, in O(1) per weight.

AdaGrad is the primal-dual form of Duchi, Hazan and Singer (2011): with s_j the sum of all negative gradients, G_j the
sum of their squares and t the steps done, w_j = eta0 soft(s_j, t l1) / (√G_j + eta0 t alpha). Zeros are exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit
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
    SMALLEST_SCALE,
    UNSCORED_STREAM,
    ZERO,
    add_prior,
    bias_rate_at,
    draw_examples,
    rate_at,
)
from corank.core.rows.access import list_difference, list_row, prefetch_row

# steps after which tracked norms are recomputed
_RECOUNT = 65536
# rows and pairs drawn at once, unless a step needs more
_DRAWS = 256

_FIRST, _SECOND, _ONE = np.uint64(0), np.uint64(1), np.uint64(1)


class Columns(NamedTuple):
    """The columns of each view."""

    starts: NDArray[np.uint64]  # (n_features + 1,): column j has the slots ``starts[j]`` to ``starts[j + 1]``
    views: NDArray[np.uint64]  # (n_slots,): view of each slot
    width: int  # largest number of non-zero columns of a difference of two rows

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
    """Take n steps and change `state` in place."""
    M = np.uint64(len(state.ledger))
    k, coupled = np.uint64(plan.batch), plan.coupling > 0.0
    n_free = np.uint64(plan.unscored_batch) if coupled else np.uint64(0)
    chunk = max(np.uint64(_DRAWS) // (k + n_free), _ONE)
    drawn, scratch = np.empty((chunk * k, 2), dtype=np.uint64), np.empty((chunk * k, 2), dtype=np.uint64)
    free = np.empty((chunk * n_free, 2), dtype=np.uint64)
    listed = np.empty((k + n_free, np.uint64(columns.width) + _ONE), dtype=np.uint64)
    values, lengths = np.empty(listed.shape), np.empty(k + n_free, dtype=np.uint64)
    gradients, etas = np.empty((k + n_free, M)), np.empty(M)
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
                    _couple(plan, gradients[i])
                else:
                    _learn(state, plan, examples.y, examples.prior, a, b, gradients[i])
            state.steps[0] += 1
            for view in range(M):
                etas[view] = rate_at(plan.rate, _alpha(plan, view), _eta0(plan, view), float(state.steps[0]))
            _shrink(state, plan, columns, etas)
            for i in range(k + n_free):
                _add(state, plan, columns, listed[i, : lengths[i]], values[i], gradients[i], etas)
            _close(state, plan, columns, etas)
        left -= m


@inline
def _alpha(plan, view):  # type: ignore[no-untyped-def]
    return plan.alpha * plan.view_alphas[view] if len(plan.view_alphas) > 0 else plan.alpha


@inline
def _eta0(plan, view):  # type: ignore[no-untyped-def]
    return plan.eta0 * plan.view_rates[view] if len(plan.view_rates) > 0 else plan.eta0


@inline
def _rows_of(drawn, free, step, i, k, n_free):  # type: ignore[no-untyped-def]
    """Return the two rows of item i of a step: k examples, then n_free unjudged pairs."""
    if i < k:
        index = step * k + i
        return drawn[index, _FIRST], drawn[index, _SECOND]
    index = step * n_free + (i - k)
    return free[index, _FIRST], free[index, _SECOND]


@jit
def _margins(state, plan, columns, listed, values, out):  # type: ignore[no-untyped-def]
    """Write m_v for each view, after applying the pending L1 penalty of the weights."""
    v, sums, ledger = state.weights, state.sums, state.ledger
    starts, views = columns.starts, columns.views
    adagrad, has_l1 = plan.rate == ADAGRAD, plan.l1 > 0.0 and plan.rate != ADAGRAD
    t = float(state.steps[0])
    out[:] = 0.0
    for i in range(np.uint64(len(listed))):
        for s in range(starts[listed[i]], starts[listed[i] + _ONE]):
            view = views[s]
            if adagrad:
                out[view] += values[i] * _dual_weight(v[s], sums[s], t, plan.l1, _alpha(plan, view), _eta0(plan, view))
            else:
                if has_l1:
                    _apply_l1(v, sums, ledger[view], s)
                out[view] += values[i] * v[s]
    if not adagrad:
        for view in range(np.uint64(len(out))):
            out[view] *= ledger[view, SCALE]


@inline
def _dual_weight(s, G, t, l1, alpha, eta0):  # type: ignore[no-untyped-def]
    excess = abs(s) - t * l1
    # a weight without any gradient has s = G = 0
    if excess <= 0.0:
        return 0.0
    return math.copysign(eta0 * excess / (math.sqrt(G) + eta0 * t * alpha), s)


@inline
def _apply_l1(v, paid, entry, s):  # type: ignore[no-untyped-def]
    """Apply the pending L1 penalty to v_s."""
    v[s] = math.copysign(max(0.0, abs(v[s]) - (entry[OWED] - paid[s])), v[s])
    paid[s] = entry[OWED]


@jit
def _learn(state, plan, y, prior, a, b, gradients):  # type: ignore[no-untyped-def]
    """Replace the margins of an example by negative gradients divided by the batch size, and update the biases."""
    ledger, t = state.ledger, float(state.steps[0])
    share = 1.0 / plan.batch
    for view in range(np.uint64(len(gradients))):
        eta = bias_rate_at(plan.rate, _alpha(plan, view), plan.mix, _eta0(plan, view), t + 1.0)
        if b == NO_PARTNER:
            g = share * negative_gradient(plan.loss, y[a], add_prior(prior, gradients[view] + ledger[view, BIAS], a, b))
            if plan.fit_intercept and plan.rate == ADAGRAD:
                ledger[view, BIAS_GRADIENT] += g
                ledger[view, BIAS_SQUARES] += g * g
            elif plan.fit_intercept:
                # added to the bias after the whole batch
                ledger[view, BIAS_GRADIENT] += eta * g
            gradients[view] = g
        else:
            gap = y[a] - y[b] if len(y) > 0 else 1.0
            gradients[view] = share * negative_gradient(
                plan.loss, pair_target(plan.loss, gap), add_prior(prior, gradients[view], a, b)
            )


@jit
def _couple(plan, gradients):  # type: ignore[no-untyped-def]
    """Replace the margins of an unjudged pair by −4 coupling Σ_{u≠v} (m_v − m_u) / l."""
    total = gradients.sum()
    weight = 4.0 * plan.coupling / plan.unscored_batch
    for view in range(np.uint64(len(gradients))):
        gradients[view] = -weight * (len(gradients) * gradients[view] - total)


@jit
def _shrink(state, plan, columns, etas):  # type: ignore[no-untyped-def]
    if plan.rate == ADAGRAD:
        return
    smallest = 1.0
    for view in range(np.uint64(len(state.ledger))):
        shrink = 1.0 - etas[view] * _alpha(plan, view)
        # a first rate of 1/alpha makes the weights exactly 0
        state.ledger[view, SCALE] *= shrink if shrink > ZERO else 0.0
        smallest = min(smallest, state.ledger[view, SCALE])
    if smallest < SMALLEST_SCALE:
        _fold(state, plan, columns)


@jit
def _fold(state, plan, columns):  # type: ignore[no-untyped-def]
    """Reset every scale to 1, as in `corank.core.pairs.steps`."""
    v, sums, ledger = state.weights, state.sums, state.ledger
    for s in range(np.uint64(len(v))):
        entry = ledger[columns.views[s]]
        if plan.l1 > 0.0:
            _apply_l1(v, sums, entry, s)
            sums[s] = 0.0
        elif plan.average:
            sums[s] += entry[MASS] * v[s]
        v[s] *= entry[SCALE]
    for view in range(np.uint64(len(ledger))):
        scale = ledger[view, SCALE]
        ledger[view, NORM] *= scale * scale
        ledger[view, SCALE], ledger[view, MASS], ledger[view, OWED] = 1.0, 0.0, 0.0


@jit
def _add(state, plan, columns, listed, values, gradients, etas):  # type: ignore[no-untyped-def]
    """Add η_v gradient_v p_v to each view (AdaGrad: to the sums of gradients and squares); overwrites `gradients`."""
    v, sums, ledger = state.weights, state.sums, state.ledger
    starts, views = columns.starts, columns.views
    adagrad, average, project = plan.rate == ADAGRAD, plan.average, plan.project
    idle = True
    for view in range(np.uint64(len(gradients))):
        idle &= gradients[view] == 0.0
        if not adagrad:
            gradients[view] *= etas[view] / ledger[view, SCALE]
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
def _close(state, plan, columns, etas):  # type: ignore[no-untyped-def]
    """Finish a step: biases, pending L1 penalty, projection, sums for averaging."""
    ledger = state.ledger
    if plan.project and state.steps[0] % _RECOUNT == 0:
        ledger[:, NORM] = 0.0
        for s in range(np.uint64(len(state.weights))):
            ledger[columns.views[s], NORM] += state.weights[s] * state.weights[s]
    for view in range(np.uint64(len(ledger))):
        entry = ledger[view]
        if plan.rate == ADAGRAD:
            if entry[BIAS_SQUARES] > 0.0:
                entry[BIAS] = _eta0(plan, view) * entry[BIAS_GRADIENT] / math.sqrt(entry[BIAS_SQUARES])
            continue
        entry[BIAS] += entry[BIAS_GRADIENT]
        entry[BIAS_GRADIENT] = 0.0
        entry[OWED] += etas[view] * plan.l1 / entry[SCALE]
        if plan.project:
            norm = entry[SCALE] * math.sqrt(max(entry[NORM], 0.0))
            root = math.sqrt(_alpha(plan, view))
            if norm * root > 1.0:
                entry[SCALE] /= norm * root
        entry[MASS] += entry[SCALE]
        entry[BIAS_SUM] += entry[BIAS]
