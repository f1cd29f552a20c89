from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from corank.basis.features import FeatureMap, scores
from corank.errors import InputError
from corank.kernels import CallableKernel, GaussianKernel, LinearKernel, PrecomputedKernel
from corank.rls import features as module
from corank.views import View

X = np.random.default_rng(2).normal(size=(30, 4))
ROWS = np.arange(0, 30, 3)


def test_features_have_the_norm_of_the_kernel():
    kernel = GaussianKernel(0.2)
    phi = FeatureMap.on_basis(View([0, 2], kernel), X, ROWS)
    K = kernel(X[:, [0, 2]])
    projected = K[:, ROWS] @ np.linalg.pinv(K[np.ix_(ROWS, ROWS)]) @ K[ROWS]
    np.testing.assert_allclose(phi(X) @ phi(X).T, projected, atol=1e-9)
    w = np.arange(phi.n_features, dtype=float)
    a = phi.coefficients(w)
    assert a @ K[np.ix_(ROWS, ROWS)] @ a == pytest.approx(w @ w)
    np.testing.assert_allclose(scores(phi.view, phi.basis, a, X), phi(X) @ w, atol=1e-9)


def test_a_repeated_basis_row_lowers_the_rank_only():
    twice = np.vstack([X, X[ROWS]])
    phi = FeatureMap.on_basis(View(None, GaussianKernel(0.2)), twice, np.append(ROWS, np.arange(30, 40)))
    assert phi.n_features == len(ROWS)
    once = FeatureMap.on_basis(View(None, GaussianKernel(0.2)), X, ROWS)
    np.testing.assert_allclose(phi(X) @ phi(X).T, once(X) @ once(X).T, atol=1e-9)


def test_a_linear_kernel_ends_in_weights_of_columns():
    phi = FeatureMap.on_basis(View(None, LinearKernel()), X, ROWS[:3])
    w = np.ones((phi.n_features, 2))
    assert phi.coefficients(w).shape == (4, 2)
    np.testing.assert_allclose(X @ phi.coefficients(w), phi(X) @ w, atol=1e-10)


def test_csr_and_single_precision_rows_give_the_same_features():
    phi = FeatureMap.on_basis(View(slice(1, 4), GaussianKernel(0.2)), X, ROWS)
    csr = FeatureMap.on_basis(View(slice(1, 4), GaussianKernel(0.2)), sparse.csr_array(X), ROWS)
    np.testing.assert_allclose(csr(sparse.csr_array(X)) @ csr.T.T, phi(X) @ phi.T.T, atol=1e-8)
    assert phi(X.astype(np.float32)).dtype == np.float64


def test_a_precomputed_kernel_keeps_numbers_of_rows():
    K = GaussianKernel(0.2)(X)
    phi = FeatureMap.on_basis(View(None, PrecomputedKernel()), K, ROWS)
    np.testing.assert_array_equal(phi.basis, ROWS)
    np.testing.assert_allclose(phi(K), FeatureMap.on_basis(View(None, GaussianKernel(0.2)), X, ROWS)(X), atol=1e-9)


def test_scores_come_in_blocks(monkeypatch):
    view, a = View(None, GaussianKernel(0.2)), np.arange(10.0)
    whole = scores(view, X[ROWS], a, X)
    monkeypatch.setattr(module, "_BLOCK", 7)
    np.testing.assert_allclose(scores(view, X[ROWS], a, X), whole)


def test_a_map_made_elsewhere_is_known_again():
    phi = FeatureMap.on_basis(View([0, 2], GaussianKernel(0.2)), X, ROWS)
    again = FeatureMap.on_basis(View([0, 2], GaussianKernel(0.2)), X.copy(), ROWS)
    assert phi.is_like(again)
    assert not phi.is_like(FeatureMap.on_basis(View([0, 2], GaussianKernel(0.3)), X, ROWS))
    assert not phi.is_like(FeatureMap.on_basis(View([0, 3], GaussianKernel(0.2)), X, ROWS))
    assert not phi.is_like(replace(again, basis=sparse.csr_array(again.basis)))
    assert not phi.is_like(FeatureMap.of_columns(View([0, 2], GaussianKernel(0.2)), 10))


def test_an_indefinite_kernel_is_refused():
    with pytest.raises(InputError, match="not positive semidefinite: the Gram matrix of the basis"):
        FeatureMap.on_basis(View(None, CallableKernel(lambda A, B: -(A @ B.T))), X, ROWS)
