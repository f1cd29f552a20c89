"""Exact tests against enumeration, scipy and buscarpy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import hypergeom

from corank_lab.screening.stopping.urns import (
    SamplePlan,
    chance_of_missing,
    hypergeometric_cdf,
    missing_allowed,
    most_relevant,
    p_by_betting,
    p_missed,
    p_values,
)


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


@pytest.mark.parametrize("n", [1, 7, 40, 5000])
def test_chances_of_a_sample_are_hypergeometric(n):
    rng = np.random.default_rng(n)
    for _ in range(50):
        relevant, size = (int(rng.integers(0, n + 1)) for _ in range(2))
        finds = int(rng.integers(0, min(relevant, size) + 1))
        expected = hypergeom.cdf(finds, n, relevant, size)
        np.testing.assert_allclose(hypergeometric_cdf(finds, n, relevant, size), expected, rtol=1e-7, atol=1e-12)


def test_chances_of_missing_by_enumeration():
    for n, relevant, unread in itertools.product(range(1, 8), range(8), range(8)):
        if relevant > n or unread > n:
            continue
        draws = list(itertools.combinations(range(n), unread))
        for missing in range(1, 4):
            expected = np.mean([sum(one < relevant for one in draw) >= missing for draw in draws])
            numbers = (np.array([value]) for value in (n, relevant, unread))
            assert chance_of_missing(*numbers, missing)[0] == pytest.approx(expected, abs=1e-12)


def all_urns(finds, read, n, known, target):
    """The test of every urn, record by record, with scipy."""
    least, r = [], len(finds) + known
    for begin in range(read):
        inside = sum(place > begin for place in finds)
        hidden = inside + missing_allowed(r, target) + 1
        least.append(0.0 if hidden > n - begin else hypergeom.cdf(inside, n - begin, hidden, read - begin))
    return min(least)


def test_the_smallest_p_value_is_that_of_all_urns():
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(5, 120))
        read = int(rng.integers(1, n + 1))
        finds = (np.flatnonzero(rng.random(read) < rng.random() ** 2) + 1).tolist()
        known, target = int(rng.integers(0, 3)), float(rng.choice([0.5, 0.8, 0.95]))
        assert p_missed(finds, read, n, known, target) == pytest.approx(
            all_urns(finds, read, n, known, target), abs=1e-9
        )
    assert p_missed([], 0, 10) == 1.0


def test_p_values_agree_with_buscarpy():
    buscarpy = pytest.importorskip("buscarpy")
    rng = np.random.default_rng(1)
    for _ in range(15):
        n = int(rng.integers(60, 900))
        read = int(rng.integers(30, n - 20))
        labels = (rng.random(read) < 0.6 * np.exp(-np.arange(read) / 20)).astype(int)
        labels[0] = 1
        finds = (np.flatnonzero(labels) + 1).tolist()
        for target in (0.8, 0.9, 0.95):
            expected = buscarpy.calculate_h0(labels, n, recall_target=target)
            assert p_missed(finds, read, n, 0, target) == pytest.approx(expected, abs=1e-8)


def test_few_urns_give_a_larger_p():
    finds = list(range(1, 80, 2))
    every = p_values(finds, 300, 500, 0, 0.95)
    some = p_values(finds, 300, 500, 0, 0.95, max_urns=7)
    assert len(every) == 41
    assert len(some) == 7
    assert set(some) <= set(every)


def test_the_bound_of_relevant_records_by_search():
    for n, size, error in itertools.product((6, 11), (1, 4, 6), (0.05, 0.3)):
        for finds in range(size + 1):
            possible = [k for k in range(finds, n - size + finds + 1) if hypergeom.cdf(finds, n, k, size) > error]
            assert most_relevant(n, size, finds, error) == max(possible)


@pytest.mark.thin(4)
@pytest.mark.parametrize(("unread", "found", "hidden"), [(10, 9, 1), (10, 9, 3), (11, 20, 4), (9, 0, 2), (9, 3, 0)])
def test_the_bound_of_the_plan_holds_at_every_look_together(unread, found, hidden):
    """Enumerate all orders: the bound of any look exceeds the true recall in few of them."""
    wrong = total = 0
    for places in itertools.combinations(range(unread), hidden):
        labels = [place in places for place in range(unread)]
        plan = SamplePlan(unread, found, 0.8, 0.7)
        is_wrong = False
        for size in plan.sizes:
            recall = (found + sum(labels[:size])) / (found + hidden) if found + hidden else 1.0
            is_wrong |= plan.bound(labels[:size]) > recall + 1e-12
        wrong += is_wrong
        total += 1
    assert wrong / total <= 0.3


@pytest.mark.long
@pytest.mark.parametrize(("unread", "found", "hidden"), [(1000, 95, 6), (1000, 95, 8), (600, 40, 3), (3000, 400, 22)])
def test_the_error_that_is_spent_over_the_looks_stays_below_the_allowed_one(unread, found, hidden):
    """Target just missed at the start; every draw of the sample may stop it. Coverage over 2,000 samples."""
    rng = np.random.default_rng(hidden)
    plan = SamplePlan(unread, found)
    wrong = 0
    labels = np.arange(unread) < hidden
    for _ in range(2000):
        drawn = rng.permutation(labels)
        size = plan.proved_at(drawn.tolist())
        wrong += found + drawn[:size].sum() < 0.95 * (found + hidden) - 1e-9
    assert wrong / 2000 <= 0.05 + 3 * (0.05 * 0.95 / 2000) ** 0.5


@pytest.mark.parametrize(
    ("n", "relevant", "target", "alpha"), [(11, 3, 0.8, 0.3), (12, 5, 0.7, 0.2), (13, 4, 0.9, 0.5)]
)
def test_bets_reject_wrongly_in_few_of_all_orders_even_if_looked_at_after_every_record(n, relevant, target, alpha):
    """Enumerate all orders: the random order is the worst that the test allows."""
    wrong, orders = 0, list(itertools.combinations(range(1, n + 1), relevant))
    for places in orders:
        for read in range(1, n + 1):
            finds = [place for place in places if place <= read]
            if len(finds) < target * relevant - 1e-9 and p_by_betting(finds, read, n, 0, target) <= alpha:
                wrong += 1
                break
    assert wrong / len(orders) <= alpha


def test_the_capital_is_a_product_over_the_records():
    """Two finds, then irrelevant records: by plain loops, for the smallest number of relevant records."""
    finds, n, known, target = [1, 3, 4], 40, 2, 0.75
    missed = len(finds) + missing_allowed(len(finds) + known, target) + 1
    for read in (10, 25, 33):
        capital, before = 1.0, []
        for place in range(1, read + 1):
            p = (missed - len(before)) / (n - place + 1)
            begin = before[-2] if len(before) > 1 else 1
            bet = min(p, 0.8 * (1.5 if before else 0.5) / (place - begin + 1))
            capital *= bet / p if place in finds else (1 - bet) / (1 - p)
            before += [place] if place in finds else []
        assert p_by_betting(finds, read, n, known, target) >= min(1, 1 / capital) - 1e-12
        if 1 / capital > 0.5:
            assert p_by_betting(finds, read, n, known, target) == pytest.approx(min(1, 1 / capital))
    assert p_by_betting(finds, 39, n, known, target) == 0.0  # too few records are unread
    assert p_by_betting([], 0, 10) == 1.0
