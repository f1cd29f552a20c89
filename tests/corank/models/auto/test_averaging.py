"""Weights of an average: shares of a greedy selection, checked against a search over all bags of members."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from corank.metrics import evaluate
from corank.models.auto.averaging import _select, choose_weights

RNG = np.random.default_rng(0)
QID = np.repeat(np.arange(30), 8)
Y = RNG.integers(0, 3, len(QID)).astype(float)
# two good members whose errors differ, and one of noise
F = np.column_stack([Y + RNG.normal(size=len(Y)), Y + RNG.normal(size=len(Y)), RNG.normal(size=len(Y))])


def values(scores):
    columns = np.atleast_2d(scores.T)
    found = np.array([evaluate(Y, one, QID, "nDCG@5")["nDCG@5"].values for one in columns]).T
    return found.reshape(30, *scores.shape[1:])


def correlations(scores):
    columns = [[np.corrcoef(Y[q == QID], f[q == QID])[0, 1] for f in scores.T] for q in range(30)]
    return np.array(columns)


def test_two_good_members_are_averaged_and_noise_is_dropped():
    weights = choose_weights(F, values, correlations(F), np.random.default_rng(0))
    assert weights.sum() == pytest.approx(1.0)
    assert weights[:2].min() > 0.2
    assert weights[2] == 0.0
    assert np.nanmean(values(F @ weights)) > max(np.nanmean(values(f)) for f in F.T)


def test_a_selection_is_nearly_as_good_as_the_best_bag_of_four():
    single = values(F)
    is_defined = ~np.isnan(single).any(axis=1)
    share = np.full(is_defined.sum(), 1.0 / is_defined.sum())
    found = np.nanmean(values(F @ _select(F, values, single, is_defined, share)))
    bags = combinations_with_replacement(range(3), 4)
    best = max(np.nanmean(values(F[:, list(bag)].sum(axis=1))) for bag in bags)
    assert found >= best - 0.01


def test_few_queries_give_weights_closer_to_those_of_correlations():
    hidden = np.arange(30)[:, None] >= 3
    few = np.where(hidden, np.nan, correlations(F))
    known = np.exp(5.0 * np.nansum(few, axis=0))
    weights = choose_weights(F, lambda f: np.where(hidden, np.nan, values(f)), few, np.random.default_rng(0))
    # three queries have a share of 3 / 18
    assert np.abs(weights - known / known.sum()).max() <= 3 / 18 + 0.06


def test_one_member_or_no_defined_query_gives_equal_weights():
    alone = choose_weights(F[:, :1], values, correlations(F[:, :1]), np.random.default_rng(0))
    np.testing.assert_array_equal(alone, [1.0])
    nothing = lambda scores: np.full((30, scores.shape[1]), np.nan)  # noqa: E731
    np.testing.assert_allclose(choose_weights(F, nothing, nothing(F), np.random.default_rng(0)), [1 / 3] * 3)
