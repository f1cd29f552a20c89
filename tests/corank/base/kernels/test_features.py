from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from corank.base.kernels import GaussianKernel, LinearKernel, PrecomputedKernel
from corank.base.kernels.basis import Basis, FeatureMap, stack_features
from corank.base.kernels.views import View
from corank.errors import InputError

X = np.random.default_rng(2).normal(size=(30, 4))
ROWS = np.arange(0, 30, 3)


def on_basis(view, rows=X, numbers=ROWS):
    return FeatureMap.on_basis(Basis.of(view, rows, numbers), rows)


def test_features_have_the_norm_of_the_kernel():
    kernel = GaussianKernel(0.2)
    phi = on_basis(View([0, 2], kernel))
    K = kernel(X[:, [0, 2]])
    projected = K[:, ROWS] @ np.linalg.pinv(K[np.ix_(ROWS, ROWS)]) @ K[ROWS]
    np.testing.assert_allclose(phi(X) @ phi(X).T, projected, atol=1e-9)
    w = np.arange(phi.n_features, dtype=float)
    a = phi.coefficients(w)
    assert a @ K[np.ix_(ROWS, ROWS)] @ a == pytest.approx(w @ w)
    np.testing.assert_allclose(phi.basis.score(X, a), phi(X) @ w, atol=1e-9)


def test_a_repeated_basis_row_lowers_the_rank_only():
    twice = np.vstack([X, X[ROWS]])
    phi = on_basis(View(None, GaussianKernel(0.2)), twice, np.append(ROWS, np.arange(30, 40)))
    assert phi.n_features == len(ROWS)
    once = on_basis(View(None, GaussianKernel(0.2)))
    np.testing.assert_allclose(phi(X) @ phi(X).T, once(X) @ once(X).T, atol=1e-9)


def test_a_linear_kernel_ends_in_weights_of_columns():
    phi = on_basis(View(None, LinearKernel()), numbers=ROWS[:3])
    w = np.ones((phi.n_features, 2))
    assert phi.coefficients(w).shape == (4, 2)
    np.testing.assert_allclose(X @ phi.coefficients(w), phi(X) @ w, atol=1e-10)


def test_csr_and_single_precision_rows_give_the_same_features():
    phi = on_basis(View(slice(1, 4), GaussianKernel(0.2)))
    csr = on_basis(View(slice(1, 4), GaussianKernel(0.2)), sparse.csr_array(X))
    np.testing.assert_allclose(csr(sparse.csr_array(X)) @ csr.T.T, phi(X) @ phi.T.T, atol=1e-8)
    assert phi(X.astype(np.float32)).dtype == np.float64


def test_a_precomputed_kernel_keeps_numbers_of_rows():
    K = GaussianKernel(0.2)(X)
    phi = on_basis(View(None, PrecomputedKernel()), K)
    np.testing.assert_array_equal(phi.basis.rows, ROWS)
    # the features are eigenvectors, whose signs depend on the processor; their products do not
    same = on_basis(View(None, GaussianKernel(0.2)))
    np.testing.assert_allclose(phi(K) @ phi(K).T, same(X) @ same(X).T, atol=1e-9)


def test_views_stand_side_by_side():
    maps = (on_basis(View(None, GaussianKernel(0.2))), FeatureMap.of_columns(View([1, 3]), 2))
    np.testing.assert_array_equal(stack_features(maps)(X), np.hstack([maps[0](X), X[:, [1, 3]]]))
    with pytest.raises(InputError, match="X has 4 columns, but the model expects 2"):
        FeatureMap.of_columns(View(), 2)(X)


def test_a_map_made_elsewhere_is_known_again():
    phi = on_basis(View([0, 2], GaussianKernel(0.2)))
    again = on_basis(View([0, 2], GaussianKernel(0.2)), X.copy())
    assert phi.is_like(again)
    assert not phi.is_like(on_basis(View([0, 2], GaussianKernel(0.3))))
    assert not phi.is_like(on_basis(View([0, 3], GaussianKernel(0.2))))
    assert not phi.is_like(replace(again, basis=replace(again.basis, rows=sparse.csr_array(again.basis.rows))))
    columns = FeatureMap.of_columns(View([0, 2]), 2)
    assert not phi.is_like(columns)
    assert columns.is_like(FeatureMap.of_columns(View([0, 2]), 2))
    assert not columns.is_like(FeatureMap.of_columns(View([0, 1]), 2))
