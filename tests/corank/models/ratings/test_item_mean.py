"""Means of items and levels of users against the normal equations of both, written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.models.ratings.ranker import item_means, residuals, user_levels
from helpers.ratings import draw_ratings


@pytest.mark.parametrize("shrink", [0.5, 2.0, 30.0])
def test_means_and_levels_solve_their_normal_equations(shrink):
    ratings = draw_ratings()
    n_users, n_items = ratings.shape
    cells = ratings.tocoo()
    A = np.zeros((ratings.nnz, n_users + n_items))
    A[np.arange(ratings.nnz), cells.row] = 1.0
    A[np.arange(ratings.nnz), n_users + cells.col] = 1.0
    penalty = np.diag([0.0] * n_users + [shrink] * n_items)
    expected = np.linalg.solve(A.T @ A + penalty, A.T @ cells.data)
    m = item_means(ratings, shrink)
    np.testing.assert_allclose(m, expected[n_users:], atol=1e-8)
    np.testing.assert_allclose(user_levels(ratings, m), expected[:n_users], atol=1e-8)
    left = residuals(ratings, m).tocoo()
    np.testing.assert_allclose(left.data, cells.data - A @ expected, atol=1e-8)


def test_without_shrinking_residuals_are_those_of_least_squares():
    ratings = draw_ratings(seed=3)
    cells = ratings.tocoo()
    A = np.zeros((ratings.nnz, sum(ratings.shape)))
    A[np.arange(ratings.nnz), cells.row] = 1.0
    A[np.arange(ratings.nnz), ratings.shape[0] + cells.col] = 1.0
    fitted = A @ np.linalg.lstsq(A, cells.data, rcond=None)[0]
    np.testing.assert_allclose(residuals(ratings, item_means(ratings, 0.0)).data, cells.data - fitted, atol=1e-7)


def test_an_unrated_item_has_mean_zero_and_equal_ratings_have_no_residuals():
    ratings = sparse.csr_array(([3.0, 3.0, 3.0], ([0, 0, 1], [0, 2, 2])), shape=(2, 4))
    for shrink in (0.0, 2.0):
        m = item_means(ratings, shrink)
        np.testing.assert_array_equal(m, np.zeros(4))
        np.testing.assert_array_equal(user_levels(ratings, m), [3.0, 3.0])
