from __future__ import annotations

import numpy as np
import pytest

from corank.base.kernels import GaussianKernel
from corank.base.kernels.basis import Basis
from corank.base.kernels.views import View
from corank.data.ranking import RankingData
from corank.models.rls.frame import ComparedRows
from corank.models.rls.systems import DenseSystem
from helpers.explicit_rls import laplacian

RNG = np.random.default_rng(0)
X, QID = RNG.normal(size=(20, 3)), np.repeat([0, 1, 2, 3], 5)
Y = np.round(RNG.normal(size=20))


@pytest.mark.parametrize("weights", [None, RNG.choice([0.5, 1.0, 2.0], 20)], ids=["plain", "weighted"])
@pytest.mark.parametrize("ties", [False, True])
def test_the_system_has_the_nonzero_spectrum_of_the_papers(weights, ties):
    kernel = GaussianKernel(0.2)
    data = RankingData.of(X, Y, QID, weights)
    frame = ComparedRows.of(data, "pairs", ties)
    M, t, *_ = DenseSystem(data, frame, Basis.of(View(None, kernel), X, frame.rows)).equations()
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    L = laplacian(QID, weights, y=None if ties else Y)
    expected = np.sort(np.linalg.eigvals(L @ kernel(X)).real)[4:]
    u = np.zeros((20, 4))
    w = np.ones(20) if weights is None else weights[frame.rows]
    u[np.arange(20), QID] = np.sqrt(w / np.bincount(QID, weights=w)[QID])
    free = np.eye(20) - u @ u.T
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(free @ M @ free))[4:], expected, atol=1e-9)
    np.testing.assert_allclose(t @ t, Y @ L @ Y)
    # along the constants the system is positive, and t has no part there
    assert np.linalg.eigvalsh(u.T @ M @ u).min() > 0
    np.testing.assert_allclose(u.T @ t, 0, atol=1e-12)
