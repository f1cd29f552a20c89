"""OrdinalGP, against quadrature, finite differences, explicit formulas and scikit-learn."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import corank
from corank.base.kernels import ARDKernel, GaussianKernel
from corank.base.kernels.views import View
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.models.gp import OrdinalGP
from corank.models.gp.grades import (
    GaussianGrades,
    OrdinalGrades,
    ends_of,
    evidence_of,
    free_gradient,
    free_of,
    quantile_thresholds,
    thresholds_of,
)
from corank.models.gp.hyper import EvidenceOf
from corank.models.gp.prior import DistinctRows

RNG = np.random.default_rng(4)
X = np.round(RNG.normal(size=(40, 2)), 1)
X[30:] = X[:10]  # rows that were graded twice
F = np.sin(2 * X[:, 0]) + X[:, 1]
Y = np.digitize(F + 0.3 * RNG.normal(size=40), [-0.8, 0.0, 0.9]).astype(float)
WEIGHT = RNG.integers(1, 4, 40).astype(float)
PRIOR = 0.5 * X[:, 0] + 0.1 * RNG.normal(size=40)
ONE = np.zeros(40)


def problem(likelihood):
    data = RankingData.of(X, Y, weights=WEIGHT).with_prior(PRIOR)
    items = DistinctRows.of(data.X, np.ones(40, dtype=bool))
    grades = OrdinalGrades.of(data, items, np.unique(Y)) if likelihood == "ordinal" else GaussianGrades.of(data, items)
    return items, grades


@pytest.mark.parametrize("likelihood", ["ordinal", "gaussian"])
@pytest.mark.parametrize("sigma", [None, 0.4])
def test_gradient_of_the_evidence_is_its_difference_quotient(likelihood, sigma, monkeypatch):
    monkeypatch.setattr("corank.models.gp.grades._TOLERANCE", 1e-10)
    items, grades = problem(likelihood)
    kernel = ARDKernel((0.5, 0.2))
    evidence = EvidenceOf(
        View(None, kernel), 2, items, np.arange(len(items)), partial(evidence_of, grades), sigma, 0.01
    )
    of_sigma = [np.log(0.3)] if sigma is None else []
    theta = np.concatenate([kernel.theta, of_sigma, grades.start(1.0, sigma or 0.3)])
    theta = theta + 0.1 * np.random.default_rng(1).normal(size=len(theta))
    _, gradient = evidence(theta)
    np.testing.assert_allclose(gradient, approx_fprime(theta, lambda t: evidence(t)[0], 1e-6), rtol=1e-4, atol=1e-4)


def test_gaussian_evidence_is_that_of_a_normal_distribution():
    """Rows of weight 2 written twice, no row merged with any other; intercept and amplitude are where it is largest."""
    twice = np.repeat(np.arange(40), WEIGHT.astype(int))
    model = OrdinalGP(GaussianKernel(0.3), 0.5, "gaussian", learn=False, scale=False)
    model.fit(X, Y, qid=ONE, sample_weight=WEIGHT)

    def log_p(intercept, amplitude):
        C = amplitude**2 * (GaussianKernel(0.3)(X[twice]) + 0.25 * np.eye(len(twice)))
        return stats.multivariate_normal.logpdf(Y[twice], np.full(len(twice), intercept), C)

    best = log_p(model.intercept_, model.amplitude_)
    assert model.log_evidence_ == pytest.approx(best, rel=1e-10)
    for shift in (-0.01, 0.01):
        assert log_p(model.intercept_ + shift, model.amplitude_) < best
        assert log_p(model.intercept_, model.amplitude_ + shift) < best


@pytest.mark.parametrize("n_basis", [None, 40])
def test_gaussian_predictions_are_scikit_learns(n_basis):
    model = OrdinalGP(GaussianKernel(0.3), 0.5, "gaussian", learn=False, scale=False, n_basis=n_basis)
    model.fit(X, Y, qid=ONE)
    s2 = model.amplitude_**2
    theirs = ConstantKernel(s2, "fixed") * RBF(np.sqrt(1 / 0.6), "fixed")
    other = GaussianProcessRegressor(theirs, alpha=0.25 * s2, optimizer=None).fit(X, Y - model.intercept_)
    new = RNG.normal(size=(7, 2))
    mean, std = other.predict(new, return_std=True)
    ours, our_std = model.predict(new, return_std=True)
    np.testing.assert_allclose(ours, model.intercept_ + mean, rtol=1e-7)
    np.testing.assert_allclose(our_std, std, rtol=1e-6)
    np.testing.assert_allclose(ours, model.predict(new), rtol=1e-12)


def test_hyperparameters_maximise_the_evidence():
    """L-BFGS against a search by hand, the broad prior of what is learnt included."""
    model = OrdinalGP(likelihood="gaussian", random_state=0).fit(X, Y, qid=ONE)
    fixed = {"likelihood": "gaussian", "learn": False}

    def evidence(log_gamma, log_sigma):
        there = OrdinalGP(GaussianKernel(np.exp(log_gamma)), np.exp(log_sigma), **fixed).fit(X, Y, qid=ONE)
        return there.log_evidence_

    at = np.log([model.kernel_.gamma, model.sigma_])
    best = evidence(*at)
    assert best == pytest.approx(model.log_evidence_, rel=1e-9)
    for way in ([0.5, 0], [-0.5, 0], [0, 0.5], [0, -0.5]):
        assert evidence(*(at + way)) < best


def test_probabilities_agree_with_quadrature():
    """Three graded rows and a new one, by Gauss and Hermite over all four values of f."""
    rows, y, new = np.array([[0.0], [0.7], [2.0]]), np.array([0.0, 1.0, 2.0]), np.array([[1.3]])
    model = OrdinalGP(GaussianKernel(0.4), 0.6, learn=False, scale=False).fit(rows, y, qid=[1, 1, 1])
    K = GaussianKernel(0.4)(np.vstack([rows, new]))
    x, w = np.polynomial.hermite_e.hermegauss(24)
    Z = np.array(list(itertools.product(x, repeat=4)))
    mass = np.prod(np.array(list(itertools.product(w, repeat=4))), axis=1)
    f = Z @ np.linalg.cholesky(K).T
    lo, hi = ends_of(model.thresholds_)
    inside = stats.norm.cdf((hi - f[..., None]) / 0.6) - stats.norm.cdf((lo - f[..., None]) / 0.6)
    mass = mass * inside[:, 0, 0] * inside[:, 1, 1] * inside[:, 2, 2]
    np.testing.assert_allclose(model.predict_proba(new)[0], mass @ inside[:, 3] / mass.sum(), atol=4e-3)
    mean, std = model.predict(new, return_std=True)
    assert mean[0] == pytest.approx(mass @ f[:, 3] / mass.sum(), abs=3e-3)
    assert std[0] ** 2 == pytest.approx(mass @ (f[:, 3] - mean[0]) ** 2 / mass.sum(), abs=3e-3)
    total = (2 * np.pi) ** 2
    assert model.log_evidence_ == pytest.approx(np.log(mass.sum() / total), abs=2e-3)


def test_thresholds_are_ordered_and_have_gradients():
    b = np.array([-1.0, 0.2, 0.3, 4.0])
    free = free_of(b)
    np.testing.assert_allclose(thresholds_of(free), b)
    weights = np.array([0.3, -1.0, 2.0, 0.7])
    np.testing.assert_allclose(
        free_gradient(free, weights), approx_fprime(free, lambda t: thresholds_of(t) @ weights, 1e-7), rtol=1e-5
    )
    assert (np.diff(quantile_thresholds(np.array([3.0, 0.0, 0.0, 5.0]), 0.0, 1.0)) > 0).all()
    np.testing.assert_allclose(
        stats.norm.cdf(quantile_thresholds(np.array([1.0, 2.0, 1.0]), 1.0, 2.0), 1.0, 2.0), [0.25, 0.75]
    )


@pytest.mark.parametrize("likelihood", ["ordinal", "gaussian"])
def test_levels_are_the_mode_or_the_median(likelihood):
    model = OrdinalGP(likelihood=likelihood, random_state=0).fit(X, Y + 1, qid=ONE, prior=PRIOR)
    shares = model.predict_proba(X, prior=PRIOR)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.levels_, [1, 2, 3, 4])
    np.testing.assert_array_equal(model.predict_level(X, prior=PRIOR), model.levels_[shares.argmax(axis=1)])
    cost = np.abs(model.levels_[:, None] - model.levels_)
    middle = model.predict_level(X, "median", prior=PRIOR)
    np.testing.assert_array_equal(middle, model.levels_[(shares @ cost).argmin(axis=1)])
    assert np.mean(middle == Y + 1) > 0.6
    with pytest.raises(InputError, match="by is 'mean'; pass 'mode' or 'median'"):
        model.predict_level(X, "mean", prior=PRIOR)
    with pytest.raises(InputError, match="prior is missing"):
        model.predict_proba(X)


def test_a_gaussian_grade_is_the_nearest():
    model = OrdinalGP(likelihood="gaussian", random_state=0).fit(X, Y, qid=ONE)
    nearest = np.abs(model.predict(X)[:, None] - model.levels_).argmin(axis=1)
    np.testing.assert_array_equal(model.predict_level(X, "median"), model.levels_[nearest])


def test_only_the_order_of_grades_counts():
    one, other = OrdinalGP(random_state=0).fit(X, Y, qid=ONE), OrdinalGP(random_state=0).fit(X, np.exp(3 * Y), qid=ONE)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_allclose(other.levels_, np.exp(3 * one.levels_))


def test_basis_rows_approximate_all_rows():
    some = OrdinalGP(n_basis=20, basis="kmeans++", random_state=0).fit(X, Y, qid=ONE)
    assert len(some.process_.phi.basis) <= 20
    assert some.score(X, Y, qid=ONE) > 0.8


@pytest.mark.parametrize("sigma", [1e-4, 1e3])
@pytest.mark.parametrize("likelihood", ["ordinal", "gaussian"])
def test_any_noise_is_finite(likelihood, sigma):
    model = OrdinalGP(GaussianKernel(0.3), sigma, likelihood, learn=False).fit(X, Y, qid=ONE)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.isfinite(model.predict_proba(X)).all()


def test_two_grades_and_ungraded_rows():
    y = np.where(Y > 1, 1.0, 0.0)
    y[::3] = np.nan
    model = OrdinalGP(scale=False, random_state=0).fit(X, y, qid=ONE)
    assert model.thresholds_.shape == (1,)
    assert model.predict_proba(X).shape == (40, 2)
    kept = OrdinalGP(scale=False, random_state=0).fit(X[~np.isnan(y)], y[~np.isnan(y)], qid=ONE[~np.isnan(y)])
    np.testing.assert_allclose(kept.predict(X), model.predict(X), rtol=1e-6)


def test_pairs_get_one_sentence():
    with pytest.raises(InputError, match="pairs were given"):
        OrdinalGP().fit(X, pairs=[[0, 1]])


def test_a_saved_model_predicts_the_same_probabilities(tmp_path):
    model = OrdinalGP(random_state=0).fit(X, Y, qid=ONE)
    corank.save(model, tmp_path / "model")
    again = corank.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("likelihood", ["ordinal", "gaussian"])
def test_queries_with_one_grade_are_learnt_from(likelihood):
    alone = OrdinalGP(likelihood=likelihood, scale=False, random_state=0).fit(X, Y, qid=np.arange(40))
    together = OrdinalGP(likelihood=likelihood, scale=False, random_state=0).fit(X, Y, qid=ONE)
    np.testing.assert_allclose(alone.predict_proba(X), together.predict_proba(X), rtol=1e-9)
    scaled = OrdinalGP(likelihood=likelihood, random_state=0).fit(X, Y, qid=np.arange(40))
    assert np.isfinite(scaled.predict(X)).all()


def test_equal_grades_or_rows_get_one_sentence():
    with pytest.raises(InputError, match="all scored rows of X are equal, so no grades can be learnt"):
        OrdinalGP().fit(np.ones((4, 2)), [1, 2, 3, 1], qid=np.zeros(4))
    with pytest.raises(InputError, match="no two of the 3 scored rows share a query"):
        OrdinalGP().fit(X[:4], [2, 2, np.nan, 2], qid=np.zeros(4))
    with pytest.raises(InputError, match="no pair has a positive weight"):
        OrdinalGP().fit(X[:4], [2, 2, 1, 2], qid=np.zeros(4), sample_weight=[1, 1, 0, 1])
    with pytest.raises(InputError, match="y is NaN for all 4 rows"):
        OrdinalGP().fit(X[:4], [np.nan] * 4, qid=np.zeros(4))
