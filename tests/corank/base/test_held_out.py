"""One way to set judgements aside, for scores and preferences."""

from __future__ import annotations

import numpy as np
import pytest

from corank.base.held_out import hold_out
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import disagreement_error

rng = np.random.default_rng(0)
QID = np.repeat(np.arange(10), 5)
X, Y = rng.normal(size=(50, 2)), rng.integers(0, 3, 50).astype(float)
PAIRS = np.array([(i, j) for i in range(50) for j in range(50) if QID[i] == QID[j] and Y[i] > Y[j]])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.999])
@pytest.mark.parametrize("data", [RankingData.of(X, Y, QID), RankingData.of_pairs(X, PAIRS, QID)])
def test_whole_queries_are_set_aside(data, fraction, seed):
    parts = hold_out(data, fraction, np.random.default_rng(seed))
    out, kept = (set(QID[part.scored_rows]) for part in (parts.test, parts.train))
    assert not out & kept
    assert len(out) == min(max(round(10 * fraction), 1), 9)
    assert parts.train.n_pairs + parts.test.n_pairs == data.n_pairs
    assert parts.train.X is data.X


@pytest.mark.parametrize("seed", range(20))
def test_one_small_query_gives_both_parts_a_pair(seed):
    y = np.random.default_rng(seed).permutation([0.0] * 9 + [1.0] * 3)
    parts = hold_out(RankingData.of(X[:12], y), 0.1, np.random.default_rng(seed))
    assert parts.train.n_pairs
    assert parts.test.n_scored == 2
    assert parts.test.n_pairs == 1


def test_what_cannot_be_cut_in_two_gets_one_sentence():
    for y in ([0, 1, 1], [0, 1, 1, 1, 1, 1]):
        with pytest.raises(InputError, match=r"holds out 0.1 of \d judgements of one query"):
            hold_out(RankingData.of(X[: len(y)], y), 0.1, np.random.default_rng(0))
    with pytest.raises(InputError, match="judge more rows, or set early_stopping=False"):
        hold_out(RankingData.of_pairs(X, [[0, 1]]), 0.5, np.random.default_rng(0))


def test_errors_are_those_of_the_metric():
    data, scores = RankingData.of(X, Y, QID), rng.integers(0, 4, 50).astype(float)
    parts = hold_out(data, 0.4, np.random.default_rng(1))
    rows = parts.rows
    assert parts.error(scores[rows]) == pytest.approx(disagreement_error(Y[rows], scores[rows], QID[rows]))
    squares = hold_out(data, 0.4, np.random.default_rng(1), by_squares=True)
    assert squares.error(scores[squares.rows]) == pytest.approx(np.mean((Y - scores)[squares.rows] ** 2))


def test_preferences_are_judged_as_the_scores_they_came_from():
    scores = rng.integers(0, 4, 50).astype(float)
    parts = hold_out(RankingData.of_pairs(X, PAIRS, QID), 0.4, np.random.default_rng(1))
    rows = parts.rows
    assert parts.error(scores[rows]) == pytest.approx(disagreement_error(Y[rows], scores[rows], QID[rows]))


@pytest.mark.parametrize("by_squares", [False, True])
def test_what_weighs_nothing_is_not_set_aside(by_squares):
    w = np.where(np.isin(QID, [3, 4]), 1.0, 0.0)
    for seed in range(5):
        parts = hold_out(RankingData.of(X, Y, QID, w), 0.5, np.random.default_rng(seed), by_squares=by_squares)
        assert set(QID[parts.rows]) <= {3, 4}
    pair_weights = np.isin(QID[PAIRS[:, 0]], [3, 4]).astype(float)
    data = RankingData.of_pairs(X, PAIRS, QID, pair_weights=pair_weights)
    assert set(QID[hold_out(data, 0.5, np.random.default_rng(0)).rows]) <= {3, 4}


@pytest.mark.parametrize("seed", range(8))
def test_both_parts_of_one_query_hold_a_pair_that_weighs_something(seed):
    y, w = [0, 1, 2, 2, 0, 1, 2, 0], [1, 1, 1, 1, 0, 0, 0, 0]
    parts = hold_out(RankingData.of(X[:8], y, weights=w), 0.5, np.random.default_rng(seed))
    parts.train.require_pairs()
    parts.test.require_pairs()


def test_squares_need_no_pair():
    data = RankingData.of(X[:4], np.ones(4))
    parts = hold_out(data, 0.3, np.random.default_rng(0), by_squares=True)
    assert (parts.train.n_scored, parts.test.n_scored) == (3, 1)
