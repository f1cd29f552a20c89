from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from corank.evaluation.compare import MethodOutcome
from corank.evaluation.compare.winner import choose_winner, quality
from corank.metrics import evaluate, holm, wilcoxon

QID = np.repeat(np.arange(40), 6)
Y = np.random.default_rng(0).integers(0, 3, len(QID)).astype(float)


def outcome(name, noise, complexity, seed=1, metric="nDCG@5"):
    rng = np.random.default_rng(seed)
    evaluation = None if noise is None else evaluate(Y, Y + noise * rng.normal(size=len(Y)), QID, metric)
    return MethodOutcome(name, name.upper(), False, False, complexity, "", (), evaluation, 0.0, 1.0, 0.0, 0.0, 0, 5)


def test_the_simplest_within_chance_wins():
    found = choose_winner(
        [outcome("c", 0.5, 3), outcome("b", 0.5, 2, seed=2), outcome("a", 30.0, 1)], "nDCG@5", 0.95, 0
    )
    assert (found.simplest, found.winner) == ("a", "b")
    assert found.sentence.startswith("B wins: nDCG@5 0.")
    assert "is not significantly better" in found.sentence or found.best == "b"


def test_the_simplest_method_can_be_the_best():
    found = choose_winner([outcome("a", 0.5, 1), outcome("b", 0.5, 2, seed=2)], "nDCG@5", 0.95, 0)
    assert found.winner == found.simplest == "a"
    assert found.sentence.startswith("No method beats the simplest one, A: ")


def test_tests_are_the_best_against_all_and_the_simplest_against_all():
    outcomes = [outcome("a", 30.0, 1), outcome("b", 2.0, 2), outcome("c", 0.1, 3)]
    found = choose_winner(outcomes, "nDCG@5", 0.95, 0)
    assert [(test.base, test.other) for test in found.tests] == [("c", "a"), ("c", "b"), ("a", "b")]
    values = {one.name: one.evaluation["nDCG@5"].values for one in outcomes}
    p = []
    for other in "ab":
        gap = values[other] - values["c"]
        p.append(wilcoxon(gap[~np.isnan(gap)]))
    assert [test.p_adjusted for test in found.tests[:2]] == pytest.approx(holm(p).tolist())
    assert "the simplest, A, is behind by" in found.sentence


def test_too_few_queries_to_tell_leave_the_best_mean():
    few = QID < 5
    rng = np.random.default_rng(0)

    def of(name, noise, complexity):
        evaluation = evaluate(Y[few], Y[few] + noise * rng.normal(size=few.sum()), QID[few], "nDCG@5")
        return replace(outcome(name, None, complexity), evaluation=evaluation)

    found = choose_winner([of("a", 30.0, 1), of("b", 0.01, 2)], "nDCG@5", 0.95, 0, "groups of rows")
    assert (found.simplest, found.winner) == ("a", "b")
    assert "5 groups of rows are too few to distinguish 2 methods at level 5%: judge more rows." in found.sentence


def test_a_random_order_never_wins_but_is_mentioned():
    found = choose_winner([outcome("random", 30.0, 0), outcome("a", 30.0, 1, seed=5)], "nDCG@5", 0.95, 0)
    assert found.winner == "a"
    assert found.sentence.endswith("not significantly better than a random order: judge more queries.")


def test_a_mean_that_few_queries_made_does_not_beat_who_is_better_on_most():
    # P@1 of 40 queries: b is wrong on many by little, a on few by much
    qid = np.repeat(np.arange(40), 2)
    y = np.tile([1.0, 0.0], 40)
    gains = np.where(np.arange(40) < 34, 0.1, -2.0)
    base = np.zeros(80)
    a = evaluate(y, base, qid, "MSE")
    b = evaluate(y, base + np.repeat(gains, 2) * np.tile([1.0, 0.0], 40), qid, "MSE")
    made = [
        MethodOutcome(name, name, False, False, at, "", (), found, 0.0, 1.0, 0.0, 0.0, 0, 5)
        for at, (name, found) in enumerate((("b", b), ("a", a)))
    ]
    found = choose_winner(made, "MSE", 0.95, 0)
    assert found.best == "a"
    assert found.tests[0].p_adjusted < 0.05
    assert found.winner == "b"
    assert "by ranks b is better (p = " in found.sentence
    assert "chance" not in found.sentence


def with_values(name, complexity, values):
    """Make a method whose values of nDCG@10 are known."""
    qid, y = np.repeat(np.arange(len(values)), 2), np.tile([1.0, 0.0], len(values))
    found = evaluate(y, y, qid, ["nDCG@10"])
    result = replace(found["nDCG@10"], values=values, mean=float(values.mean()))
    told = replace(found, results={"nDCG@10": result})
    return MethodOutcome(name, name, False, False, complexity, "", (), told, 0.0, 1.0, 0.0, 0.0, 0, 5)


def test_small_gains_on_most_queries_do_not_outweigh_large_losses():
    rng = np.random.default_rng(0)
    fancy = np.full(100, 0.6)
    cheap = fancy + np.where(np.arange(100) < 51, 1e-3 * rng.random(100), -0.3 - 0.1 * rng.random(100))
    found = choose_winner([with_values("cheap", 1, cheap), with_values("fancy", 2, fancy)], "nDCG@10", 0.95, 0)
    assert found.tests[0].n_higher > found.tests[0].n_lower
    assert (found.best, found.winner) == ("fancy", "fancy")
    assert "the simplest, cheap, is behind by" in found.sentence


def test_methods_better_by_ranks_than_the_simplest_are_mentioned():
    rng = np.random.default_rng(0)
    cheap = np.full(60, 0.5)
    steady = cheap + 1e-3 * rng.random(60)
    wild = cheap + np.where(np.arange(60) % 2, 0.3, -0.29) * (1 + 0.1 * rng.random(60))
    made = [with_values(*one) for one in (("cheap", 1, cheap), ("steady", 2, steady), ("wild", 3, wild))]
    found = choose_winner(made, "nDCG@10", 0.95, 0)
    assert (found.best, found.winner) == ("wild", "cheap")
    assert found.sentence.startswith("The simplest method wins, cheap: ")
    assert "of wild, is not significantly better" in found.sentence
    assert "Significantly better by ranks, although not by mean: steady (p = " in found.sentence


def test_errors_are_better_small():
    found = choose_winner(
        [outcome("a", 30.0, 1, metric="disagreement"), outcome("b", 0.1, 2, metric="disagreement")],
        "disagreement", 0.95, 0,
    )  # fmt: skip
    assert found.best == found.winner == "b"
    assert quality(outcome("a", None, 1), "disagreement") == -np.inf


def test_no_complete_method_means_no_winner_and_a_single_one_wins():
    assert choose_winner([outcome("a", None, 1)], "nDCG@5", 0.95, 0).winner == ""
    alone = choose_winner([outcome("a", 1.0, 1), outcome("b", None, 2)], "nDCG@5", 0.95, 0)
    assert (alone.winner, alone.tests) == ("a", ())
