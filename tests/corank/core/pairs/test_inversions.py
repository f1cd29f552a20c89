"""Counts of wrong pairs against a loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.core.pairs.inversions import pair_losses

rows = st.lists(st.tuples(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 4.0]), st.integers(0, 3)), min_size=0, max_size=12)


def by_loop(grades, scores, power):
    loss, pairs, ordered = 0.0, 0, 0
    for i in range(len(grades)):
        for j in range(i):
            ordered += scores[i] != scores[j]
            if grades[i] == grades[j]:
                continue
            pairs += 1
            right = (grades[i] - grades[j]) * (scores[i] - scores[j])
            loss += abs(grades[i] - grades[j]) ** power * (0.5 if right == 0 else float(right < 0))
    return loss, pairs, ordered


def counted(grades, scores, power):
    order = np.argsort(-scores, kind="stable")
    out = np.full((1, 3), -1.0)
    starts = np.array([0, len(grades)], dtype=np.int64)
    pair_losses(grades[order], scores[order], starts, 0, 1, float(power), out)
    return out[0]


@given(rows, st.sampled_from([0.0, 1.0, 0.5, 2.0, 3.0]))
def test_counts_are_those_of_a_loop_over_pairs(rows, power):
    grades, scores = np.array(rows, dtype=float).reshape(-1, 2).T
    assert counted(grades, scores, power) == pytest.approx(by_loop(grades, scores, power))


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_many_real_grades(power):
    rng = np.random.default_rng(0)
    grades, scores = rng.normal(size=300), np.round(rng.normal(size=300), 1)
    assert counted(grades, scores, power) == pytest.approx(by_loop(grades, scores, power))


def test_more_pairs_than_fit_in_32_bits():
    n = 200_000
    grades = np.arange(n, dtype=float)
    # upside down: every pair is wrong
    assert counted(grades, -grades, 0.0).tolist() == [n * (n - 1) / 2] * 3


def test_grades_that_differ_by_less_than_the_lowest_can_show_are_different():
    grades, scores = np.array([-1e17, 1.0, 2.0]), np.array([0.0, 2.0, 1.0])
    assert tuple(counted(grades, scores, 0.0)) == by_loop(grades, scores, 0.0) == (1, 3, 3)
