from __future__ import annotations

import itertools

import numpy as np
import pytest

from corank.base.solvers.comparisons import scored_comparisons, unscored_comparisons
from corank.data.ranking import RankingData

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
Y = np.where(RNG.random(25) < 0.3, np.nan, RNG.integers(0, 3, 25))
QID = RNG.integers(0, 4, 25)
W = RNG.integers(0, 3, 25).astype(float)


def mean_over_pairs(z, pairs, gaps):
    weights = np.array([W[i] * W[j] for i, j in pairs])
    return np.average(
        [0.5 * (gap - z[i] + z[j]) ** 2 for (i, j), gap in zip(pairs, gaps, strict=True)], weights=weights
    )


def value(form, z):
    u = z[form.rows.order]
    return 0.5 * u @ form.apply(u) - form.linear @ u + 0.5 * form.constant


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("centred", [False, True])
def test_scored_rows(mix, centred):
    form = scored_comparisons(RankingData.of(X, Y, QID, W), mix, centred, "pairs")
    z = RNG.normal(size=25)
    D = ~np.isnan(Y)
    pairs = [(i, j) for i, j in itertools.combinations(range(25), 2) if QID[i] == QID[j] and abs(Y[i] - Y[j]) > 0]
    residual = (Y - z)[D]
    if centred:
        residual = residual - np.average(residual, weights=W[D])
    want = mix * np.average(0.5 * residual**2, weights=W[D])
    want += (1 - mix) * mean_over_pairs(z, pairs, [Y[i] - Y[j] for i, j in pairs])
    assert value(form, z) == pytest.approx(want)
    K = np.array([form.apply(e) for e in np.eye(D.sum())])
    np.testing.assert_allclose(K, K.T, atol=1e-15)
    if not centred:
        np.testing.assert_allclose(np.diag(K), form.diagonal, atol=1e-15)


def test_unscored_rows():
    form = unscored_comparisons(RankingData.of(X, Y, QID, W), "pairs")
    z = RNG.normal(size=25)
    pairs = [(i, j) for i, j in itertools.combinations(np.flatnonzero(np.isnan(Y)), 2) if QID[i] == QID[j]]
    assert value(form, z) == pytest.approx(mean_over_pairs(z, pairs, np.zeros(len(pairs))))
    assert unscored_comparisons(RankingData.of(X, np.nan_to_num(Y), QID, W), "pairs") is None


def test_preferences():
    pairs = np.array([[0, 1], [5, 3], [0, 1]])
    form = scored_comparisons(RankingData.of_pairs(X, pairs, weights=W + 1), 0.0, False, "pairs")
    z, w = RNG.normal(size=25), (W + 1)[pairs].prod(axis=1)
    want = np.average(0.5 * (1 - z[pairs[:, 0]] + z[pairs[:, 1]]) ** 2, weights=w)
    assert value(form, z) == pytest.approx(want)
    np.testing.assert_allclose(np.diag([form.apply(e) for e in np.eye(25)]), form.diagonal, atol=1e-15)
