"""Values of questions, against the effect of answers on the posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from corank.base.kernels import GaussianKernel
from corank.errors import InputError
from corank.models.gp import PreferenceGP, gains, suggest_pairs
from corank.models.gp.sites import IntervalProbability
from helpers.simulated_users import users

FIXED = {"kernel": GaussianKernel(0.2), "sigma": 0.2, "learn": False, "scale": False}
X, _, PAIRS = users()
MODEL = PreferenceGP(**FIXED).fit(X, pairs=PAIRS[:30])
POSTERIOR = MODEL.posterior()
EVERY = np.column_stack(np.triu_indices(len(X), 1))
NOISE = 2 * 0.2**2


def test_entropy_is_the_expected_decrease_by_one_answer():
    mean, var = POSTERIOR.differences(EVERY)
    total = np.zeros(len(EVERY))
    for sign in (1, -1):
        tilt = IntervalProbability(noise=NOISE)(sign * mean, var)
        total += np.exp(tilt.log_z) * 0.5 * np.log(var / (var - var**2 * tilt.curvature))
    found = gains(POSTERIOR, NOISE)
    np.testing.assert_allclose(found, total, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(gains(POSTERIOR, NOISE, pairs=EVERY), found, atol=1e-14)
    # as the whole covariance has it, for one pair
    at = EVERY[found.argmax()]
    s, (_, (c,)) = POSTERIOR.covariance @ (np.eye(40)[at[0]] - np.eye(40)[at[1]]), POSTERIOR.differences([at])
    tilt = IntervalProbability(noise=NOISE)(*POSTERIOR.differences([at]))
    after = POSTERIOR.covariance - tilt.curvature[0] * np.outer(s, s)
    fall = 0.5 * (
        np.linalg.slogdet(POSTERIOR.covariance + 1e-9 * np.eye(40))[1] - np.linalg.slogdet(after + 1e-9 * np.eye(40))[1]
    )
    assert fall == pytest.approx(0.5 * np.log(c / (c - c**2 * tilt.curvature[0])), rel=1e-3)


def test_bald_approximates_the_mutual_information():
    mean, var = POSTERIOR.differences(EVERY[:200])
    x, w = np.polynomial.hermite_e.hermegauss(80)
    p = stats.norm.cdf((mean[:, None] + np.sqrt(var)[:, None] * x) / np.sqrt(NOISE))

    def entropy(p):
        p = np.clip(p, 1e-300, 1 - 1e-16)
        return -p * np.log(p) - (1 - p) * np.log1p(-p)

    w = w / w.sum()
    np.testing.assert_allclose(gains(POSTERIOR, NOISE, "bald", EVERY[:200]), entropy(p @ w) - entropy(p) @ w, atol=0.01)


@pytest.mark.parametrize("strategy", ["entropy", "bald", "random"])
def test_no_pair_is_asked_twice(strategy):
    first = suggest_pairs(MODEL, n=30, strategy=strategy, random_state=0)
    told = {frozenset(pair) for pair in MODEL.answered().tolist()}
    asked = {frozenset(pair) for pair in first.tolist()}
    assert len(asked) == 30
    assert not asked & told
    again = suggest_pairs(MODEL, n=1, strategy=strategy, asked=[], candidates=PAIRS[:1], random_state=0)
    np.testing.assert_array_equal(again, PAIRS[:1])
    assert len(suggest_pairs(MODEL, n=3, strategy=strategy, candidates=PAIRS[:5], random_state=0)) == 0


def test_a_batch_has_no_redundant_pairs():
    rows = np.vstack([X, X + 1e-7])
    model = PreferenceGP(**FIXED).fit(rows, pairs=PAIRS[:5])
    batch = suggest_pairs(model, n=6) % 40
    assert len({frozenset(pair) for pair in batch.tolist()}) == 6
    at_once = np.argsort(-gains(model.posterior(), NOISE))[:6]
    every = np.column_stack(np.triu_indices(80, 1))[at_once] % 40
    assert len({frozenset(pair) for pair in every.tolist()}) < 6


def test_no_pairs_below_the_tolerance():
    most = gains(POSTERIOR, NOISE).max()
    assert len(suggest_pairs(MODEL, n=5, tol=most + 0.01)) == 0
    assert 1 <= len(suggest_pairs(MODEL, n=500, tol=0.5 * most)) < 500
    assert len(suggest_pairs(MODEL, n=0)) == 0
    assert len(suggest_pairs(MODEL, X[:2], n=5)) == 1


def test_unknown_strategies_get_one_sentence():
    with pytest.raises(InputError, match="strategy is 'entropi'"):
        suggest_pairs(MODEL, strategy="entropi")


@pytest.mark.parametrize("asked", [[0, 1, 2], "abc", [[0, 1, 2, 3]], [[0.7, 1.2]], [[0, 99]]])
def test_asked_pairs_are_checked_like_any_pairs(asked):
    model = PreferenceGP(sigma=0.3, learn=False).fit(np.eye(5), pairs=[[0, 1]])
    with pytest.raises(InputError, match="pairs"):
        suggest_pairs(model, asked=asked)
    with pytest.raises(InputError, match="model is a dict; pass a fitted PreferenceGP"):
        suggest_pairs({})
