"""The compiled loops against a loop in numpy that writes every weight at every step, fed with the same draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from corank.base.pairs.losses import LOSSES
from corank.core.pairs.coupled_descent import descend_coupled
from corank.core.pairs.losses import HINGE, LOGISTIC, SQUARED, SQUARED_HINGE
from corank.core.pairs.sampling import draw_pairs
from corank.core.pairs.steps import (
    ADAGRAD,
    CONSTANT,
    NO_PARTNER,
    PEGASOS,
    SQRT,
    UNSCORED_STREAM,
    SGDPlan,
    descend,
    draw_examples,
)
from corank.core.random import seed_state
from corank.core.rows.access import ScaledRows
from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.models.linear.descent import DescentProblem, Objective, ParallelDescent, columns_of_views

PROBLEM = make_ranking(15, (2, 8), random_state=1)
Y = mask_scores(PROBLEM.y / PROBLEM.y.max(), fraction=0.4, random_state=2)
X = np.where(np.random.default_rng(0).random(PROBLEM.X.shape) < 0.5, PROBLEM.X, 0.0)[:, :8]
DATA = RankingData.of(X, Y, PROBLEM.qid)
ONE = [np.arange(X.shape[1])]
VIEWS = [np.array([0, 1, 2, 3]), np.array([3, 4, 5]), np.array([6, 7])]


def plan(**changes):
    usual = SGDPlan(
        loss=HINGE, rate=PEGASOS, alpha=0.05, l1=0.0, eta0=20.0, mix=0.0, coupling=0.0, batch=1, unscored_batch=1,
        average=False, project=False, fit_intercept=True,
    )  # fmt: skip
    return usual._replace(**changes)


def task(p, views=None, data=DATA):
    loss = next(loss for loss in LOSSES.values() if loss.code == p.loss)
    objective = Objective(loss, p.alpha, l1=p.l1, mix=p.mix, coupling=p.coupling, fit_intercept=True)
    return DescentProblem.of(data, objective, columns_of_views(data.X, views or ONE), np.random.default_rng(5))


def started(p, t, seed=3):
    n_views = len(t.columns.of_views)
    return ParallelDescent.start(p, 1, np.zeros(len(t.columns.views)), np.zeros(n_views), np.random.default_rng(seed))


def draws(t, p, n):
    """The examples and unjudged pairs of each step, from generators of the same seed."""
    rng_state = np.stack([seed_state(rng) for rng in [np.random.default_rng(3)] for _ in range(4)])
    out = np.empty((n * p.batch, 2), dtype=np.uint64)
    draw_examples(rng_state, p.mix, t.examples, np.empty_like(out), out)
    free = np.empty((n * p.unscored_batch, 2), dtype=np.uint64)
    if p.coupling > 0:
        draw_pairs(rng_state[UNSCORED_STREAM], t.examples.unscored, free)
    return out.reshape(n, p.batch, 2), free.reshape(n, p.unscored_batch, 2)


def pull(p, target, m):
    if p.loss == HINGE:
        return target if target * m < 1 else 0.0
    if p.loss == SQUARED:
        return target - m
    if p.loss == LOGISTIC:
        return target - 1 / (1 + np.exp(-m))
    return target * max(0.0, 1 - target * m)


def pair_target(p, z):
    return {HINGE: 1.0, SQUARED: z, LOGISTIC: (1 + z) / 2, SQUARED_HINGE: 1.0}[p.loss]


def reference(p, t, n, views):
    """Every line as in the papers; O(M d) per step."""
    M, d = len(views), X.shape[1]
    mask = np.zeros((M, d))
    for v, columns in enumerate(views):
        mask[v, columns] = 1
    W, b, total, total_b = np.zeros((M, d)), np.zeros(M), np.zeros((M, d)), np.zeros(M)
    S, G, sb, Gb = np.zeros((M, d)), np.zeros((M, d)), np.zeros(M), np.zeros(M)
    examples, free = draws(t, p, n)
    alpha = p.alpha * (p.view_alphas if len(p.view_alphas) else np.ones(M))
    eta0 = p.eta0 * (p.view_rates if len(p.view_rates) else np.ones(M))
    for i in range(1, n + 1):
        eta = {PEGASOS: 1 / (alpha * (i - 1) + 1 / eta0), SQRT: eta0 / np.sqrt(i)}.get(p.rate, eta0)
        # no penalty bends the bias, so it does not slow down as the weights do under a large alpha
        eta_b = 1 / (np.minimum(alpha, p.mix / 8) * (i - 1) + 1 / eta0) if p.rate == PEGASOS else eta
        changes, change_b = [], np.zeros(M)
        for a, c in examples[i - 1]:
            if c == NO_PARTNER:
                x = X[a] * mask
                g = np.array([pull(p, Y[a], W[v] @ x[v] + b[v]) for v in range(M)]) / p.batch
                change_b += g
                Gb += g * g
            else:
                x = (X[a] - X[c]) * mask
                g = np.array([pull(p, pair_target(p, Y[a] - Y[c]), W[v] @ x[v]) for v in range(M)]) / p.batch
            changes.append(g[:, None] * x)
        if p.coupling > 0:
            for a, c in free[i - 1]:
                x = (X[a] - X[c]) * mask
                m = (W * x).sum(axis=1)
                g = (
                    np.array([-4 * p.coupling * sum(m[v] - m[u] for u in range(M)) for v in range(M)])
                    / p.unscored_batch
                )
                changes.append(g[:, None] * x)
        if p.rate == ADAGRAD:
            S, G, sb = S + sum(changes), G + sum(change**2 for change in changes), sb + change_b
            below = np.sqrt(G) + (eta0 * i * alpha)[:, None]
            W = np.sign(S) * eta0[:, None] * np.maximum(np.abs(S) - i * p.l1, 0) / np.where(below > 0, below, 1)
            b = eta0 * sb / np.sqrt(np.where(Gb > 0, Gb, 1))
            continue
        W = (1 - eta * alpha)[:, None] * W + eta[:, None] * sum(changes)
        W = np.sign(W) * np.maximum(np.abs(W) - eta[:, None] * p.l1, 0)
        if p.project:
            norms = np.linalg.norm(W, axis=1) * np.sqrt(alpha)
            W = W / np.maximum(norms, 1)[:, None]
        b = b + eta_b * change_b
        total, total_b = total + W, total_b + b
    return (total / n, total_b / n) if p.average else (W, b)


def learnt(p, t, n, kernel="coupled"):
    runs = started(p, t)
    if kernel == "plain":
        descend(runs.states[0], p, t.examples, t.rows, n)
    else:
        descend_coupled(runs.states[0], p, t.columns, t.examples, t.rows, n)
    return runs.weights(t.columns)


PLAIN = {
    "hinge": plan(),
    "squared": plan(loss=SQUARED, eta0=0.05),
    "logistic": plan(loss=LOGISTIC),
    "squared hinge": plan(loss=SQUARED_HINGE, eta0=0.05),
    "averaged": plan(average=True),
    "constant": plan(rate=CONSTANT, eta0=0.1),
    "sqrt, averaged": plan(rate=SQRT, eta0=0.5, average=True),
    "mixed": plan(loss=LOGISTIC, mix=0.4, eta0=0.2),
    "mixed, averaged": plan(loss=SQUARED, mix=0.4, eta0=0.05, average=True),
    "regression only": plan(loss=SQUARED, mix=1.0, eta0=0.05),
    "regression only, much penalised": plan(loss=SQUARED, mix=1.0, eta0=0.05, alpha=5.0),
    # the scale falls below the smallest allowed every 8 steps
    "folding": plan(rate=CONSTANT, eta0=0.8, alpha=1.0),
    "folding, averaged": plan(rate=CONSTANT, eta0=0.8, alpha=1.0, average=True),
}
COUPLED = {
    "l1": plan(l1=0.01),
    "l1, folding": plan(rate=CONSTANT, eta0=0.8, alpha=1.0, l1=0.02),
    "adagrad": plan(rate=ADAGRAD, eta0=0.3),
    "adagrad, l1, mixed": plan(rate=ADAGRAD, eta0=0.3, l1=0.05, mix=0.5, loss=SQUARED),
    "projected": plan(project=True),
    "projected, averaged": plan(project=True, average=True),
    "batch": plan(batch=4),
    "agreeing": plan(loss=SQUARED, eta0=0.05, coupling=0.3, unscored_batch=3),
    "agreeing, mixed, averaged": plan(
        loss=SQUARED, eta0=0.05, coupling=0.3, mix=0.5, batch=2, unscored_batch=2, average=True
    ),
    "agreeing, l1": plan(loss=SQUARED, eta0=0.05, coupling=0.3, l1=0.01),
    "agreeing, adagrad": plan(rate=ADAGRAD, eta0=0.3, coupling=0.3, batch=2),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_loop_is_the_written_out_loop(name):
    p = PLAIN[name]
    t = task(p)
    W, b = reference(p, t, 700, ONE)
    found, bias = learnt(p, t, 700, "plain")
    np.testing.assert_allclose(found, W, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(bias, b, rtol=1e-8, atol=1e-10)


@pytest.mark.thin(7)
@pytest.mark.parametrize("name", COUPLED | PLAIN)
@pytest.mark.parametrize("views", [ONE, VIEWS], ids=["one view", "three views"])
def test_coupled_loop_is_the_written_out_loop(name, views):
    p = (COUPLED | PLAIN)[name]
    t = task(p, views)
    W, b = reference(p, t, 300, views)
    found, bias = learnt(p, t, 300)
    np.testing.assert_allclose(found, W, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(bias, b, rtol=1e-8, atol=1e-10)
    if p.l1 > 0:
        assert ((found == 0) == (np.abs(W) < 1e-12)).all()


@pytest.mark.parametrize(
    "name", ["hinge", "l1", "adagrad, l1, mixed", "projected, averaged", "agreeing, mixed, averaged"]
)
def test_each_view_has_its_own_penalty_and_rate(name):
    p = (COUPLED | PLAIN)[name]._replace(view_alphas=np.array([1.0, 3.0, 0.2]), view_rates=np.array([0.3, 0.1, 0.5]))
    t = task(p, VIEWS)
    W, b = reference(p, t, 300, VIEWS)
    found, bias = learnt(p, t, 300)
    np.testing.assert_allclose(found, W, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(bias, b, rtol=1e-8, atol=1e-10)


@pytest.mark.thin(5)
@pytest.mark.parametrize("kernel", ["plain", "coupled"])
@pytest.mark.parametrize("kind", ["csr", "csr with 64-bit indices", "float32", "read-only", "scaled", "scaled csr"])
def test_every_kind_of_rows_gives_the_same_weights(kernel, kind):
    p = plan(loss=LOGISTIC, mix=0.3, eta0=0.2)
    changed = {
        "csr": lambda: sparse.csr_array(X),
        "csr with 64-bit indices": lambda: _wide(sparse.csr_array(X)),
        "float32": lambda: X.astype(np.float32),
        "read-only": lambda: _frozen(X),
        "scaled": lambda: ScaledRows(X / FACTORS, FACTORS),
        "scaled csr": lambda: ScaledRows(sparse.csr_array(X / FACTORS), FACTORS),
    }[kind]()
    data = replace(DATA, X=changed)
    one, b = learnt(p, task(p), 500, kernel)
    other, c = learnt(p, task(p, data=data), 500, kernel)
    tolerance = 1e-5 if kind == "float32" else 1e-12
    np.testing.assert_allclose(one, other, atol=tolerance)
    np.testing.assert_allclose(b, c, atol=tolerance)


FACTORS = 10.0 ** np.arange(-4, 4)


def _wide(matrix):
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def _frozen(rows):
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


@pytest.mark.parametrize("name", COUPLED | PLAIN)
def test_steps_cut_into_calls_are_the_same_steps(name):
    p = (COUPLED | PLAIN)[name]
    t = task(p)
    one, other = started(p, t), started(p, t)
    one.advance(t, 1300)
    for n in (1, 0, 511, 513, 275):
        other.advance(t, n)
    for left, right in zip(one.states[0], other.states[0], strict=True):
        np.testing.assert_array_equal(left, right)
