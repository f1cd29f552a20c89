from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.base.kernels import PrecomputedKernel
from corank.base.kernels.views import View
from corank.data.rows import as_objects, is_table
from corank.errors import InputError
from corank.models.rls import CoRankRLS, RankRLS
from helpers.explicit_rls import co_coefficients, scored_laplacian, unscored_laplacian

WORDS = ["rank", "ranking", "ranked", "frank", "query", "queries", "quarry", "pair", "pairs", "paired", "fair", "air"]
Y = np.array([len(word) for word in WORDS], dtype=float)
QID = np.repeat(["a", "b", "c"], 4)


def shared_letters(A, B):
    """Number of shared letters, counted as sets: an inner product of indicators."""
    return [[len(set(a) & set(b)) for b in B] for a in A]


def test_strings_learn_like_their_gram_matrix():
    K = np.array(shared_letters(WORDS, WORDS), dtype=float)
    for how in ({}, {"basis": [0, 3, 5, 9]}, {"alphas": [1e-3, 0.1]}):
        words = RankRLS(kernel=shared_letters, **how).fit(WORDS, Y, qid=QID)
        gram = RankRLS(kernel="precomputed", **how).fit(K, Y, qid=QID)
        np.testing.assert_allclose(words.predict(WORDS), gram.predict(K), atol=1e-9)
        assert words.rank(WORDS, QID).tolist() == gram.rank(K, QID).tolist()


def test_preferences_between_objects():
    pairs = [[1, 0], [2, 3], [5, 4], [9, 8]]
    words = RankRLS(0.1, shared_letters).fit(WORDS, pairs=pairs, qid=QID)
    K = np.array(shared_letters(WORDS, WORDS), dtype=float)
    B = np.zeros((4, 12))
    for row, (winner, loser) in zip(B, pairs, strict=True):
        row[[winner, loser]] = 1, -1
    a = np.linalg.solve(B.T @ B @ K / 4 + 0.1 * np.eye(12), B.T @ np.ones(4) / 4)
    np.testing.assert_allclose(words.predict(WORDS), K @ a, atol=1e-9)


def first_letters(A, B):
    """Whether words begin alike: a kernel of another kind than the shared letters."""
    return [[float(a[0] == b[0]) for b in B] for a in A]


def test_views_of_objects_learn_like_their_gram_matrices():
    y = np.where(np.arange(12) % 3 == 0, np.nan, Y)
    bases, functions = [np.arange(0, 12, 2), np.arange(1, 12, 3)], [shared_letters, first_letters]
    views = [View(None, function, basis) for function, basis in zip(functions, bases, strict=True)]
    model = CoRankRLS(views, 0.3, 0.1).fit(WORDS, y, qid=QID)
    grams = [np.array(function(WORDS, WORDS), dtype=float) for function in functions]
    query = np.repeat([0, 1, 2], 4)
    a = co_coefficients(grams, bases, scored_laplacian(y, query), unscored_laplacian(y, query), y, 0.1, 0.3)
    expected = [K[:, basis] @ one for K, basis, one in zip(grams, bases, a, strict=True)]
    np.testing.assert_allclose(model.predict_views(WORDS), np.column_stack(expected), atol=1e-7)


def test_views_of_objects_are_functions():
    for views in (1, 2, [[0], [1]], [View([0], shared_letters)] * 2):
        with pytest.raises(InputError, match="give each view a kernel function"):
            CoRankRLS(views, kernel=shared_letters).fit(WORDS, Y, qid=QID)
    for views in ([View(None, "gaussian")] * 2, [PrecomputedKernel()] * 2):
        with pytest.raises(InputError, match="pass a table"):
            CoRankRLS(views, kernel=shared_letters).fit(WORDS, Y, qid=QID)


def test_columns_of_an_earlier_fit_are_forgotten():
    model = RankRLS().fit(np.eye(12), Y, qid=QID)
    assert not hasattr(model.set_params(kernel=shared_letters).fit(WORDS, Y, qid=QID), "n_features_in_")


def test_rows_come_in_a_sequence():
    with pytest.raises(InputError, match="X is of type int"):
        RankRLS(kernel=shared_letters).fit(5, Y, qid=QID)


def test_two_views_of_given_similarities():
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
