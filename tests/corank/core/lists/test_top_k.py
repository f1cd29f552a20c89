"""Selection of the first k rows against plain sorting and averaging over every order of the ties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.core.lists.ranked import BEST, EXPECTED, EXPONENTIAL, GIVEN, LINEAR, RELEVANT, top_gains

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=6)


def gain(grade, code, threshold, highest):
    if code == EXPONENTIAL:
        return 2.0**grade - 1.0
    if code == LINEAR:
        return grade
    return float(grade >= (highest if code == BEST else threshold))


def orders(scores):
    """Every order of the rows by falling score."""
    return [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]


def run(grades, scores, discounts, code, ties, starts=None):
    starts = np.array([0, len(grades)] if starts is None else starts, dtype=np.uint64)
    out = np.full((len(starts) - 1, 2), -1.0)
    top_gains(
        np.asarray(grades, float), np.asarray(scores, float), starts, 0, len(out), discounts, code, 1.5, ties, out
    )  # fmt: skip
    return out


@given(rows, st.integers(1, 7), st.sampled_from([EXPONENTIAL, LINEAR, RELEVANT, BEST]))
def test_expected_gain_is_the_mean_over_all_orders_of_the_ties(rows, k, code):
    grades, scores = np.array(rows, float).T
    discounts = 1.0 / np.arange(1, k + 1)
    gains = [gain(grade, code, 1.5, grades.max()) for grade in grades]
    earned = [sum(gains[row] * d for row, d in zip(order, discounts, strict=False)) for order in orders(scores)]
    ideal = sum(g * d for g, d in zip(sorted(gains, reverse=True), discounts, strict=False))
    assert run(grades, scores, discounts, code, EXPECTED)[0] == pytest.approx([np.mean(earned), ideal])


@given(rows, st.integers(1, 7))
def test_given_order_is_that_of_a_stable_sort(rows, k):
    grades, scores = np.array(rows, float).T
    discounts = 1.0 / np.arange(1, k + 1)
    order = np.argsort(-scores, kind="stable")[:k]
    assert run(grades, scores, discounts, LINEAR, GIVEN)[0, 0] == pytest.approx(grades[order] @ discounts[: len(order)])


@pytest.mark.parametrize("ties", [EXPECTED, GIVEN])
def test_rows_not_retrieved_earn_nothing_but_count_for_the_best_order(ties):
    out = run([0, 3, 1], [2.0, -np.inf, 1.0], np.ones(3), LINEAR, ties)
    assert out[0].tolist() == [1.0, 4.0]


def test_queries_without_rows_earn_nothing_and_leave_the_others_alone():
    out = run([1, 2], [0.0, 1.0], np.ones(1), LINEAR, EXPECTED, starts=[0, 0, 1, 1, 2])
    assert out.tolist() == [[0, 0], [1, 1], [0, 0], [2, 2]]


def test_only_the_queries_of_the_run_are_written():
    starts = np.array([0, 1, 2, 3], dtype=np.uint64)
    out = np.full((3, 2), -1.0)
    top_gains(np.ones(3), np.ones(3), starts, 1, 2, np.ones(1), LINEAR, 0.0, EXPECTED, out)
    assert out.tolist() == [[-1, -1], [1, 1], [-1, -1]]
