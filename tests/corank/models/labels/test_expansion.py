from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from corank.errors import InputError
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
    m = len(LabelPreferences.from_top(Y).constraints()[0])
    alpha, how = 0.05, {"targets": "top", "fit_intercept": False, "scale": False}
    logistic = LogisticRegression(C=1 / (alpha * m), tol=1e-10, max_iter=10_000)
    theirs = CalibratedLabelRanker(classifier=logistic, **how).fit(X, Y)
    ours = CalibratedLabelRanker(alpha=alpha, **how).fit(X, Y)
    np.testing.assert_allclose(theirs.coef_, ours.coef_, atol=1e-5)
    svm = LinearSVC(C=1 / (2 * alpha * m), tol=1e-10, max_iter=100_000, dual=False)
    theirs = CalibratedLabelRanker(classifier=svm, **how).fit(X, Y)
    np.testing.assert_allclose(
        theirs.coef_, CalibratedLabelRanker("squared_hinge", alpha, **how).fit(X, Y).coef_, atol=1e-4
    )


def test_weights_of_rows_reach_the_classifier():
    weights = RNG.integers(0, 3, size=40).astype(float)
    twice = np.repeat(np.arange(40), weights.astype(int))
    logistic = LogisticRegression(tol=1e-10, max_iter=10_000)
    how = {"targets": "top", "classifier": logistic, "scale": False}
    a = CalibratedLabelRanker(**how).fit(X, Y, sample_weight=weights)
    b = CalibratedLabelRanker(**how).fit(X[twice], Y[twice])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-5)


def test_any_linear_classifier_will_do_and_no_other():
    model = CalibratedLabelRanker(targets="top", classifier=SGDClassifier(random_state=0)).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    with pytest.raises(InputError, match="RandomForestClassifier has no coef_"):
        CalibratedLabelRanker(targets="top", classifier=RandomForestClassifier(2)).fit(X, Y)
