# mypy: disable-error-code="no-untyped-call"
"""
Stochastic gradient descent on pairs: settings, state, learning rates, sampling, and steps of one weight vector.

Step i with example p (a difference of two rows, or one row): w ← (1 − η_i alpha) w + η_i g p, g the negative gradient
of the loss. w is stored as scale · v, so that shrinking costs O(1) and a step O(nnz(p)). The sum of the iterates for
averaging is stored as mass · v + z: with v_k = v_{k−1} + δ_k and mass_k = Σ_{j≤k} scale_j,
Σ_k scale_k v_k = mass_t v_t − Σ_k mass_{k−1} δ_k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit
from corank.core.pairs.losses import negative_gradient, pair_target
from corank.core.pairs.sampling import PairIndex, draw_pairs
from corank.core.random import draw_alias, next_u64, random_uniform
from corank.core.rows.access import add_difference, add_scaled, dot, dot_difference, prefetch_row

PEGASOS, CONSTANT, SQRT, ADAGRAD = 0, 1, 2, 3

# one random generator per kind of draw, so that the kinds do not shift each other
KIND_STREAM, PAIR_STREAM, ROW_STREAM, UNSCORED_STREAM = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
N_STREAMS = 4

SCALE, MASS, NORM, OWED, BIAS, BIAS_SUM, BIAS_GRADIENT, BIAS_SQUARES = 0, 1, 2, 3, 4, 5, 6, 7
N_ENTRIES = 8

NO_PARTNER = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Second row of an example that is a single row."""

_FIRST, _SECOND, _ONE = np.uint64(0), np.uint64(1), np.uint64(1)


class SGDPlan(NamedTuple):
    """
    Settings of a descent.

    average, project, fit_intercept: whether to average the iterates, to project onto the ball of radius 1/√alpha, and
        to learn a bias from single rows.
    view_alphas, view_rates (n_views,) or (0,): factors of alpha and eta0 for each view; empty if all are 1. Only
        `corank.core.pairs.coupled_descent` reads them.
    """

    loss: int  # loss, rate: codes of `corank.core.pairs.losses` and of this module
    rate: int
    alpha: float  # alpha, l1: weights of ½‖w‖² and ‖w‖₁
    l1: float
    eta0: float  # first rate
    mix: float  # probability that an example is a single row instead of a pair
    coupling: float  # weight of the disagreement of views; if 0, no unjudged pairs are drawn
    batch: int  # batch, unscored_batch: examples and unjudged pairs per step
    unscored_batch: int
    average: bool
    project: bool
    fit_intercept: bool
    view_alphas: NDArray[np.float64] = np.empty(0)
    view_rates: NDArray[np.float64] = np.empty(0)

    @property
    def first_rate(self) -> float:
        """Largest first rate of a view."""
        return float(np.max(self.eta0 * self.view_rates)) if len(self.view_rates) else self.eta0

    @property
    def kind(self) -> str:
        """Meaning of the arrays of a `SGDState` under this plan."""
        if self.rate == ADAGRAD:
            return "AdaGrad"
        if self.average or self.project:
            return " and ".join(["averaged"] * self.average + ["projected"] * self.project)
        return "L1-penalised" if self.l1 > 0.0 else "plain"


class SGDState(NamedTuple):
    """
    State of a descent; kernels change it in place.

    weights (n_slots,): v, where the weights are w = scale · v; with AdaGrad the sum of all negative gradients.
    sums (n_slots,): depending on the plan, z of averaging (Σ_k w_k = mass · v + z), the part of the L1 penalty that was
        applied to each weight, or AdaGrad's sums of squares.
    ledger (n_views, N_ENTRIES): per view SCALE; MASS = Σ_k scale_k; NORM = ‖v‖²; OWED = Σ_k η_k l1 / scale_k; BIAS;
        BIAS_SUM for averaging; BIAS_GRADIENT and BIAS_SQUARES for AdaGrad.
    """

    weights: NDArray[np.float64]
    sums: NDArray[np.float64]
    ledger: NDArray[np.float64]
    rng_state: NDArray[np.uint64]  # (N_STREAMS, 4): states of the random generators
    steps: NDArray[np.int64]  # (1,): steps done


class RowIndex(NamedTuple):
    """Distribution over single rows."""

    table: NDArray[np.uint64]  # (n, 2): alias table
    rows: NDArray[np.uint32]  # (n,): the row of each entry


class Examples(NamedTuple):
    """The examples of a descent."""

    y: NDArray[np.float64]  # (n_rows,) or (0,): scores; empty if all pairs have a difference of 1
    prior: NDArray[np.float64] | None  # (n_rows,): prior scores; None if all are 0
    pairs: PairIndex  # pairs, unscored: distributions of scored and of unjudged pairs
    unscored: PairIndex
    rows: RowIndex  # distribution of single rows


@jit
def add_prior(prior, margin, a, b):  # type: ignore[no-untyped-def]
    """Add the prior scores to the margin of rows a and b, or of row a alone."""
    if prior is None:  # numba drops the other branch
        return margin
    return margin + prior[a] - (0.0 if b == NO_PARTNER else prior[b])


@inline
def rate_at(rate, alpha, eta0, step):  # type: ignore[no-untyped-def]
    """
    Return η_i of step i = 1, 2, ...

    Pegasos is 1/(alpha (i − 1) + 1/eta0), which is 1/(alpha i) for eta0 = 1/alpha.
    """
    if rate == PEGASOS:
        return 1.0 / (alpha * (step - 1.0) + 1.0 / eta0)
    if rate == SQRT:
        return eta0 / math.sqrt(step)
    return eta0


@inline
def bias_rate_at(rate, alpha, mix, eta0, step):  # type: ignore[no-untyped-def]
    """
    Return η_i for the bias, which is not penalised and needs a larger rate than the weights if alpha is large.

    The curvature along the bias is mix times ℓ''; an eighth is a conservative estimate of ℓ'' for every loss.
    """
    return rate_at(rate, min(alpha, 0.125 * mix), eta0, step)


@jit
def draw_examples(rng_state, mix, examples, scratch, out):  # type: ignore[no-untyped-def]
    """
    Fill `out` with examples: pairs (winner, loser), or (row, NO_PARTNER) with probability `mix`.

    The sequence of examples does not depend on how it is split into calls.
    """
    n = np.uint64(len(out))
    if mix <= 0.0:
        draw_pairs(rng_state[PAIR_STREAM], examples.pairs, out)
        return
    n_pairs = np.uint64(0)
    for i in range(n):
        if mix >= 1.0 or random_uniform(rng_state[KIND_STREAM]) < mix:
            entry = draw_alias(next_u64(rng_state[ROW_STREAM]), examples.rows.table)
            out[i, _FIRST], out[i, _SECOND] = examples.rows.rows[entry], NO_PARTNER
        else:
            out[i, _SECOND] = _FIRST
            n_pairs += _ONE
    draw_pairs(rng_state[PAIR_STREAM], examples.pairs, scratch[:n_pairs])
    taken = np.uint64(0)
    for i in range(n):
        if out[i, _SECOND] != NO_PARTNER:
            out[i, _FIRST], out[i, _SECOND] = scratch[taken, _FIRST], scratch[taken, _SECOND]
            taken += _ONE


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
