"""The objective, its derivatives, its minimum, and the steps towards it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from corank.base.pairs.losses import Loss
from corank.models.labels import CalibratedLabelRanker, LabelPreferences
from corank.models.labels.batch import LabelObjective, StandardizedRows
from corank.models.labels.preferences import as_conversion
from helpers.explicit_labels import LOSSES, constraints, objective

RNG = np.random.default_rng(3)
X = RNG.normal(size=(30, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, 1.0]
Y = np.where(RNG.random((30, 4)) < 0.5, np.argsort(np.argsort(RNG.random((30, 4)), axis=1), axis=1) + 1, 0)
WEIGHTS = RNG.integers(0, 3, size=30).astype(float)


def sets(preferences, **how):
    return [constraints(row, side, (), **how) for row, side in zip(preferences.levels, preferences.sides, strict=True)]


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "logistic"])
@pytest.mark.parametrize("how", [{}, {"conversion": "adjacent", "above_zero": "lowest"}])
def test_newton_finds_the_minimum_of_the_plain_sum(loss, how):
    top = LabelPreferences.from_top(Y)
    model = CalibratedLabelRanker(loss, 0.1, "top", scale=False, **how).fit(X, Y, sample_weight=WEIGHTS)
    examples = sets(top, **how)

    def value(theta):
        return objective(X, examples, LOSSES[loss], theta[:12].reshape(4, 3), theta[12:], 0.1, WEIGHTS)

    found = np.append(model.coef_.ravel(), model.intercept_)
    assert model.objective_ == pytest.approx(value(found), rel=1e-12)
    steps = 1e-4 * np.eye(len(found))
    slope = [(value(found + step) - value(found - step)) / 2e-4 for step in steps]
    assert np.abs(slope).max() < 1e-6


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "logistic"])
def test_slopes_and_bends_are_finite_differences(loss):
    top = LabelPreferences.from_top(Y)
    seen = StandardizedRows.of(X, WEIGHTS, scale=True, centre=True)
    problem = LabelObjective(
        seen, top.targets, as_conversion("all", "all"), Loss.of(loss), WEIGHTS / 7, top.counts(), 0.1, True
    )
    U, V = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 4))
    slopes, h = problem.loss_and_gradient(U)[1], 1e-6
    ahead, behind = problem.loss_and_gradient(U + h * V), problem.loss_and_gradient(U - h * V)
    assert np.sum(slopes * V) == pytest.approx((ahead[0] - behind[0]) / (2 * h), rel=1e-6)
    np.testing.assert_allclose(problem.hessian_product(U, V), (ahead[1] - behind[1]) / (2 * h), atol=1e-6)


def test_rows_are_seen_as_they_are_described():
    seen = StandardizedRows.of(X, WEIGHTS, scale=True, centre=True)
    explicit = (X - np.average(X, axis=0, weights=WEIGHTS)) * seen.factors
    np.testing.assert_allclose(np.average(explicit**2, axis=0, weights=WEIGHTS), 1.0)
    W, b, G = RNG.normal(size=(4, 3)), RNG.normal(size=4), RNG.normal(size=(30, 4))
    for rows in (seen, StandardizedRows(sparse.csr_array(X), seen.mean, seen.factors)):
        np.testing.assert_allclose(rows.scores(W, b), explicit @ W.T + b, atol=1e-12)
        np.testing.assert_allclose(rows.gather(G), G.T @ explicit, atol=1e-12)
        assert rows.mean_square(WEIGHTS) == pytest.approx(np.average((explicit**2).sum(axis=1), weights=WEIGHTS))


def test_too_few_newton_steps_are_told():
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps"):
        CalibratedLabelRanker(targets="top", max_iter=1).fit(X, Y)


def test_memory_does_not_grow_with_the_constraints():
    """O(rows · labels + features · labels): 60 labels have 1,770 pairs, an expansion 1,770 · 2 · 40 numbers a row."""
    n, p, d = 400, 40, 60
    rng = np.random.default_rng(0)
    Z, ranks = rng.normal(size=(n, p)), np.argsort(np.argsort(rng.random((n, d)), axis=1), axis=1) + 1
    model = CalibratedLabelRanker(targets="ranks", max_iter=2, tol=0.9)
    preferences = LabelPreferences.from_ranks(ranks)
    model.fit(Z[:50], preferences[np.arange(50)])  # compile first
    tracemalloc.start()
    model.fit(Z, preferences)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * (12 * n * d + 40 * p * d + 4 * n * p) + 500_000
    assert peak < 8 * n * d * (d - 1) / 2 * 2 * p / 50
