"""The forecast: numbers against direct searches, and its sentences."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from corank_lab.records.records import Records
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry
from corank_lab.screening.stopping import Forecaster, stopping_rule
from corank_lab.screening.stopping.urns import (
    RandomSample,
    SamplePlan,
    p_by_betting,
    percent,
    proof_sentence,
    richness_sentence,
)

EARLY = list(range(1, 81, 2))


def make_forecast(rule, finds, read, known=0):
    return Forecaster(rule).forecast(finds, read, known)


def test_numbers_are_those_of_a_search_record_by_record():
    rule = stopping_rule("agree", 500)
    found = make_forecast(rule, EARLY, 200, known=1)
    assert (found.unread, found.found) == (300, 41)
    assert found.p == p_by_betting(EARLY, 200, 500, 1, 0.95)
    more = next(more for more in range(301) if p_by_betting(EARLY, 200 + more, 500, 1, 0.95) <= 0.05)
    assert found.to_test == more
    stop = next(read for read in range(200, 501) if rule.advises(EARLY, read, 1))
    assert found.to_stop == stop - 200
    assert found.to_prove == SamplePlan(300, 41).first_size
    assert found.to_reach == 0


def test_the_three_kinds_of_knowledge_are_three_lines():
    lines = make_forecast(stopping_rule("agree", 500), EARLY, 100, known=1).lines()
    assert [line.split(":")[0] for line in lines] == ["Estimated", "Tested", "Proved"]
    assert "recall by the model after about" in lines[0]
    assert "nothing yet" in lines[2]


def test_a_small_review_names_what_can_be_proved():
    found = make_forecast(stopping_rule("agree", 300), [1, 2, 3, 5, 8, 9, 14], 100, known=1)
    assert found.to_prove > 0.8 * 200
    recall, draws = found.provable
    assert draws == SamplePlan(200, 8, recall).first_size <= 100
    assert SamplePlan(200, 8, recall + 0.1).first_size > 100
    assert (
        f"8 finds are too few to prove 95 % recall at 95 % confidence without reading {found.to_prove}"
        in (found.lines()[2])
    )
    assert f"60 % can be proved after {draws}" in found.lines()[2]


def test_no_more_records_are_named_than_are_unread():
    lines = make_forecast(stopping_rule("agree", 256), [], 0).lines()
    assert "the next 256 records would have" in lines[1]  # not 260, by rounding up


def test_nothing_is_complete_while_records_are_unread():
    for read in range(100, 500, 7):
        lines = make_forecast(stopping_rule("agree", 500), EARLY, read).lines()
        assert "(100 % to 100 %)" not in " ".join(lines)
        assert "Estimated: 100 %" not in lines[0]
    (line,) = make_forecast(stopping_rule("agree", 500), EARLY, 500).lines()
    assert line.startswith("Proved: every record is read")
    certain = make_forecast(stopping_rule("agree", 500), list(range(1, 401)), 490).lines()
    assert certain[2].startswith("Proved: 95 % recall; too few records are unread to miss it")


def test_few_finds_and_other_rules():
    for name in ("agree", "sample", "consecutive", "hypergeometric"):
        found = make_forecast(stopping_rule(name, 60), [2], 10)
        assert found.estimate is None
        assert found.lines()[0] == "Estimated: nothing yet; an estimate needs five relevant records found by reading."
    assert make_forecast(stopping_rule("sample", 60), [2], 10).to_stop is None
    assert make_forecast(stopping_rule("consecutive", 600), [2], 10).to_stop == 42
    assert make_forecast(stopping_rule("agree", 60), [], 0).to_stop == 60


def test_a_large_collection_has_a_forecast():
    rng = np.random.default_rng(0)
    finds = sorted((rng.choice(4000, 700, replace=False) + 1).tolist())
    found = make_forecast(stopping_rule("agree", 100_000), finds, 4100)
    assert 0 < found.to_test < 96_000
    assert len(found.lines()) == 3


@pytest.mark.thin(3)
@pytest.mark.parametrize("rule", ["agree", "hypergeometric", "consecutive", "sample"])
def test_a_forecaster_forecasts_what_a_single_forecast_does(rule):
    rng = np.random.default_rng(1)
    relevant = rng.random(400) < 0.5 * np.exp(-np.arange(400) / 40)
    rule = stopping_rule(rule, 400, target=0.8)
    forecaster = Forecaster(rule)
    for read in range(0, 400, 3):
        finds = (np.flatnonzero(relevant[:read]) + 1).tolist()
        ours, single = forecaster.forecast(finds, read, 1), make_forecast(rule, finds, read, 1)
        assert ours == single
        assert forecaster.forecast(finds, read, 1) is ours


def test_a_sample_says_what_it_proves_and_never_all_with_records_unread():
    assert proof_sentence(1.0, 2, 0.95) == "Proved at 95 % confidence: no unread record is relevant."
    assert (
        proof_sentence(1.0, 0, 0.95) == "Proved at 95 % confidence: at least 100 % of the relevant records are found."
    )
    assert "at least 99.9 %" in proof_sentence(0.99999, 2, 0.95)
    n, rule = 60, stopping_rule("sample", 60, target=0.5)
    answers = ScreeningAnswers(Records([f"{at}" for at in range(n)], ["tin"] * n, [""] * n))
    for at in range(12):
        answers.add(ScreeningEntry("relevant", f"{at}", "model"))
    sample = RandomSample(answers, n, rule, 0)
    first = sample.plan.sizes[0]
    assert sample.lines() == (f"Proved: nothing yet. The next test is after {first} more random records.",)
    for at in sample.drawn[:first]:
        answers.add(ScreeningEntry("not", f"{at}", "sample"))
    sample = RandomSample(answers, n, rule, 0)
    bound = sample.plan.bound([False] * first)
    assert 0.5 <= bound < 1
    proof, elusion = sample.lines()
    assert proof == f"Proved at 95 % confidence: at least {percent(bound)} of the relevant records are found."
    assert elusion.startswith(
        f"Elusion: 0 of {first} random unread records are relevant (0 %). At 95 % confidence, at "
    )
    # the exact bound at the error of the first test, by enumeration: none of K is drawn with a larger probability
    most = max(
        k for k in range(48 - first + 1)
        if math.comb(48 - k, first) / math.comb(48, first) > sample.plan.error(0)
    )  # fmt: skip
    assert f"at most {most} of the 48 records that were unread before the sample" in elusion
    assert elusion.endswith(f"so at most {most} of the {48 - first} that are unread now.")
    assert sample.plan.most([False] * first) == most == round(12 / bound) - 12


@pytest.mark.parametrize(("n", "size", "finds"), [(60, 20, 3), (60, 60, 7), (40, 10, 0)])
def test_richness_is_the_exact_interval_of_an_enumeration(n, size, finds):
    """The numbers of relevant records under which so few, and so many, finds are not rarer than one in 40."""

    def chance(relevant, hits):
        return math.comb(relevant, hits) * math.comb(n - relevant, size - hits) / math.comb(n, size)

    def is_possible(k):
        below, above = range(finds + 1), range(finds, size + 1)
        return min(sum(chance(k, x) for x in below), sum(chance(k, x) for x in above)) > 0.025

    possible = [k for k in range(finds, n - size + finds + 1) if is_possible(k)]
    low, high = possible[0], possible[-1]
    sentence = richness_sentence(n, size, finds)
    assert f"At 95 % confidence, {low} to {high} of all {n} records are: " in sentence
    shares = [float(share) for share in re.findall(r"([\d.]+) %", sentence.rpartition(": ")[2])]
    assert shares[0] / 100 <= low / n < shares[0] / 100 + 0.001  # rounded outwards
    assert shares[1] / 100 - 0.001 < high / n <= shares[1] / 100
