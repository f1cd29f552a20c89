# mypy: disable-error-code="no-untyped-call"
"""
Stochastic gradient descent for one weight vector with an L2 penalty; a step reads two rows.

Step i with example p (a difference of two rows, or one row): w ← (1 − η_i alpha) w + η_i g p, g the negative gradient
of the loss. w is stored as scale · v, so that shrinking costs O(1) and a step O(nnz(p)). The sum of the iterates for
averaging is stored as mass · v + z: with v_k = v_{k−1} + δ_k and mass_k = Σ_{j≤k} scale_j,
Σ_k scale_k v_k = mass_t v_t − Σ_k mass_{k−1} δ_k.
"""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit
from corank.core.pairs.losses import negative_gradient, pair_target
from corank.core.pairs.steps import BIAS, BIAS_SUM, MASS, NO_PARTNER, SCALE, bias_rate_at, draw_examples, rate_at
from corank.core.rows.access import add_difference, add_scaled, dot, dot_difference, prefetch_row

# examples drawn at once, and number of steps between prefetch and use of a row
_CHUNK = 512
_AHEAD = np.uint64(6)
# mass · v and z grow with the inverse of the scale before they cancel, which costs averaging digits
SMALLEST_SCALE = 1e-5
# 1 − η alpha of the first Pegasos step, up to rounding
ZERO = 1e-12

_FIRST, _SECOND = np.uint64(0), np.uint64(1)


@jit
def descend(state, plan, examples, rows, n):  # type: ignore[no-untyped-def]
    """Take n steps and change `state` in place."""
    v, z, y = state.weights, state.sums, examples.y
    entry = state.ledger[0]
    loss, rate, alpha, eta0, average = plan.loss, plan.rate, plan.alpha, plan.eta0, plan.average
    scale, mass, bias, bias_sum = entry[SCALE], entry[MASS], entry[BIAS], entry[BIAS_SUM]
    step = float(state.steps[0])
    buffer, scratch = np.empty((_CHUNK, 2), dtype=np.uint64), np.empty((_CHUNK, 2), dtype=np.uint64)
    left = np.uint64(n)
    while left > np.uint64(0):
        m = min(left, np.uint64(_CHUNK))
        draw_examples(state.rng_state, plan.mix, examples, scratch, buffer[:m])
        for k in range(min(m, _AHEAD)):
            _prefetch(rows, buffer[k, _FIRST], buffer[k, _SECOND])
        for k in range(m):
            if k + _AHEAD < m:
                _prefetch(rows, buffer[k + _AHEAD, _FIRST], buffer[k + _AHEAD, _SECOND])
            a, b = buffer[k, _FIRST], buffer[k, _SECOND]
            step += 1.0
            eta = rate_at(rate, alpha, eta0, step)
            if b == NO_PARTNER:
                g = negative_gradient(loss, y[a], scale * dot(rows, a, v) + bias)
            else:
                gap = y[a] - y[b] if len(y) > 0 else 1.0
                g = negative_gradient(loss, pair_target(loss, gap), scale * dot_difference(rows, a, b, v))
            shrink = 1.0 - eta * alpha
            scale *= shrink
            if scale < SMALLEST_SCALE:
                _fold(v, z, scale if shrink > ZERO else 0.0, mass)
                scale, mass = 1.0, 0.0
            if g != 0.0:
                c = eta * g / scale
                if b == NO_PARTNER:
                    add_scaled(rows, a, c, v)
                    if average:
                        add_scaled(rows, a, -c * mass, z)
                    if plan.fit_intercept:
                        bias += bias_rate_at(rate, alpha, plan.mix, eta0, step) * g
                else:
                    add_difference(rows, a, b, c, v)
                    if average:
                        add_difference(rows, a, b, -c * mass, z)
            mass += scale
            bias_sum += bias
        left -= m
    entry[SCALE], entry[MASS], entry[BIAS], entry[BIAS_SUM] = scale, mass, bias, bias_sum
    state.steps[0] += n


@jit
def _prefetch(rows, a, b):  # type: ignore[no-untyped-def]
    prefetch_row(rows, a)
    if b != NO_PARTNER:
        prefetch_row(rows, b)


@jit
def _fold(v, z, scale, mass):  # type: ignore[no-untyped-def]
    """
    Reset the scale to 1 and the mass to 0, before the scale underflows or if a first rate 1/alpha made it 0.

    The sum of the iterates so far moves to z, since mass · v would cancel against z.
    """
    for j in range(np.uint64(len(v))):
        z[j] += mass * v[j]
        v[j] *= scale
