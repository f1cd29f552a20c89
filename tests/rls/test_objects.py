from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.kernels import PrecomputedKernel
from corank.rls import CoRankRLS, RankRLS
from corank.rls.objects import as_objects, is_table

WORDS = ["rank", "ranking", "ranked", "frank", "query", "queries", "quarry", "pair", "pairs", "paired", "fair", "air"]
Y = np.array([len(word) for word in WORDS], dtype=float)
QID = np.repeat(["a", "b", "c"], 4)


def shared_letters(A, B):
    """Number of shared letters, counted as sets: an inner product of indicators."""
    return [[len(set(a) & set(b)) for b in B] for a in A]


def test_strings_learn_like_their_gram_matrix():
    K = np.array(shared_letters(WORDS, WORDS), dtype=float)
    for how in ({}, {"basis": [0, 3, 5, 9]}, {"alphas": [0.1, 1.0]}):
        words = RankRLS(kernel=shared_letters, **how).fit(WORDS, Y, qid=QID)
        gram = RankRLS(kernel="precomputed", **how).fit(K, Y, qid=QID)
        np.testing.assert_allclose(words.predict(WORDS), gram.predict(K), atol=1e-9)
        assert words.rank(WORDS, QID).tolist() == gram.rank(K, QID).tolist()


def test_preferences_between_objects():
    pairs = [[1, 0], [2, 3], [5, 4], [9, 8]]
    words = RankRLS(kernel=shared_letters).fit(WORDS, pairs=pairs, qid=QID)
    K = np.array(shared_letters(WORDS, WORDS), dtype=float)
    B = np.zeros((4, 12))
    for row, (winner, loser) in zip(B, pairs, strict=True):
        row[[winner, loser]] = 1, -1
    a = np.linalg.solve(B.T @ B @ K + np.eye(12), B.T @ np.ones(4))
    np.testing.assert_allclose(words.predict(WORDS), K @ a, atol=1e-9)


def test_views_of_objects():
    y = np.where(np.arange(12) % 3 == 0, np.nan, Y)
    model = CoRankRLS([PrecomputedKernel(), PrecomputedKernel()], kernel="precomputed", n_basis=5, random_state=0)
    K = np.array(shared_letters(WORDS, WORDS), dtype=float)
    assert model.fit(K, y, qid=QID).predict_views(K).shape == (12, 2)


@pytest.mark.parametrize(
    ("X", "table"),
    [
        ([[1, 2], [3, 4]], True),
        (np.eye(2), True),
        (sparse.eye_array(3).tocsr(), True),
        (["ab", "c"], False),
        ([("a", "b"), ("c", "d")], False),
        ([[1], [1, 2]], False),
        ([{"a": 1}], False),
        (np.array([1.0, 2.0]), False),
    ],
)
def test_tables_are_told_from_objects(X, table):
    assert is_table(X) == table


def test_equal_tuples_stay_objects():
    rows = as_objects([("a", "b"), ("c", "d")])
    assert rows.shape == (2,)
    assert rows[1] == ("c", "d")
