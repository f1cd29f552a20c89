from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from corank.comparison import MethodOutcome
from corank.comparison.advice import MARGIN, give_advice, quality, recommend
from corank.metrics import evaluate, holm

QID = np.repeat(np.arange(40), 6)
Y = np.random.default_rng(0).integers(0, 3, len(QID)).astype(float)


def outcome(name, noise, complexity, seed=1, metric="nDCG@5"):
    rng = np.random.default_rng(seed)
    evaluation = None if noise is None else evaluate(Y, Y + noise * rng.normal(size=len(Y)), QID, metric)
    return MethodOutcome(name, name.upper(), False, False, complexity, "", (), evaluation, 0.0, 1.0, 0.0, 0.0, 5)


def with_values(name, complexity, values):
    """Make a method whose values of nDCG@10 are known."""
    qid, y = np.repeat(np.arange(len(values)), 2), np.tile([1.0, 0.0], len(values))
    found = evaluate(y, y, qid, ["nDCG@10"])
    result = replace(found["nDCG@10"], values=values, mean=float(values.mean()))
    told = replace(found, results={"nDCG@10": result})
    return MethodOutcome(name, name, False, False, complexity, "", (), told, 0.0, 1.0, 0.0, 0.0, 5)


def test_a_better_mean_is_recommended_although_nothing_is_proved():
    rng = np.random.default_rng(3)
    simple = 0.63 + 0.2 * rng.normal(size=28)
    fancy = simple + 0.056 + 0.2 * rng.normal(size=28)
    found = give_advice([with_values("simple", 1, simple), with_values("fancy", 2, fancy)], "nDCG@10", 0.95, 0)
    assert found.tests[0].p_adjusted > 0.05
    assert (found.winner, found.best, found.simplest) == ("fancy", "fancy", "simple")
    (rival,) = found.rivals
    assert (rival.name, 0.5 < rival.p_better < 0.95) == ("simple", True)
    assert rival.n_needed > 28
    assert found.sentence.startswith("fancy is recommended: nDCG@10 0.")
    assert (
        "28 queries do not settle it. The probability that it is better is below 0.95 against simple (0."
        in found.sentence
    )
    assert (
        "queries would make its lead over simple probable (0.95), if the difference stays as it is." in found.sentence
    )


def test_a_simpler_method_is_preferred_only_if_the_lead_is_surely_below_the_margin():
    rng = np.random.default_rng(0)
    simple = rng.random(4000)
    close = simple + 0.001 + 0.01 * rng.normal(size=4000)
    far = simple + 0.02 + 0.01 * rng.normal(size=4000)
    unsure = simple + 0.002 + 0.5 * rng.normal(size=4000)
    assert recommend({"a": simple, "b": close}, {})[:2] == ("a", "b")
    assert recommend({"a": simple, "b": far}, {})[:2] == ("b", "b")
    assert (unsure - simple).mean() > 0
    assert recommend({"a": simple, "b": unsure}, {})[:2] == ("b", "b")
    found = give_advice([with_values("a", 1, simple), with_values("b", 2, close)], "nDCG@10", 0.95, 0)
    assert found.winner == "a"
    assert f"which is less than {MARGIN:g} with probability 1.00; a is simpler." in found.sentence


def test_a_clear_lead_is_said_in_one_sentence():
    found = give_advice([outcome("a", 30.0, 1), outcome("b", 0.1, 2)], "nDCG@5", 0.95, 0)
    assert found.winner == "b"
    assert "It is better than every other method with probability 0.95 or more (" in found.sentence


def test_tests_are_the_best_against_all():
    outcomes = [outcome("a", 30.0, 1), outcome("b", 2.0, 2), outcome("c", 0.1, 3)]
    found = give_advice(outcomes, "nDCG@5", 0.95, 0)
    assert [(test.base, test.other) for test in found.tests] == [("c", "a"), ("c", "b")]
    values = {one.name: one.evaluation["nDCG@5"].values for one in outcomes}
    p = []
    for other in "ab":
        gap = values[other] - values["c"]
        gap = gap[~np.isnan(gap)]
        p.append(2 * stats.norm.cdf(-abs(gap.sum()) / np.sqrt(gap @ gap)))  # the limit of many sign flips
    assert [test.p_value for test in found.tests[:2]] == pytest.approx(p, abs=0.02)
    assert [test.p_adjusted for test in found.tests[:2]] == holm([test.p_value for test in found.tests[:2]]).tolist()
    assert [one.name for one in found.rivals] == ["b", "a"] or found.rivals[0].p_better == found.rivals[1].p_better


def test_a_random_order_is_never_recommended_but_is_mentioned():
    found = give_advice(
        [outcome("random", 30.0, 0), outcome("a", 30.0, 1, seed=5)], "nDCG@5", 0.95, 0, "groups of rows"
    )
    assert (found.winner, found.rivals) == ("a", ())
    assert "It is better than a random order with probability 0." in found.sentence
    assert found.sentence.endswith("only. Judge more rows.")


def test_errors_are_better_small_and_large_errors_have_a_relative_margin():
    found = give_advice(
        [outcome("a", 30.0, 1, metric="disagreement"), outcome("b", 0.1, 2, metric="disagreement")],
        "disagreement", 0.95, 0,
    )  # fmt: skip
    assert found.best == found.winner == "b"
    assert quality(outcome("a", None, 1), "disagreement") == -np.inf
    # the error differs by .02 %, far above 0.005 but below .5 % of it
    qid, y = np.repeat(np.arange(50), 2), np.tile([1000.0, 0.0], 50)
    rng = np.random.default_rng(0)
    base = 1000.0 + rng.normal(size=100)
    made = [
        replace(outcome(name, None, at), evaluation=evaluate(y, base * (1.0 - 1e-4 * at), qid, "MSE"))
        for at, name in enumerate(("plain", "fancy"))
    ]
    found = give_advice(made, "MSE", 0.95, 0)
    assert (found.winner, found.best) == ("plain", "fancy")
    assert abs(found.rivals[0].difference) > 10 * MARGIN


def test_no_complete_method_means_no_winner_and_a_single_one_wins():
    assert give_advice([outcome("a", None, 1)], "nDCG@5", 0.95, 0).winner == ""
    alone = give_advice([outcome("a", 1.0, 1), outcome("b", None, 2)], "nDCG@5", 0.95, 0)
    assert (alone.winner, alone.tests) == ("a", ())
