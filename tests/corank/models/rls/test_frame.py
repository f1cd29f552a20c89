from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.models.rls import frame as module
from corank.models.rls.frame import ComparedRows
from corank.models.rls.leave_out import LeaveOutScores
from helpers.explicit_rls import scored_laplacian

RNG = np.random.default_rng(1)
QID = RNG.integers(0, 8, 40)
X = RNG.normal(size=(40, 3))
Y = np.where(RNG.random(40) < 0.3, np.nan, RNG.integers(0, 3, 40))
W = RNG.choice([0.0, 1.0, 2.0], 40)


def exactly(values):
    return LeaveOutScores(values, np.zeros_like(values))


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("block", [4, 10_000])
@pytest.mark.parametrize("ties", [False, True])
def test_designs_are_a_square_root_of_the_mean_over_pairs(monkeypatch, query_weight, weights, block, ties):
    monkeypatch.setattr(module, "_BLOCK", block)
    frame = ComparedRows.of(RankingData.of(X, Y, QID, weights), query_weight, ties)
    parts = list(frame.designs(X, np.asarray))
    Z, t = np.vstack([Z for _, _, Z, _ in parts]), np.concatenate([t for *_, t in parts])
    L = scored_laplacian(Y, QID, weights=weights, query_weight=query_weight, ties=ties)
    y = np.nan_to_num(Y)
    np.testing.assert_allclose(Z.T @ Z, X.T @ L @ X, rtol=1e-10)
    np.testing.assert_allclose(Z.T @ t, X.T @ L @ y, rtol=1e-10)
    np.testing.assert_allclose(t @ t, y @ L @ y, rtol=1e-10)
    dense = np.zeros((40, 40))
    dense[np.ix_(frame.rows, frame.rows)] = frame.L.toarray()
    np.testing.assert_allclose(dense, L, atol=1e-12)
    for share, begin in zip(frame.shares, frame.starts, strict=False):
        # what the mean loses without the query
        y = np.where(QID[frame.rows[begin]] == QID, np.nan, Y)
        left = scored_laplacian(y, QID, weights=weights, query_weight=query_weight, ties=ties)
        np.testing.assert_allclose(left * (1 - share), np.where(np.isnan(y[:, None]), 0, L), atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_the_metric_sees_predictions_without_their_scale(ties):
    frame = ComparedRows.of(RankingData.of(X, Y, QID, np.maximum(W, 0.5)), "pairs", ties)
    ((*_, t),) = frame.designs(X, np.asarray)
    assert frame.scores(exactly(t[:, None]), "disagreement")[0] == 0.0
    assert frame.scores(exactly(-t[:, None]), "disagreement")[0] == 1.0
    assert frame.scores(exactly(0 * t[:, None]), "disagreement")[0] == 0.5
    # H f and f are not in one order inside a query where grades weigh differently
    f = np.random.default_rng(0).normal(size=40)
    held = frame.L.half(f[frame.rows])
    np.testing.assert_allclose(
        frame.scores(exactly(held[:, None]), "disagreement"),
        frame.scores(exactly(frame.L.half(np.exp(f)[frame.rows])[:, None]), "disagreement"),
    )


def test_a_query_whose_weight_is_all_in_one_row_is_not_compared():
    weights = np.array([1e10, 1e-9, 1.0, 2.0])
    frame = ComparedRows.of(RankingData.of(X[:4], [0, 1, 0, 1], [0, 0, 1, 1], weights), "equal", False)
    assert frame.rows.tolist() == [2, 3]
    np.testing.assert_allclose(frame.shares, [1.0])


def test_rows_of_one_grade_are_compared_only_with_ties():
    data = RankingData.of(np.zeros((6, 1)), [1, 2, np.nan, 3, 4, 4], [0, 0, 0, 1, 2, 2])
    assert ComparedRows.of(data, "pairs", ties=False).rows.tolist() == [0, 1]
    assert ComparedRows.of(data, "pairs", ties=True).rows.tolist() == [0, 1, 4, 5]


def test_pairs_ask_for_a_difference_of_one():
    pairs, qid = np.array([[0, 1], [4, 5], [2, 1], [3, 4]]), np.array([0, 0, 0, 1, 1, 1])
    frame = ComparedRows.of(RankingData.of_pairs(X[:6], pairs, qid, [1, 1, 0, 1, 4, 1.0]), "pairs", ties=False)
    ((_, starts, Z, t),) = frame.designs(X, np.asarray)
    assert starts.tolist() == [0, 1, 3]
    # weights 1, 4 and 4 of nine
    np.testing.assert_allclose(Z, np.array([X[0] - X[1], 2 * (X[4] - X[5]), 2 * (X[3] - X[4])]) / 3)
    np.testing.assert_allclose(t, np.array([1, 2, 2]) / 3)
    np.testing.assert_allclose(frame.shares, [1 / 9, 8 / 9])
    assert frame.rows.tolist() == [0, 1, 3, 4, 5]
    values = np.array([[1.0, -1], [1, 0], [-1, 1]])
    np.testing.assert_allclose(frame.scores(exactly(values), "disagreement"), [0.25, 0.625])
    # what may be nothing is nothing: the second query is of two ties
    noise = np.array([[0.5, 0.5], [1, 1], [2, 2]])
    np.testing.assert_allclose(frame.scores(LeaveOutScores(values, noise), "disagreement"), [0.25, 0.75])
    with pytest.raises(InputError, match="preference pairs have no grades"):
        frame.scores(exactly(np.ones((3, 1))), "nDCG@5")
