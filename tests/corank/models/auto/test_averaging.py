"""Weights of an average: shares of a greedy selection, checked against a search over all bags of members."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.optimize import nnls

from corank.data.ranking import RankingData
from corank.models.auto.averaging import _select, choose_weights, nonnegative_minimum
from corank.models.auto.left_out import ValidationFolds

RNG = np.random.default_rng(0)
QID = np.repeat(np.arange(30), 8)
Y = RNG.integers(0, 3, len(QID)).astype(float)
# two good members whose errors differ, and one of noise
F = np.column_stack([Y + RNG.normal(size=len(Y)), Y + RNG.normal(size=len(Y)), RNG.normal(size=len(Y))])


LEFT_OUT = ValidationFolds(
    RankingData.of(np.zeros((len(Y), 1)), Y, QID), "nDCG@5", np.arange(len(Y)), QID, np.arange(len(Y)) % 5
)


def test_two_good_members_are_averaged_and_noise_is_dropped():
    weights = choose_weights(F, LEFT_OUT)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[:2].min() > 0.2
    assert weights[2] < 0.05
    values = LEFT_OUT.values
    assert np.nanmean(values(F @ weights)) > max(np.nanmean(values(f)) for f in F.T)


def test_a_selection_is_nearly_as_good_as_the_best_bag_of_four():
    values = LEFT_OUT.values
    single = values(F)
    found = np.nanmean(values(F @ _select(F, LEFT_OUT, single, ~np.isnan(single).any(axis=1))))
    bags = combinations_with_replacement(range(3), 4)
    best = max(np.nanmean(values(F[:, list(bag)].sum(axis=1))) for bag in bags)
    assert found >= best - 0.01


def test_few_queries_give_weights_closer_to_those_of_correlations():
    shown = np.arange(30) < 3
    correlations = [[np.corrcoef(Y[q == QID], f[q == QID])[0, 1] for f in F.T] for q in range(3)]
    np.testing.assert_allclose(LEFT_OUT.correlations(F)[:3], correlations)
    known = np.exp(5.0 * np.sum(correlations, axis=0))
    # with a prior, the greedy selection of three queries has a share of 3 / 18
    weights = choose_weights(F, LEFT_OUT, shown, prior=2)
    assert weights[2] >= 15 / 18
    weights = choose_weights(F, LEFT_OUT, shown)
    assert np.abs(weights - known / known.sum()).max() <= 0.5 * (3 / 18 + 1.0)


def test_least_squares_are_those_of_scipy():
    rng = np.random.default_rng(1)
    for n, k in [(40, 1), (40, 3), (15, 12), (8, 16)] * 20:
        Z, t = rng.normal(size=(n, k)) + rng.normal(size=(n, 1)), rng.normal(size=n)
        Z[:, -1] = Z[:, 0]  # members may be equal
        A = Z.T @ Z + 0.1 * np.eye(k)
        rows = np.vstack([Z, np.sqrt(0.1) * np.eye(k)])
        np.testing.assert_allclose(nonnegative_minimum(A, Z.T @ t), nnls(rows, np.r_[t, np.zeros(k)])[0], atol=1e-8)


def test_standardised_lists_have_weight_one():
    Z, t, lists = LEFT_OUT.standardised(F)
    w = np.array([0.3, 0.2, 0.1])
    for q in range(30):
        y, f = Y[q == QID], (F @ w)[q == QID]
        gap = (y - y.mean()) / y.std() - (f - f.mean())
        np.testing.assert_allclose(((t - Z @ w)[lists == q] ** 2).sum(), (gap**2).mean())


def test_one_member_or_no_defined_query_gives_equal_weights():
    np.testing.assert_array_equal(choose_weights(F[:, :1], LEFT_OUT), [1.0])
    nothing = np.zeros(30, dtype=bool)
    np.testing.assert_allclose(choose_weights(F, LEFT_OUT, nothing), [1 / 3] * 3)
