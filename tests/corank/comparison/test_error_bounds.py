"""The bound of a study uses the test rows of the first fold only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from corank.comparison.plan import error_bounds
from corank.comparison.problem import InputRows, make_problem

N = 40
QID = np.repeat(np.arange(N), 6)
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, size=len(QID)).astype(float)
SCORES = Y + RNG.normal(size=len(Y))


def problem_of(y, qid, folds=4):
    return make_problem(InputRows(np.zeros((len(y), 2)), y, qid), None, folds, 0)[0]


def disagreement(scores, y):
    """By every pair of different grades."""
    wrong = [
        float(scores[a] < scores[b]) + 0.5 * (scores[a] == scores[b])
        for a in range(len(y))
        for b in range(len(y))
        if y[a] > y[b]
    ]
    return np.mean(wrong) if wrong else None


def test_it_rests_on_the_queries_of_the_first_fold():
    problem = problem_of(Y, QID)
    (bound,) = error_bounds(problem, SCORES[problem.judged], 5)
    rows = problem.test(0)
    errors = [disagreement(SCORES[rows[QID[rows] == q]], Y[rows[QID[rows] == q]]) for q in np.unique(QID[rows])]
    assert bound.error == pytest.approx(np.mean([one for one in errors if one is not None]))
    assert bound.low < bound.error < bound.high
    assert any("first fold" in text for text in bound.assumptions)
    assert any("5 models" in text for text in bound.assumptions)
    (alone,) = error_bounds(problem, SCORES[problem.judged], 1)
    assert alone.high - alone.low < bound.high - bound.low


def test_scores_of_other_folds_have_no_effect():
    problem = problem_of(Y, QID)
    moved = np.where(np.isin(problem.judged, problem.test(0)), SCORES[problem.judged], 0.0)
    assert error_bounds(problem, moved, 5) == error_bounds(problem, SCORES[problem.judged], 5)


def test_rows_of_one_query_are_what_was_drawn():
    problem = problem_of(Y, None)
    (bound,) = error_bounds(problem, SCORES[problem.judged], 2)
    rows = problem.test(0)
    assert bound.error == pytest.approx(disagreement(SCORES[rows], Y[rows]))
    assert any("stratified by grade" in text for text in bound.assumptions)


def test_a_fold_without_a_pair_has_no_bound():
    problem = problem_of(Y, QID)
    grades = np.array(Y)
    grades[problem.test(0)] = 1.0
    assert error_bounds(replace(problem, y=grades), SCORES[problem.judged], 3) == ()
