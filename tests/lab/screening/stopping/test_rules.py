from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from corank.errors import InputError
from corank_lab.screening.stopping.rates import DOUBT, NODES, SHAPES, SLOPES, WIDE, RateModel
from corank_lab.screening.stopping.rules import (
    DEFAULT_CONFIDENCE,
    REMOVED_RULES,
    STOPPING_RULES,
    TRADE,
    read_confidence,
    stopping_rule,
)
from corank_lab.screening.stopping.urns import draw_order, missing_allowed, p_by_betting, p_of_missing, percent


def test_few_finds_give_no_estimate_and_a_complete_reading_is_certain():
    rule = stopping_rule("agree", 100)
    assert rule.estimate([1, 2, 3, 4], 50, 1) is None
    assert not rule.advises([1, 2, 3, 4], 50, 1)
    done = rule.estimate([1, 2, 3, 4, 5], 100, 1)
    assert (done.recall, done.low, done.high, done.probability) == (1, 1, 1, 1)
    assert rule.advises([], 100, 0)


def test_advice_comes_at_looks_only():
    rule = stopping_rule("agree", 1000)
    finds = list(range(1, 21))
    first = next(read for read in range(1001) if rule.advises([f for f in finds if f <= read], read, 1))
    assert first in rule.looks
    assert [read for read in (9, 10) if read in stopping_rule("agree", 12).looks] == [10]
    assert not stopping_rule("agree", 5).advises([1, 2], 4, 0)
    assert stopping_rule("agree", 5).advises([1, 2], 5, 0)


def test_advice_is_withdrawn_when_its_condition_fails():
    """Compared with a reading record by record, in which advice comes at looks and goes when the condition fails."""
    rule = stopping_rule("agree", 2000, confidence=0.9)  # a look every 20 records
    finds = list(range(1, 81, 2))
    first = next(look for look in rule.looks if look > finds[-1] and rule.is_reached(finds, look, 1))
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
            ended = [change for change in changes if change in so_far]
            if since is None and ended and so_far[-1] - ended[-1] < 3:
                assert rule.withdrawn_at(so_far, read, 1) == ended[-1]
    assert any(change in finds for change in changes)  # withdrawn between two looks
    assert len(changes) >= 3


def test_a_replayed_rule_counts_what_was_read_and_known():
    found = np.zeros(400, dtype=bool)
    found[:30:2] = True
    for name in ("agree", "betting", "sample"):
        read, known = stopping_rule(name, 400).replay(found, np.random.default_rng(0))
        assert 30 <= read <= 400
        assert known == 16
    reads = [
        stopping_rule(name, 400).replay(found, np.random.default_rng(0))[0]
        for name in ("consecutive", "hypergeometric", "agree", "betting")
    ]
    assert reads == sorted(reads)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"name": "agre"}, "did you mean 'agree'"),
        ({"name": "sample", "target": 1.0}, "target is 1.0; pass a number above 0 and below 1"),
        ({"name": "sample", "confidence": 95}, "confidence is 95; pass a number"),
    ],
)
def test_bad_rules_raise(words, message):
    with pytest.raises(InputError, match=message):
        stopping_rule(n=10, **words)


def test_the_model_is_the_posterior_summed_term_by_term():
    """All curves of both families, with both backgrounds and all factors of the odds, by plain loops."""
    n, read, finds, target = 40, 20, [1, 2, 3, 5, 9], 0.8
    model = RateModel(n, *WIDE)
    curves = [[math.exp(-b * (i / n) ** c) for i in range(1, n + 1)] for c in SHAPES for b in SLOPES]
    curves += [
        [(i / n + s) ** -a for i in range(1, n + 1)] for s in np.geomspace(0.002, 2, 12) for a in np.linspace(0, 5, 21)
    ]
    (enough, misfit), total, missing = WIDE, 0.0, np.zeros(21)
    for curve, share, node in itertools.product(curves, (0.0, 0.02), NODES):
        h = (1 - share) * np.array(curve) / sum(curve) + share / n
        seen = h[:read].sum()
        weight = np.prod(h[np.array(finds) - 1] / seen) ** (1 / (1 + 5 / enough)) * math.exp(-(node**2) / 2)
        seen = seen / (seen + math.exp(misfit * node) * (1 - seen))
        missing += weight * np.array([math.comb(4 + k, k) * seen**5 * (1 - seen) ** k for k in range(21)])
        total += weight
    cumulated = missing.cumsum() / total
    estimate = model.estimate(finds, read, 1, target)
    assert estimate.probability == pytest.approx(cumulated[missing_allowed(6, target)], rel=1e-4)
    for level, recall in ((0.5, estimate.recall), (0.975, estimate.low), (0.025, estimate.high)):
        k = next((k for k, value in enumerate(cumulated) if value >= level), n - read)
        if level == 0.975:  # the bets may widen the interval
            k = max(k, next(k for k in range(21) if p_of_missing(finds, read, n, k + 1) <= DOUBT))
        assert recall == pytest.approx(6 / (6 + k))
    # the sum over finds is extended, not made anew
    later = [*finds, 12]
    single = RateModel(n, *WIDE).probability(later, 25, 1, target)
    assert model.probability(later, 25, 1, target) == pytest.approx(single)
    assert model.probability(finds, read, 1, target) == pytest.approx(estimate.probability)


def test_large_collections_group_the_shares_without_changing_the_interval():
    finds = sorted({round(place**1.5) for place in range(1, 60)})
    plain, grouped = (RateModel(6000) for _ in range(2))
    cdf, _ = plain._missing_cdf(finds, 700, *WIDE)
    rough, _ = grouped._missing_cdf(finds, 700, *WIDE, n_shares=200)
    for missing in (0, 1, 5, 20, 100, 1000):
        assert rough(missing) == pytest.approx(cdf(missing), abs=0.003)


def test_many_finds_do_not_make_the_model_sure():
    """With ten times the records and finds, the interval keeps most of its width."""
    widths = []
    for times in (1, 10):
        estimate = RateModel(1000 * times).estimate(list(range(1, 160 * times, 2)), 300 * times, 0, 0.95)
        widths.append(estimate.high - estimate.low)
    assert widths[1] > 0.3 * widths[0]


def test_an_unread_record_keeps_the_interval_open():
    estimate = stopping_rule("agree", 2000).estimate(list(range(1, 101)), 1999, 0)
    assert estimate.low == 100 / 101
    assert estimate.high == 1.0


def test_the_expected_place_of_the_target():
    """Finds that come evenly: 90 % of the relevant records are expected among nine tenths of the records or before."""
    model = RateModel(1000)
    place = model.place_of(list(range(10, 201, 10)), 200, 0, 0.9)
    assert 500 < place <= 900
    assert model.place_of([1, 2], 200, 0, 0.9) is None


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_default_shares_its_error_between_model_and_test(confidence):
    rule = stopping_rule("agree", 600, confidence=confidence)
    finds, half, reached = sorted({round(place**1.3) for place in range(1, 40)}), (1 - confidence) / 2, []
    for read in range(finds[-1], 600, 20):
        model = 0.85 * (1 - rule.rates.probability(finds, read, 1, 0.95))
        test = 0.15 * p_by_betting(finds, read, 600, 1, 0.95)
        reached.append(rule.is_reached(finds, read, 1))
        assert reached[-1] == (model <= half and test <= half)
        assert not reached[-1] or model + test <= 1 - confidence
    assert not reached[0]
    assert reached[-1]


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_default_keeps_its_error_where_its_model_is_wrong(confidence):
    """Random orders of 20 relevant records, which no curve can foretell: the test alone must hold."""
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(60):
        found = np.zeros(200, dtype=bool)
        found[rng.choice(200, 20, replace=False)] = True
        read = stopping_rule("agree", 200, confidence=confidence).stops_at(found)
        wrong += (1 + found[:read].sum()) / 21 < 0.95
    assert wrong / 60 <= 1 - confidence


def test_what_the_default_says_of_itself_was_measured():
    """The figures beside the choice of the error are those of the stored experiment."""
    results = json.loads(Path(__file__).parents[4].joinpath("experiments/results/screening-stopping.json").read_text())
    (table,) = [table for table in results["report"]["tables"] if table["title"] == "Confidence against reading"]
    places = [table["columns"].index(name) for name in ("confidence", "read", "worst group", "worst review")]
    measured = [tuple(row[place] for place in places) for row in table["rows"]]
    assert measured == [pytest.approx(level, abs=5.1e-4) for level in TRADE]
    default = next(level for level in TRADE if level.confidence == DEFAULT_CONFIDENCE)
    assert default.worst_group >= DEFAULT_CONFIDENCE  # who says nothing gets a statement that held in every group
    record = stopping_rule("agree", 100).record
    assert "Measured: " in record
    assert percent(default.worst_group) in record
    assert percent(default.worst_review) in record
    assert stopping_rule("agree", 100, confidence=0.7).record == "Accepted error: 30 in 100, over many screenings."
    assert "Measured with 1 in 10: " in stopping_rule("agree", 100, confidence=0.92).record


@pytest.mark.parametrize(
    ("text", "confidence"),
    [("1 in 20", 0.95), ("1 of 5", 0.8), ("1/50", 0.98), ("0.9", 0.9), ("0.1", 0.9), ("10 %", 0.9), ("95%", 0.95)],
)
def test_the_accepted_error_is_said_in_words(text, confidence):
    assert read_confidence(text) == confidence


@pytest.mark.parametrize("text", ["", "often", "1 in 0", "3 in 4", "0", "1", "-1", "200 %"])
def test_other_words_raise(text):
    with pytest.raises(InputError, match="accepted error"):
        read_confidence(text)


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
    with pytest.raises(InputError, match=rf"^the stopping rule '{name}' was removed; choose") as raised:
        stopping_rule(name, 10)
    assert all(other in str(raised.value) for other in STOPPING_RULES)


def test_the_order_of_a_sample_follows_from_seed_and_records_read():
    order = draw_order(30, [3, 7, 1], 5)
    assert sorted(order) == sorted(set(range(30)) - {1, 3, 7})
    assert order == draw_order(30, [1, 3, 7], 5)
    assert order != draw_order(30, [1, 3, 7], 6)
