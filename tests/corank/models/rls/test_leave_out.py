from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from corank.models.rls import leave_out as module
from corank.models.rls.leave_out import ErrorScales, dual_queries_out, queries_out
from corank.models.rls.spectrum import RidgeSpectrum

RNG = np.random.default_rng(4)
STARTS = np.array([0, 3, 30, 33, 40])
ALPHAS = np.array([1e-3, 1.0, 1e4, 1e18])
SHARES = np.array([0.1, 0.6, 0.2, 0.1])
Z, T = RNG.normal(size=(40, 6)), RNG.normal(size=40)
SIZES = ErrorScales(float(np.linalg.norm(T)), 0.0)


@pytest.mark.parametrize("room", [1, 1 << 20])
def test_short_and_long_queries_are_second_fits(monkeypatch, room):
    monkeypatch.setattr(module, "_MAX_ENTRIES", room)
    held, noise = queries_out(RidgeSpectrum.of(Z.T @ Z, Z.T @ T), Z, T, STARTS, SHARES, ALPHAS, SIZES)
    for (begin, end), share in zip(pairwise(STARTS), SHARES, strict=True):
        kept = np.r_[0:begin, end:40]
        # the others weigh 1 / (1 − share) more in a mean without the query
        for at, alpha in enumerate((1 - share) * ALPHAS):
            w = np.linalg.solve(Z[kept].T @ Z[kept] + alpha * np.eye(6), Z[kept].T @ T[kept])
            np.testing.assert_allclose(held[begin:end, at], Z[begin:end] @ w, rtol=1e-8, atol=1e-10 / (1 + alpha))
            # accuracies are above what is missed, and small
            assert (np.abs(held[begin:end, at] - Z[begin:end] @ w) <= 4 * noise[begin:end, at]).all()
            assert (noise[begin:end, at] < 1e-11 / (1 + alpha)).all()


@pytest.mark.parametrize("room", [1, 1 << 20])
def test_the_dual_is_made_of_second_fits_for_small_and_large_alphas(monkeypatch, room):
    monkeypatch.setattr(module, "_MAX_ENTRIES", room)
    wide = RNG.normal(size=(40, 60))
    M, done = wide @ wide.T, []
    sizes = ErrorScales(SIZES.targets, float(np.trace(M)))
    held, noise = dual_queries_out(RidgeSpectrum.of(M.copy(), T), T, STARTS, SHARES, ALPHAS, sizes, done.append)
    for (begin, end), share in zip(pairwise(STARTS), SHARES, strict=True):
        kept = np.r_[0:begin, end:40]
        # the others weigh 1 / (1 − share) more in a mean without the query
        for at, alpha in enumerate((1 - share) * ALPHAS):
            a = np.linalg.solve(M[np.ix_(kept, kept)] + alpha * np.eye(len(kept)), T[kept])
            expected = M[begin:end, kept] @ a
            np.testing.assert_allclose(held[begin:end, at], expected, rtol=1e-7, atol=1e-9 / (1 + alpha))
            assert (np.abs(held[begin:end, at] - expected) <= 4 * noise[begin:end, at]).all()
            assert (noise[begin:end, at] < 1e-9 / (1 + alpha)).all()
    assert sum(done) == 40


def test_a_query_that_alone_knows_a_feature_still_has_a_prediction():
    only = np.zeros((6, 2))
    only[:3, 0] = only[3:, 1] = [1.0, -1.0, 0.0]
    t = np.arange(6.0)
    held, noise = queries_out(
        RidgeSpectrum.of(only.T @ only, only.T @ t),
        only,
        t,
        np.array([0, 3, 6]),
        np.array([0.5, 0.5]),
        np.array([1e-14, 1.0]),
        ErrorScales(float(np.linalg.norm(t)), 0.0),
    )
    # what the others cannot know is predicted as nothing
    np.testing.assert_allclose(held, 0.0, atol=0.05)
    np.testing.assert_allclose(held[:, 1], 0.0, atol=1e-12)
    assert (np.abs(held) <= noise).all()
