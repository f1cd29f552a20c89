"""Conjugate gradients against a direct solve."""

import numpy as np
import pytest

from corank.base.solvers.conjugate import conjugate_gradients


def system(seed, n=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, n)) * np.geomspace(0.1, 10.0, n)
    return X.T @ X, rng.normal(size=n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("preconditioned", [False, True])
def test_the_solution_is_that_of_a_direct_solve(seed, preconditioned):
    A, b = system(seed)
    scale = 1.0 / np.diag(A) if preconditioned else np.ones(len(b))
    found = conjugate_gradients(lambda v: A @ v, b, lambda r: scale * r, 1e-24, 1000)
    assert found.converged
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=1e-8, atol=1e-12)


def test_a_start_near_the_solution_saves_steps():
    A, b = system(0)
    near = np.linalg.solve(A, b) * (1.0 + 1e-9)
    product, same = (lambda v: A @ v), (lambda r: r)
    first = conjugate_gradients(product, b, same, 1e-12, 1000)
    second = conjugate_gradients(product, b, same, 1e-12, 1000, start=near)
    assert second.converged
    assert second.n_iter < first.n_iter


def test_a_zero_right_side_needs_no_step():
    found = conjugate_gradients(lambda v: v, np.zeros(3), lambda r: r, 1e-20, 10)
    assert (found.n_iter, found.converged) == (0, True)
    assert not found.x.any()


def test_too_few_steps_and_negative_curvature_are_reported():
    A, b = system(1)
    assert not conjugate_gradients(lambda v: A @ v, b, lambda r: r, 1e-24, 2).converged
    found = conjugate_gradients(lambda v: -v, np.ones(2), lambda r: r, 1e-24, 10)
    assert (found.n_iter, found.converged) == (0, False)
