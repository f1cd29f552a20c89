from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from corank.models.rls.spectrum import FLOOR, Equations, EquilibratedRidge, RidgeSpectrum, ridge_of, solve_one

RNG = np.random.default_rng(0)
B = RNG.normal(size=(12, 9))
A, SIDE = B.T @ B, RNG.normal(size=9)


def equations(A, b, units=None):
    return Equations(A.copy(), b, np.full(len(A), abs(np.trace(A)) / len(A)) if units is None else units, 0.0)


@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e12])
def test_both_ways_are_an_explicit_solve(alpha):
    expected = np.linalg.solve(A + alpha * np.eye(9), SIDE)
    np.testing.assert_allclose(RidgeSpectrum.of(A.copy(), SIDE).solve([alpha])[:, 0], expected, rtol=1e-9)
    x, jitter = solve_one(equations(A, SIDE), alpha)
    np.testing.assert_allclose(x, expected, rtol=1e-9)
    assert jitter == 0.0


@pytest.mark.parametrize("alpha", [0.0, 1e-12])
def test_a_singular_system_is_raised_to_the_floor_and_says_so(alpha):
    low = B[:3].T @ B[:3]
    side = low @ SIDE
    x, jitter = solve_one(equations(low, side), alpha)
    spectrum = ridge_of(equations(low, side), np.array([alpha]))
    assert jitter == pytest.approx(FLOOR * np.trace(low) - alpha)
    assert spectrum.jitter(alpha) == pytest.approx(jitter)
    np.testing.assert_allclose(low @ x, side, rtol=1e-3)
    np.testing.assert_allclose(low @ spectrum.solve([alpha])[:, 0], side, rtol=1e-3)


def test_a_failed_factorisation_is_tried_again():
    # slightly indefinite, as rounding makes it
    values = np.array([-1e-10, 1.0, 2.0])
    Q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    M = Q @ np.diag(values) @ Q.T
    M = (M + M.T) / 2
    x, jitter = solve_one(equations(M, np.ones(3)), 0.0)
    assert jitter > 1e-10
    np.testing.assert_allclose((M + jitter * np.eye(3)) @ x, np.ones(3), rtol=1e-5)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(InputError, match="not positive semidefinite"):
        solve_one(equations(np.diag([1.0, -1.0]), np.ones(2)), 0.1)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_negative_matrix_comes_to_an_end(alpha):
    with pytest.raises(InputError, match="not positive semidefinite"):
        solve_one(equations(-np.eye(3) - 10.0, np.ones(3)), alpha)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_sums_beyond_float64_are_refused(bad):
    for A, b in ((np.diag([1.0, bad]), np.ones(2)), (np.eye(2), np.array([1.0, bad]))):
        with pytest.raises(InputError, match="overflow float64; rescale the columns"):
            solve_one(equations(A, b), 0.0)
        with pytest.raises(InputError, match="overflow float64; rescale the columns"):
            ridge_of(equations(A, b), np.ones(1))


def test_a_system_of_zeros_has_the_solution_zero():
    x, _ = solve_one(equations(np.zeros((3, 3)), np.zeros(3)), 0.0)
    np.testing.assert_array_equal(x, 0.0)
    np.testing.assert_array_equal(RidgeSpectrum.of(np.zeros((3, 3)), np.zeros(3)).solve([0.0, 1.0]), 0.0)


def test_a_column_of_any_size_leaves_the_others_alone():
    size = 10.0 ** np.array([7, 0, 0, -7, -7, 3, 0, 0, 0])
    rows, t = B * size, RNG.normal(size=12)
    rows[:, 2] = rows[:, 1]
    given = equations(rows.T @ rows, rows.T @ t, np.diag(rows.T @ rows))
    alphas = np.array([0.0, 1e-20, 1e-6, 1.0])
    ridge = ridge_of(given, alphas)
    assert isinstance(ridge, EquilibratedRidge)
    path = ridge.solve(alphas)
    for at, alpha in enumerate(alphas):
        # the penalty as further rows, and least squares of columns brought to one size
        tall = np.vstack([rows, np.sqrt(alpha) * np.eye(9)]) / size
        expected = tall @ np.linalg.lstsq(tall, np.append(t, np.zeros(9)), rcond=1e-13)[0]
        for x in (path[:, at], solve_one(equations(rows.T @ rows, rows.T @ t, given.units), alpha)[0]):
            np.testing.assert_allclose(rows @ x, expected[:12], rtol=1e-5, atol=1e-6)
        # without units of their own, they drown
        if alpha < 1e-3:
            drowned, jitter = solve_one(equations(rows.T @ rows, rows.T @ t), alpha)
            assert jitter > 1.0
            assert np.abs(rows @ drowned - expected[:12]).max() > 0.1


def test_eigenvalues_serve_where_no_column_drowns_another():
    size = 10.0 ** np.array([7, 0, 0, 0, 0, 0, 0, 0, 0])
    rows = B * size
    given = (rows.T @ rows, SIDE * size, np.diag(rows.T @ rows))
    assert isinstance(ridge_of(equations(*given), np.array([1e3])), RidgeSpectrum)
    assert isinstance(ridge_of(equations(*given), np.array([1e-3])), EquilibratedRidge)
    assert isinstance(ridge_of(equations(*given[:2]), np.array([1e-3])), RidgeSpectrum)
    assert isinstance(ridge_of(equations(A, SIDE, np.diag(A)), np.array([0.0])), RidgeSpectrum)
