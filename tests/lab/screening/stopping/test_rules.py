from __future__ import annotations

import math

import numpy as np
import pytest

from corank.errors import InputError
from corank_lab.screening.stopping.rates import SHAPES, SLOPES, DecliningRate, MixedRate
from corank_lab.screening.stopping.rules import AGREEMENT, REMOVED_RULES, STOPPING_RULES, stopping_rule
from corank_lab.screening.stopping.sampling import draw_order
from corank_lab.screening.stopping.urns import missing_allowed, p_missed


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
    monkeypatch.setattr("corank_lab.screening.stopping.rates.PLACES", 10**6)
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


def test_advice_comes_at_looks_only():
    rule = stopping_rule("poisson", 1000)
    finds = list(range(1, 21))
    first = next(read for read in range(1001) if rule.advises([f for f in finds if f <= read], read, 1))
    assert first in rule.looks
    assert [read for read in (9, 10) if read in stopping_rule("decline", 12).looks] == [10]
    assert not stopping_rule("decline", 5).advises([1, 2], 4, 0)
    assert stopping_rule("decline", 5).advises([1, 2], 5, 0)


def test_advice_is_withdrawn_when_its_condition_fails():
    """Compared with a reading record by record, in which advice comes at looks and goes when the condition fails."""
    rule = stopping_rule("agree", 2000)  # a look every 20 records
    finds = list(range(1, 81, 2))
    first = next(look for look in rule.looks if rule.is_reached(finds, look, 1))
    finds += range(first + 3, first + 9)
    since, changes = None, []
    for read in range(1, 1900):
        so_far = [find for find in finds if find <= read]
        before = since
        if not rule.is_reached(so_far, read, 1):
            since = None
        elif since is None and read in rule.looks:
            since = read
        changes += [read] if since != before else []
        if read in (*changes, *finds) or read % 20 < 2:
            assert rule.advised_since(so_far, read, 1) == since
            assert rule.advises(so_far, read, 1) == (since is not None)
    assert any(change in finds for change in changes)  # withdrawn between two looks
    assert len(changes) >= 3


def test_a_replayed_rule_counts_what_was_read_and_known():
    found = np.zeros(400, dtype=bool)
    found[:30:2] = True
    for name in ("agree", "decline", "poisson", "sample"):
        read, known = stopping_rule(name, 400).replay(found, np.random.default_rng(0))
        assert 30 <= read <= 400
        assert known == 16
    reads = [
        stopping_rule(name, 400).replay(found, np.random.default_rng(0))[0]
        for name in ("poisson", "decline", "hypergeometric", "sample")
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


def test_mixed_rates_are_the_posterior_summed_term_by_term():
    """All curves of both families, with both backgrounds, by plain loops."""
    n, read, finds, target = 40, 20, [1, 2, 3, 5, 9], 0.8
    model = MixedRate(n)
    curves = [[math.exp(-b * (i / n) ** c) for i in range(1, n + 1)] for c in SHAPES for b in SLOPES]
    curves += [
        [(i / n + s) ** -a for i in range(1, n + 1)] for s in np.geomspace(0.002, 2, 12) for a in np.linspace(0, 5, 21)
    ]
    total = reached = 0.0
    for curve in curves:
        for share in (0.0, 0.02):
            h = (1 - share) * np.array(curve) / sum(curve) + share / n
            seen = h[:read].sum()
            weight = np.prod(h[np.array(finds) - 1] / seen)
            allowed = missing_allowed(len(finds) + 1, target)
            terms = [math.comb(len(finds) + k - 1, k) * seen**5 * (1 - seen) ** k for k in range(allowed + 1)]
            total, reached = total + weight, reached + weight * sum(terms)
    assert model.probability(finds, read, 1, target) == pytest.approx(reached / total, rel=1e-5)
    # the sum over finds is extended, not made anew
    later = [*finds, 12]
    assert model.probability(later, 25, 1, target) == pytest.approx(MixedRate(n).probability(later, 25, 1, target))
    assert model.probability(finds, read, 1, target) == pytest.approx(reached / total, rel=1e-5)


def test_an_unread_record_keeps_the_interval_open():
    estimate = stopping_rule("agree", 2000).estimate(list(range(1, 101)), 1999, 0)
    assert estimate.low == 100 / 101
    assert estimate.high == 1.0


def test_the_expected_place_of_the_target():
    """With a constant rate, 90 % of the relevant records are expected among 90 % of the records."""
    model = DecliningRate(1000, (1.0,), np.array([0.0]), 0.0)
    assert model.place_of(list(range(10, 201, 10)), 200, 0, 0.9) == pytest.approx(900, abs=1)
    assert model.place_of([1, 2], 200, 0, 0.9) is None


def test_the_default_demands_that_model_and_test_agree():
    rule = stopping_rule("agree", 400)
    finds = [3, 9, 11, 30, 41, 60]
    for read in range(60, 400, 20):
        is_sure = rule.rates.probability(finds, read, 1, 0.95) >= 0.95
        agrees = p_missed(finds, read, 400, 1, 0.95) <= AGREEMENT
        assert rule.is_reached(finds, read, 1) == (is_sure and agrees)
    assert not rule.is_reached(finds, 60, 1)
    assert rule.is_reached(finds, 390, 1)


@pytest.mark.parametrize("name", STOPPING_RULES)
def test_every_rule_states_its_assumption_and_evidence(name):
    rule = stopping_rule(name, 100)
    assert rule.name == name
    assert rule.assumes.endswith(".")
    assert rule.assumes.count(".") == 1
    assert rule.evidence in ("estimated", "tested", "proved")
    assert rule.needs_sample or rule.evidence != "proved"
    assert rule.advises([], 100, 0)


@pytest.mark.parametrize("name", STOPPING_RULES)
@pytest.mark.parametrize("n", [1, 3, 12])
def test_tiny_reviews_are_replayed_by_every_rule(name, n):
    for bits in range(2 ** min(n, 5)):
        found = np.array([bits >> at & 1 for at in range(n)], dtype=bool)
        read, known = stopping_rule(name, n).replay(found, np.random.default_rng(0))
        assert 0 <= read <= n
        assert known <= 1 + found.sum()


def test_consecutive_stops_fifty_records_after_the_last_find():
    found = np.zeros(1000, dtype=bool)
    found[[0, 1, 5]] = True
    assert stopping_rule("consecutive", 1000).stops_at(found) == 56


@pytest.mark.parametrize("name", REMOVED_RULES)
def test_a_removed_rule_gets_one_sentence_that_names_the_others(name):
    with pytest.raises(InputError, match=rf"^the stopping rule '{name}' of corank 0.2 was removed; choose") as raised:
        stopping_rule(name, 10)
    assert all(other in str(raised.value) for other in STOPPING_RULES)


def test_the_order_of_a_sample_follows_from_seed_and_records_read():
    order = draw_order(30, [3, 7, 1], 5)
    assert sorted(order) == sorted(set(range(30)) - {1, 3, 7})
    assert order == draw_order(30, [1, 3, 7], 5)
    assert order != draw_order(30, [1, 3, 7], 6)
