from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import hypergeom

from corank.errors import InputError
from corank.judging.screening import stopping
from corank.judging.screening.stopping import DecliningRate, SamplePlan, missing_allowed, stopping_rule


def posterior(n, shapes, slopes, background, finds, read):
    """Rates summed over all positions; the negative binomial summed term by term."""
    belief, missing = [], []
    r, most = len(finds), n - read
    for c in shapes:
        for b in slopes:
            h = np.array([math.exp(-b * (i / n) ** c) for i in range(1, n + 1)])
            h = (1 - background) * h / h.sum() + background / n
            seen = h[:read].sum()
            belief.append(sum(math.log(h[i - 1]) for i in finds) - r * math.log(seen))
            missing.append([math.comb(r + k - 1, k) * seen**r * (1 - seen) ** k for k in range(most + 1)])
    belief = np.exp(np.array(belief) - max(belief))
    return (belief / belief.sum()) @ np.array(missing)


@pytest.mark.parametrize(("shapes", "background"), [((1.0,), 0.0), ((0.3, 1.0), 0.02)])
def test_the_estimate_is_the_posterior_summed_term_by_term(shapes, background):
    n, read, finds, slopes = 60, 30, [1, 2, 3, 5, 8, 13], np.array([0.0, 2.0, 9.0])
    found = DecliningRate(n, shapes, slopes, background).estimate(finds, read, 1, 0.8)
    mass = posterior(n, shapes, slopes, background, finds, read)
    assert found.probability == pytest.approx(mass[: missing_allowed(7, 0.8) + 1].sum(), abs=1e-6)
    cumulated = mass.cumsum()
    for level, recall in ((0.5, found.recall), (0.975, found.low), (0.025, found.high)):
        k = next((k for k, value in enumerate(cumulated) if value >= level), n - read)
        assert recall == pytest.approx(7 / (7 + k))


def test_interpolated_rates_are_close_to_exact_ones(monkeypatch):
    finds = [1, 2, 4, 7, 20, 90, 300]
    rule = DecliningRate(3000, (0.3, 1.0), np.array([0.0, 3.0, 40.0]), 0.02)
    coarse = rule.estimate(finds, 700, 1, 0.95)
    monkeypatch.setattr("corank.judging.screening.stopping.PLACES", 10**6)
    fine = DecliningRate(3000, (0.3, 1.0), np.array([0.0, 3.0, 40.0]), 0.02).estimate(finds, 700, 1, 0.95)
    assert coarse.probability == pytest.approx(fine.probability, abs=2e-3)
    assert coarse.expected == pytest.approx(fine.expected, rel=2e-2)


def test_without_decline_the_expected_finds_follow_the_rate():
    """Without decline, finds have the rate of the past."""
    found = DecliningRate(1000, (1.0,), np.array([0.0]), 0.0).estimate(list(range(10, 201, 10)), 200, 0, 0.95)
    assert found.expected == pytest.approx(10.0)


def test_few_finds_give_no_estimate_and_a_complete_reading_is_certain():
    rule = stopping_rule("decline", 100)
    assert rule.estimate([1, 2, 3, 4], 50, 1) is None
    assert not rule.advises([1, 2, 3, 4], 50, 1)
    done = rule.estimate([1, 2, 3, 4, 5], 100, 1)
    assert (done.recall, done.low, done.high, done.probability, done.expected) == (1, 1, 1, 1, 0)
    assert rule.advises([], 100, 0)


def test_a_rule_decides_at_its_looks_only():
    rule = stopping_rule("poisson", 1000)
    finds = list(range(1, 21))
    first = next(read for read in range(1001) if rule.advises([f for f in finds if f <= read], read, 1))
    assert first in rule.looks
    # a find after the last look has no effect before the next one
    assert rule.advises([*finds, first + 1], first + 1, 1)
    assert [read for read in (9, 10) if read in stopping_rule("decline", 12).looks] == [10]
    assert not stopping_rule("decline", 5).advises([1, 2], 4, 0)
    assert stopping_rule("decline", 5).advises([1, 2], 5, 0)


def test_missing_records_that_the_target_allows():
    for found in range(200):
        k = missing_allowed(found, 0.95)
        assert found / (found + k or 1) >= 0.95 - 1e-12 or found == 0
        assert found / (found + k + 1) < 0.95


def test_a_sample_without_finds_has_the_smallest_sufficient_size():
    plan = SamplePlan(200, 40)
    first = plan.sizes[0]
    chance = [math.comb(200 - s, 3) / math.comb(200, 3) for s in (first, first - 1)]  # none of 3 relevant is drawn
    assert chance[0] <= 0.025 < chance[1]
    assert plan.sizes[-1] == 200
    assert plan.sizes == sorted(set(plan.sizes))
    assert not plan.proves([False] * (first - 1))
    assert plan.proves([False] * first)


@pytest.mark.parametrize(("unread", "found", "hidden"), [(9, 8, 1), (9, 8, 2), (10, 20, 3), (8, 0, 1)])
def test_the_error_of_the_plan_is_bounded(unread, found, hidden):
    """Enumerate all orders: count how often it stops below the target."""
    wrong = total = 0
    for places in itertools.combinations(range(unread), hidden):
        labels = [place in places for place in range(unread)]
        plan = SamplePlan(unread, found, 0.8, 0.6)
        size = next(size for size in plan.sizes if plan.proves(labels[:size]))
        seen = found + sum(labels[:size])
        wrong += seen < 0.8 * (found + hidden) - 1e-9
        total += 1
    assert wrong / total <= 0.4


def test_one_look_is_the_exact_test():
    plan = SamplePlan(500, 100)
    size = plan.sizes[1]
    for finds in range(6):
        labels = [True] * finds + [False] * (size - finds)
        missed = missing_allowed(100 + finds, 0.95) + finds + 1
        expected = any(
            hypergeom.cdf(sum(labels[:s]), 500, missing_allowed(100 + sum(labels[:s]), 0.95) + sum(labels[:s]) + 1, s)
            <= 0.05 / 2 ** (look + 1)
            for look, s in enumerate(plan.sizes[:2])
        )
        assert plan.proves(labels) == expected
        assert missed > finds


def test_too_few_unread_records_to_miss_the_target_are_a_proof():
    assert SamplePlan(0, 3).proves([])
    assert SamplePlan(5, 95).proves([])
    assert not SamplePlan(6, 95).proves([])


def test_a_replayed_rule_counts_what_was_read_and_known():
    found = np.zeros(400, dtype=bool)
    found[:30:2] = True
    for name in ("decline", "poisson", "sample"):
        read, known = stopping_rule(name, 400).replay(found, np.random.default_rng(0))
        assert 30 <= read <= 400
        assert known == 16
    reads = [
        stopping_rule(name, 400).replay(found, np.random.default_rng(0))[0] for name in ("poisson", "decline", "sample")
    ]
    assert reads == sorted(reads)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"name": "declin"}, "did you mean 'decline'"),
        ({"name": "sample", "target": 1.0}, "target is 1.0; pass a number above 0 and below 1"),
        ({"name": "sample", "confidence": 95}, "confidence is 95; pass a number"),
    ],
)
def test_bad_rules_raise(words, message):
    with pytest.raises(InputError, match=message):
        stopping_rule(n=10, **words)


@pytest.mark.parametrize("n", [1, 7, 40, 5000])
def test_chances_of_a_sample_are_hypergeometric(n):
    rng = np.random.default_rng(n)
    for _ in range(50):
        relevant, size = (int(rng.integers(0, n + 1)) for _ in range(2))
        finds = int(rng.integers(0, min(relevant, size) + 1))
        expected = hypergeom.cdf(finds, n, relevant, size)
        np.testing.assert_allclose(
            stopping._hypergeometric_cdf(finds, n, relevant, size), expected, rtol=1e-7, atol=1e-12
        )
