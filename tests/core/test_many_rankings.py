"""Many small problems against one by one: RankSVM against the estimator, errors against the metric."""

from __future__ import annotations

import numpy as np

from corank.core.many_rankings import errors_many, score_columns, svm_many
from corank.kernels import GaussianKernel
from corank.metrics import disagreement_error
from corank.svm import RankSVM

KERNEL = GaussianKernel(0.05)
ALPHAS = np.array([0.3, 0.01])


def test_each_small_svm_is_a_rank_svm():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    starts = np.array([0, 12, 20, 45], dtype=np.uint64)
    rows = np.concatenate([rng.permutation(30)[:size] for size in (12, 8, 25)]).astype(np.uint64)
    y = rng.integers(0, 4, 45).astype(float)
    coefs, partners = np.empty((2, 45, 2))
    svm_many(KERNEL(X), rows, starts, y, ALPHAS, coefs, partners, 0, 3)
    scores = np.empty((45, 2))
    score_columns(KERNEL(X), rows, starts, coefs, rows, starts, scores, 0, 3)
    for begin, end in zip(starts[:-1].astype(int), starts[1:].astype(int), strict=True):
        for c, alpha in enumerate(ALPHAS):
            Z = X[rows[begin:end].astype(int)]
            model = RankSVM(alpha, KERNEL).fit(Z, y[begin:end])
            f = model.predict(Z)
            np.testing.assert_allclose(scores[begin:end, c] - scores[begin, c], f - f[0], atol=1e-5)
            assert set(np.flatnonzero(partners[begin:end, c])) == set(model.support_.tolist())


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
