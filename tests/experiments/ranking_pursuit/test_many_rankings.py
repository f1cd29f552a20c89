"""Many small problems against one by one: RankSVM against the estimator, errors against the metric."""

from __future__ import annotations

import numpy as np
import pytest

from corank.base.kernels import GaussianKernel
from corank.metrics import disagreement_error
from corank.models.linear import RankSVM
from experiments.ranking_pursuit.many_rankings import errors_many, score_alike, svm_path

pytestmark = pytest.mark.long  # only experiments use it

KERNEL = GaussianKernel(0.05)
ALPHAS = np.array([0.3, 0.01])


@pytest.mark.parametrize("n", [1, 2, 12, 25])
def test_each_svm_of_a_path_is_a_rank_svm(n):
    rng = np.random.default_rng(n)
    K, y = KERNEL(rng.normal(size=(n, 6))), rng.permutation(np.arange(n) % 4).astype(float)
    coefs, partners = np.empty((2, n, 2))
    svm_path(K, y, ALPHAS, coefs, partners)
    for c, alpha in enumerate(ALPHAS if n > 1 else ()):
        model = RankSVM(alpha, "precomputed", tol=1e-20).fit(K, y)
        np.testing.assert_allclose(K @ coefs[:, c], model.predict(K), rtol=0, atol=1e-8)
        assert set(np.flatnonzero(partners[:, c])) == set(model.support_.tolist())
    # nothing to compare, nothing learnt
    svm_path(K, np.zeros(n), ALPHAS, coefs, partners)
    assert not coefs.any()


def test_equal_rows_get_equal_scores():
    rng = np.random.default_rng(2)
    K, coefs = np.repeat(rng.normal(size=(7, 53)), 11, axis=0), np.asfortranarray(rng.normal(size=(53, 15)))
    scores = score_alike(K, coefs)
    np.testing.assert_allclose(scores, K @ coefs, rtol=0, atol=1e-12)
    assert len(np.unique(scores, axis=0)) == 7


def test_errors_are_those_of_the_metric():
    rng = np.random.default_rng(1)
    starts = np.array([0, 4, 4, 11, 14], dtype=np.uint64)
    y = rng.integers(0, 3, 14).astype(float)
    y[11:] = 2.0
    scores = rng.integers(0, 3, (14, 5)).astype(float)
    disagreement, squares = np.empty((2, 4, 5))
    errors_many(scores, y, starts, disagreement, squares, 0, 4)
    for b, (begin, end) in enumerate([(0, 4), (4, 4), (4, 11), (11, 14)]):
        for c in range(5):
            s = scores[begin:end, c]
            if len(np.unique(y[begin:end])) < 2:
                assert np.isnan(disagreement[b, c])
            else:
                assert disagreement[b, c] == disagreement_error(y[begin:end], s)
            if end > begin:
                np.testing.assert_allclose(squares[b, c], np.mean((y[begin:end] - s) ** 2))
