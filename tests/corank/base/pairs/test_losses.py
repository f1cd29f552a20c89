"""Every loss against its formula in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.base.pairs.losses import LOSSES, Loss
from corank.base.pairs.sampling import PairSampler
from corank.base.solvers import smooth_loss
from corank.core.pairs.steps import (
    CONSTANT,
    N_ENTRIES,
    N_STREAMS,
    SCALE,
    Examples,
    RowIndex,
    SGDPlan,
    SGDState,
    descend,
)
from corank.core.random import alias_table, seed_state
from corank.core.rows.access import as_core_rows
from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.linear import LCRA, SPD

# the formulas as a paper writes them: value of (t, m), target of a pair whose scores differ by z
PLAIN = {
    "hinge": (lambda t, m: np.maximum(0, 1 - t * m), lambda z: 1.0),
    "squared": (lambda t, m: (t - m) ** 2 / 2, lambda z: z),
    "logistic": (
        lambda t, m: -t * np.log(1 / (1 + np.exp(-m))) - (1 - t) * np.log(1 / (1 + np.exp(m))),
        lambda z: (1 + z) / 2,
    ),
    "squared_hinge": (lambda t, m: np.maximum(0, 1 - t * m) ** 2 / 2, lambda z: 1.0),
}
TARGETS = {"any": (-2.0, 0.5, 3.0), "signs": (-1.0, 1.0), "unit": (0.0, 0.3, 1.0)}
MARGINS = np.linspace(-30.0, 30.0, 1201) + 0.013
H = 1e-6

every = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
smooth = pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if loss.exact], ids=lambda loss: loss.name)


def plain_pull(loss, t, m):
    value, _ = PLAIN[loss.name]
    return (value(t, m - H) - value(t, m + H)) / (2 * H)


def test_every_loss_has_a_formula_and_a_code_of_its_own():
    assert PLAIN.keys() == LOSSES.keys()
    assert len({loss.code for loss in LOSSES.values()}) == len(LOSSES)
    assert all(name == loss.name for name, loss in LOSSES.items())


@pytest.mark.parametrize("thing", [Loss, SPD, LCRA], ids=lambda thing: thing.__name__)
def test_docstrings_list_every_loss(thing):
    assert all(f'"{name}"' in thing.__doc__ for name in LOSSES)


@every
def test_value_is_the_formula(loss):
    for t in TARGETS[loss.scores]:
        np.testing.assert_allclose(loss.value(t, MARGINS), PLAIN[loss.name][0](t, MARGINS), rtol=1e-10, atol=1e-13)


@every
def test_pull_is_the_negative_slope_of_the_formula(loss):
    for t in TARGETS[loss.scores]:
        np.testing.assert_allclose(loss.negative_gradient(t, MARGINS), plain_pull(loss, t, MARGINS), atol=1e-6)


@every
def test_losses_are_convex_with_the_stated_curvature(loss):
    for t in TARGETS[loss.scores]:
        bend = loss.costs(t, MARGINS)[2]
        np.testing.assert_allclose(
            bend, (loss.negative_gradient(t, MARGINS - H) - loss.negative_gradient(t, MARGINS + H)) / (2 * H), atol=1e-6
        )
        second = -np.diff(loss.negative_gradient(t, MARGINS)) / np.diff(MARGINS)
        assert (second >= -1e-9).all()
        assert max(second.max(), bend.max()) <= loss.curvature + 1e-9


@every
@given(z=st.floats(0.01, 1.0))
def test_targets_of_pairs(loss, z):
    assert loss.pair_target(z) == pytest.approx(PLAIN[loss.name][1](z))


@pytest.mark.thin(3)
@every
@pytest.mark.parametrize("mix", [0.0, 1.0])
def test_steps_of_the_compiled_descent_follow_the_formula(loss, mix):
    data = RankingData.of([[0.5], [2.0]], [-1.0, -0.3])
    law = PairSampler.of(data).index
    examples = Examples(data.y, None, law, law, RowIndex(alias_table(np.ones(1)), np.array([1], dtype=np.uint32)))
    ledger = np.zeros((1, N_ENTRIES))
    ledger[0, SCALE] = 1.0
    rng_state = np.stack([seed_state(rng) for rng in [np.random.default_rng(0)] for _ in range(N_STREAMS)])
    state = SGDState(np.zeros(1), np.zeros(1), ledger, rng_state, np.zeros(1, dtype=np.int64))
    plan = SGDPlan(loss.code, CONSTANT, 0.1, 0.0, 0.17, mix, 0.0, 1, 1, False, False, False)
    w = 0.0
    for _ in range(20):
        # the only pair, or the only row
        t, x = (PLAIN[loss.name][1](0.7), 1.5) if mix == 0.0 else (-0.3, 2.0)
        w = (1 - 0.17 * 0.1) * w + 0.17 * plain_pull(loss, t, w * x) * x
        descend(state, plan, examples, as_core_rows(data.X), 1)
        assert state.weights[0] * ledger[0, SCALE] == pytest.approx(w, abs=1e-7)


@every
def test_rankers_learn_by_it(loss):
    problem = make_ranking(30, 8, random_state=0)
    y = problem.y / problem.y.max()
    for model in (
        SPD(loss.name, alpha=0.01, n_steps=5000, solver="sgd", random_state=0),
        LCRA(loss=loss.name, alpha=0.01, n_steps=5000, solver="sgd", random_state=0),
    ):
        assert model.fit(problem.X, y, qid=problem.qid).score(problem.X, y, qid=problem.qid) > 0.7


@smooth
@pytest.mark.parametrize("mix", [0.0, 0.4])
def test_the_exact_optimum_has_no_slope(loss, mix):
    rng = np.random.default_rng(1)
    X, qid = rng.normal(size=(24, 3)), rng.integers(0, 3, 24)
    y = rng.choice([-1.0, 1.0] if loss.scores == "signs" else [0.0, 0.5, 1.0], 24)
    found = smooth_loss(RankingData.of(X, y, qid), loss.name, mix=mix, alpha=0.1, fit_intercept=True, tol=1e-14)
    value, target = PLAIN[loss.name]
    winners, losers = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))

    def objective(w, b):
        pairs = value(target(y[winners] - y[losers]), (X[winners] - X[losers]) @ w)
        return mix * value(y, X @ w + b).mean() + (1 - mix) * pairs.mean() + 0.05 * w @ w

    assert found.objective == pytest.approx(objective(found.coef, found.intercept), rel=1e-9)
    for step in 1e-5 * np.eye(3):
        ahead, behind = (objective(found.coef + s * step, found.intercept) for s in (1, -1))
        assert ahead - behind == pytest.approx(0.0, abs=1e-11)
    assert mix == 0.0 or objective(found.coef, found.intercept + 1e-3) > found.objective


@smooth
def test_newton_has_a_bend_wherever_the_loss_pulls(loss):
    assert np.isfinite(loss.curvature)
    for t in TARGETS[loss.scores]:
        _, pull, bend = loss.costs(t, MARGINS)
        assert (bend[pull != 0] > 0).all()


def test_a_loss_without_an_exact_solver_says_so():
    with pytest.raises(InputError, match="hinge loss has no exact solver"):
        smooth_loss(RankingData.of([[0.0], [1.0]], [0, 1]), "hinge", alpha=1.0)


def test_logistic_survives_huge_margins():
    loss = Loss.of("logistic")
    np.testing.assert_allclose(loss.value(1.0, [-1e4, 1e4]), [1e4, 0.0])
    np.testing.assert_allclose(loss.negative_gradient(1.0, [-1e4, 1e4]), [1.0, 0.0])


def test_unknown_loss_gets_one_sentence():
    with pytest.raises(InputError, match="loss is 'absolute'"):
        Loss.of("absolute")


@pytest.mark.parametrize(
    ("name", "y", "rows", "sentence"),
    [
        ("hinge", [0.0, 1.0], True, "hinge loss on single rows needs scores −1 and 1, but y runs from 0 to 1"),
        ("logistic", [0.0, 2.0], True, r"logistic loss needs scores in \[0, 1\], but y runs from 0 to 2"),
        ("logistic", [5.0, 7.0], False, "differ by at most 1 within a query, but some differ by 2"),
    ],
)
def test_scores_a_loss_cannot_learn_from(name, y, rows, sentence):
    with pytest.raises(InputError, match=sentence):
        Loss.of(name).require_scores(np.array(y), np.zeros(2, dtype=np.int64), rows)


def test_scores_a_loss_can_learn_from():
    codes = np.array([0, 0, 1, 1])
    Loss.of("logistic").require_scores(np.array([5.0, 6.0, 0.0, 1.0]), codes, False)
    Loss.of("logistic").require_scores(np.array([0.1, 0.2, 0.0, 1.0]), codes, True)
    Loss.of("hinge").require_scores(np.array([5.0, 6.0, 0.0, 1.0]), codes, False)
    Loss.of("hinge").require_scores(np.array([1.0, -1.0, 1.0, 1.0]), codes, True)
