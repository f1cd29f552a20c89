"""The kernel of items against a dense eigendecomposition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.models.ratings.collaborative import ItemSpectrum
from helpers.ratings import draw_ratings


def dense_kernel(E, n_basis, power):
    G = E.toarray().T @ E.toarray()
    e, V = np.linalg.eigh(G)
    kept = np.argsort(-e)[:n_basis]
    K = (V[:, kept] * np.maximum(e[kept], 0.0) ** power) @ V[:, kept].T
    counts = np.bincount(E.indices, minlength=E.shape[1])
    return K / (np.diag(K) @ counts / counts.sum())


@pytest.mark.parametrize("shape", [(90, 70), (12, 60), (300, 10)], ids=["truncated", "few users", "few items"])
@pytest.mark.parametrize("power", [1.0, 1.5])
def test_features_make_the_kernel(shape, power):
    E = draw_ratings(*shape, share=0.3)
    Z = ItemSpectrum.of(E, 8).features(power)
    np.testing.assert_allclose(Z @ Z.T, dense_kernel(E, 8, power), atol=1e-8)


def test_it_is_deterministic_and_has_no_zero_directions():
    E = draw_ratings(90, 70, share=0.3)
    np.testing.assert_array_equal(ItemSpectrum.of(E, 8).features(1.5), ItemSpectrum.of(E, 8).features(1.5))
    u, v = np.arange(1.0, 6.0), np.arange(1.0, 5.0)
    assert len(ItemSpectrum.of(sparse.csr_array(np.outer(u, v)), 100).values) == 1
    nothing = sparse.csr_array((np.zeros(3), ([0, 1, 1], [0, 1, 2])), shape=(2, 4))
    assert ItemSpectrum.of(nothing, 100).features(1.5).shape == (4, 0)


def test_many_rows_are_summed_block_by_block(monkeypatch):
    E = draw_ratings(100, 9)
    whole = ItemSpectrum.of(E, 5).features(1.0)
    monkeypatch.setattr("corank.models.ratings.collaborative._DENSE_ROWS", 7)
    part = ItemSpectrum.of(E, 5).features(1.0)
    np.testing.assert_allclose(part @ part.T, whole @ whole.T, atol=1e-10)
