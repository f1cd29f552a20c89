from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from corank.models.labels import CalibratedLabelRanker, LabelPreferences, expand_constraints

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3))
Y = np.where(RNG.random((40, 4)) < 0.5, np.argsort(np.argsort(RNG.random((40, 4)), axis=1), axis=1) + 1, 0)


@pytest.mark.parametrize("how", [("all", "all"), ("adjacent", "lowest")])
def test_a_row_times_the_weights_is_the_margin_of_its_constraint(how):
    top = LabelPreferences.from_top(Y)
    W = RNG.normal(size=(4, 3))
    examples, winners, losers = top.constraints(*how)
    U = np.hstack([X @ W.T, np.zeros((40, 1))])
    margins = U[examples, winners] - U[examples, losers]
    for rows in (X, sparse.csr_array(X)):
        Z, t, of = expand_constraints(rows, top, *how)
        np.testing.assert_array_equal(of, examples)
        np.testing.assert_allclose(t * (Z @ W.ravel()), margins, atol=1e-12)
    assert set(t.tolist()) == {-1, 1}


def test_a_classifier_on_the_expansion_finds_what_newton_finds_without_it():
    top = LabelPreferences.from_top(Y)
    Z, t, examples = expand_constraints(X, top)
    alpha, how = 0.05, {"targets": "top", "fit_intercept": False, "scale": False}
    logistic = LogisticRegression(C=1 / (alpha * len(t)), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(Z, t)
    ours = CalibratedLabelRanker(alpha=alpha, **how).fit(X, Y)
    np.testing.assert_allclose(logistic.coef_.reshape(4, 3), ours.coef_, atol=1e-5)
    svm = LinearSVC(C=1 / (2 * alpha * len(t)), fit_intercept=False, tol=1e-10, max_iter=100_000, dual=False).fit(Z, t)
    ours = CalibratedLabelRanker("squared_hinge", alpha, **how).fit(X, Y)
    np.testing.assert_allclose(svm.coef_.reshape(4, 3), ours.coef_, atol=1e-4)
    weights = RNG.integers(0, 3, size=40).astype(float)
    m = weights[examples].sum()
    weighted = LogisticRegression(C=1 / (alpha * m), fit_intercept=False, tol=1e-10, max_iter=10_000)
    ours = CalibratedLabelRanker(alpha=alpha, **how).fit(X, Y, sample_weight=weights)
    weighted.fit(Z, t, sample_weight=weights[examples])
    np.testing.assert_allclose(weighted.coef_.reshape(4, 3), ours.coef_, atol=1e-5)
