from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from corank.base.kernels import GaussianKernel
from corank.models.rls import RankRLS
from experiments.ranking_pursuit.ridge import ridge, solve_shifted, sparse_ridge

PENALTIES = (16.0, 1.0, 0.01)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    return GaussianKernel(0.2)(rng.normal(size=(23, 4))), rng.integers(0, 5, 23).astype(float)


def rank_rls(alpha, n, **how):
    """(y − f)ᵀC(y − f) is n times the mean of half squares over two ratings drawn, be they one and the same."""
    return RankRLS(2.0 * alpha / n, "precomputed", ties=True, **how)


def test_ridge_on_ratings_is_kernel_ridge(problem):
    K, y = problem
    for a, alpha in zip(ridge(K, y, PENALTIES, centred=False).T, PENALTIES, strict=True):
        other = KernelRidge(alpha=alpha, kernel="precomputed").fit(K, y)
        np.testing.assert_allclose(K @ a, other.predict(K), rtol=0, atol=1e-8)


def test_ridge_on_differences_is_rank_rls(problem):
    K, y = problem
    for a, alpha in zip(ridge(K, y, PENALTIES, centred=True).T, PENALTIES, strict=True):
        np.testing.assert_allclose(K @ a, rank_rls(alpha, len(y)).fit(K, y).predict(K), rtol=0, atol=1e-8)


def test_the_sparse_ridge_is_rank_rls_on_a_basis(problem):
    K, y = problem
    for a, alpha in zip(sparse_ridge(K[:, :12], y, PENALTIES).T, PENALTIES, strict=True):
        model = rank_rls(alpha, len(y), basis=np.arange(12)).fit(K, y)
        np.testing.assert_allclose(K[:, :12] @ a, model.predict(K), rtol=0, atol=1e-8)


def test_many_shifts_are_solved_as_one_by_one():
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 17):
        A = rng.normal(size=(n, n))
        A, b = A @ A.T, rng.normal(size=n)
        expected = np.stack([np.linalg.solve(A + alpha * np.eye(n), b) for alpha in (10.0, 0.1, 0.001)], axis=1)
        np.testing.assert_allclose(solve_shifted(A, b, (10.0, 0.1, 0.001)), expected, rtol=1e-9)
