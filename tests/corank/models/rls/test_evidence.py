"""The evidence of alpha against the density of a Gaussian written out, levels of queries given a huge variance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from corank import CoRankRLS, RankRLS
from corank.base.kernels import GaussianKernel
from corank.errors import InputError
from corank.models.rls.spectrum import EquilibratedRidge, RidgeSpectrum
from helpers.explicit_rls import scored_laplacian

RNG = np.random.default_rng(0)
QID = np.repeat(np.arange(5), [4, 6, 3, 5, 1])
X = RNG.normal(size=(len(QID), 3))
Y = np.round(X @ [1.0, -1.0, 0.5] + RNG.normal(size=len(QID)) + QID)
ALPHAS = [0.01, 0.1, 1.0, 10.0]


def log_evidence(K, alpha, *, ties, query_weight):
    """Largest over σ of log N(y; 0, σ²(L⁺ + K/alpha) + levels), over the queries that hold a pair."""
    L = scored_laplacian(Y, QID, ties=ties, query_weight=query_weight)
    kept = np.flatnonzero(np.diag(L) > 0)
    level = 1e6 * (QID[kept, None] == QID[kept])
    noise, prior = np.linalg.pinv(L)[np.ix_(kept, kept)], K[np.ix_(kept, kept)] / alpha

    def cost(log_variance):
        return -multivariate_normal(cov=np.exp(log_variance) * (noise + prior) + level).logpdf(Y[kept])

    return -minimize_scalar(cost, bounds=(-15, 5), method="bounded", options={"xatol": 1e-9}).fun


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("kernel", ["linear", "gaussian", "basis"])
def test_differences_of_the_evidence_are_those_of_the_density(kernel, query_weight, ties):
    how = {"alphas": ALPHAS, "metric": "evidence", "ties": ties, "query_weight": query_weight, "scale": False}
    gaussian = GaussianKernel(0.5)
    K = X @ X.T if kernel == "linear" else gaussian(X)
    if kernel == "basis":
        basis = np.arange(0, len(X), 2)
        K = K[:, basis] @ np.linalg.pinv(K[np.ix_(basis, basis)]) @ K[basis]
        how["basis"] = basis
    model = RankRLS(kernel="linear" if kernel == "linear" else gaussian, **how).fit(X, Y, qid=QID)
    expected = [log_evidence(K, alpha, ties=ties, query_weight=query_weight) for alpha in ALPHAS]
    np.testing.assert_allclose(model.loo_scores_ - model.loo_scores_[0], np.subtract(expected, expected[0]), atol=2e-4)
    assert model.alpha_ == ALPHAS[int(np.argmax(expected))]
    assert model.alpha_from_ == "largest evidence"


def test_dual_and_primal_agree_and_a_weight_of_two_is_the_row_twice():
    how = {"alphas": ALPHAS, "metric": "evidence"}
    weights = RNG.integers(1, 3, len(Y))
    one = RankRLS(**how).fit(X, Y, qid=QID, sample_weight=weights).loo_scores_
    rows = np.repeat(np.arange(len(Y)), weights)
    np.testing.assert_allclose(RankRLS(**how).fit(X[rows], Y[rows], qid=QID[rows]).loo_scores_, one, rtol=1e-9)
    # more columns than rows are solved in the dual
    wide = np.hstack([X, np.zeros((len(Y), 30))])
    primal, dual = (RankRLS(scale=False, **how).fit(A, Y, qid=QID).loo_scores_ for A in (X, wide))
    np.testing.assert_allclose(dual, primal, rtol=1e-9)


def test_columns_of_very_different_size_have_the_same_determinant():
    A = X.T @ X * np.outer([1.0, 1e3, 1e-3], [1.0, 1e3, 1e-3])
    expected = np.linalg.slogdet(np.eye(3) + A / 0.5)[1]
    assert EquilibratedRidge.of(A, np.ones(3), np.diag(A)).log_det(0.5) == pytest.approx(expected, rel=1e-9)
    assert RidgeSpectrum.of(A.copy(), np.ones(3)).log_det(0.5) == pytest.approx(expected, rel=1e-9)


def test_one_query_is_enough_and_preferences_do():
    assert RankRLS(alphas=ALPHAS, metric="evidence").fit(X[:6], np.arange(6.0)).alpha_ in ALPHAS
    # all pairs of two grades are what their scores ask for
    pairs = [(i, j) for i in range(3) for j in range(3, 8)]
    grades = np.r_[np.ones(3), np.zeros(5)]
    how = {"alphas": ALPHAS, "metric": "evidence"}
    by_pairs, by_scores = RankRLS(**how).fit(X[:8], pairs=pairs), RankRLS(**how).fit(X[:8], grades)
    np.testing.assert_allclose(by_pairs.loo_scores_, by_scores.loo_scores_, rtol=1e-9)
    with pytest.raises(InputError, match="evidence"):
        CoRankRLS(alphas=ALPHAS, metric="evidence").fit(X, Y, qid=QID)
