"""Expectation propagation, against quadrature, importance sampling, finite differences and explicit formulas."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from corank.errors import InputError
from corank.models.gp.propagation import TOLERANCE, assemble, propagate, root_of
from corank.models.gp.sites import Sites


def covariance(n, seed=0, width=2.0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * width**2))


def likelihood(F, sites):
    """log Π_k P(site k | f)^weight for each row of F."""
    total = np.zeros(len(F))
    for left, right, lo, hi, noise, weight in zip(
        sites.left, sites.right, sites.lo, sites.hi, sites.noise, sites.weight, strict=True
    ):
        g = F[:, left] - (F[:, right] if right >= 0 else 0.0)
        # logistic noise has the variance π²/3 times its squared scale
        s = np.sqrt(noise) * (1.0 if sites.likelihood == "probit" else np.sqrt(3.0) / np.pi)
        law = stats.norm if sites.likelihood == "probit" else stats.logistic
        inside = law.cdf((hi - g) / s) - law.cdf((lo - g) / s)
        total += weight * np.log(np.maximum(inside, 1e-300))
    return total


def on_a_grid(K, sites, points=60):
    """Evidence, mean and covariance by Gauss and Hermite over every item."""
    x, w = np.polynomial.hermite_e.hermegauss(points)
    w = w / np.sqrt(2 * np.pi)
    n = len(K)
    Z = np.array(list(itertools.product(x, repeat=n)))
    p = np.array([np.prod(q) for q in itertools.product(w, repeat=n)])
    F = Z @ np.linalg.cholesky(K + 1e-12 * np.eye(n)).T
    p = p * np.exp(likelihood(F, sites))
    mean = p @ F / p.sum()
    return np.log(p.sum()), mean, (F * p[:, None]).T @ F / p.sum() - np.outer(mean, mean)


def test_one_site_is_exact():
    K, sites = covariance(2), Sites.preferences([[1, 0]], 0.7)
    evidence, mean, cov = on_a_grid(K, sites)
    R, _ = root_of(K)
    found = propagate(R, sites)
    assert found.log_evidence == pytest.approx(np.log(0.5), abs=1e-12)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-6)
    np.testing.assert_allclose(found.posterior(R).mean, mean, atol=1e-5)
    np.testing.assert_allclose(found.posterior(R).covariance, cov, atol=1e-5)
    one = Sites.grades([0], -0.3, 0.8, 0.25)
    evidence, mean, cov = on_a_grid(K[:1, :1], one)
    R, _ = root_of(K[:1, :1])
    found = propagate(R, one)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-6)
    np.testing.assert_allclose(found.posterior(R).covariance, cov, atol=1e-5)


def test_a_few_sites_agree_with_quadrature():
    K, sites = covariance(3), Sites.preferences([[0, 1], [0, 2], [1, 2], [2, 1]], 0.5, [2.0, 1.0, 1.0, 1.0])
    R, _ = root_of(K)
    found = propagate(R, sites)
    evidence, mean, cov = on_a_grid(K, sites, 40)
    assert found.log_evidence == pytest.approx(evidence, abs=3e-3)
    np.testing.assert_allclose(found.posterior(R).mean, mean, atol=5e-3)
    np.testing.assert_allclose(found.posterior(R).covariance, cov, atol=5e-3)


@pytest.mark.parametrize("noise", ["probit", "logistic"])
def test_ten_items_agree_with_importance_sampling(noise):
    rng = np.random.default_rng(1)
    K = covariance(10, 4)
    f = np.linalg.cholesky(K) @ rng.normal(size=10)
    pairs = np.array([(i, j) if f[i] > f[j] else (j, i) for i, j in itertools.combinations(range(10), 2)])
    sites = Sites.preferences(pairs[rng.permutation(45)[:25]], 0.3, likelihood=noise)
    R, _ = root_of(K)
    found = propagate(R, sites)
    posterior = found.posterior(R)
    # proposals: the approximation, slightly wider
    law = stats.multivariate_normal(posterior.mean, 1.3 * posterior.covariance, allow_singular=True)
    F = law.rvs(200_000, random_state=2)
    prior = stats.multivariate_normal(np.zeros(10), K)
    log_p = likelihood(F, sites) + prior.logpdf(F) - law.logpdf(F)
    p = np.exp(log_p - log_p.max())
    evidence, p = np.log(p.mean()) + log_p.max(), p / p.sum()
    assert found.log_evidence == pytest.approx(evidence, abs=0.06)
    mean = p @ F
    np.testing.assert_allclose(posterior.mean, mean, atol=0.03)
    np.testing.assert_allclose(posterior.covariance, (F * p[:, None]).T @ F - np.outer(mean, mean), atol=0.03)


@pytest.mark.parametrize("name", ["probit", "logistic"])
def test_gradient_of_the_evidence_agrees_with_finite_differences(name):
    rng, n = np.random.default_rng(3), 12
    K, change = covariance(n, 1), covariance(n, 2, 0.7)
    pairs = rng.integers(0, n, (60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    sites = Sites.preferences(pairs, 0.4, rng.uniform(0.2, 3.0, len(pairs)), likelihood=name)
    R, _ = root_of(K)
    found = propagate(R, sites, tol=1e-11)
    alpha, M = found.posterior_weights(R)
    h = 1e-6  # below the least eigenvalue of K

    def evidence(step=0.0, noise=0.0):
        moved = Sites(sites.left, sites.right, sites.lo, sites.hi, sites.noise + noise, sites.weight, name)
        return propagate(root_of(K + step * change)[0], moved, tol=1e-11).log_evidence

    gradient = 0.5 * np.sum((np.outer(alpha, alpha) - M) * change)
    assert gradient == pytest.approx((evidence(h) - evidence(-h)) / (2 * h), rel=1e-4)
    assert found.noise_gradient.sum() == pytest.approx((evidence(0, h) - evidence(0, -h)) / (2 * h), rel=1e-4)


def test_gradient_in_thresholds_agrees_with_finite_differences():
    K = covariance(6)
    R, _ = root_of(K)
    items, cuts = [0, 1, 2, 3, 4, 5, 0], np.array([-np.inf, -0.5, 0.6, np.inf])
    grades = np.array([0, 1, 2, 1, 0, 2, 1])

    def run(first):
        ends = np.where(np.arange(4) == 1, first, cuts)
        return propagate(R, Sites.grades(items, ends[grades], ends[grades + 1], 0.2), tol=1e-11)

    found, h = run(-0.5), 1e-5
    gradient = found.hi_gradient[grades == 0].sum() + found.lo_gradient[grades == 1].sum()
    assert gradient == pytest.approx((run(-0.5 + h).log_evidence - run(-0.5 - h).log_evidence) / (2 * h), rel=1e-5)


def test_posterior_weights_give_the_posterior():
    K = covariance(8)
    R, _ = root_of(K)
    found = propagate(R, Sites.preferences([[0, 1], [3, 2], [5, 0]], 0.2))
    alpha, M = found.posterior_weights(R)
    np.testing.assert_allclose(K @ alpha, found.posterior(R).mean, atol=1e-10)
    np.testing.assert_allclose(K - K @ M @ K, found.posterior(R).covariance, atol=1e-9)


def test_a_prior_precision_is_a_prior_covariance():
    K, L = covariance(7), np.diag(np.full(7, 2.0)) - np.eye(7, k=1) - np.eye(7, k=-1)
    R, _ = root_of(K)
    sites = Sites.preferences([[0, 6], [3, 2], [1, 5]], 0.3)
    one = propagate(R, sites, precision=np.eye(R.shape[1]) + R.T @ L @ R)
    P = np.linalg.inv(np.linalg.inv(K) + L)
    other_R, _ = root_of(P)
    other = propagate(other_R, sites)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-9)
    np.testing.assert_allclose(one.posterior(R).mean, other.posterior(other_R).mean, atol=1e-8)
    np.testing.assert_allclose(one.posterior(R).covariance, other.posterior(other_R).covariance, atol=1e-8)


def test_the_order_of_pairs_changes_nothing():
    rng, n = np.random.default_rng(5), 20
    R, _ = root_of(covariance(n))
    pairs = rng.integers(0, n, (150, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    one = propagate(R, Sites.preferences(pairs, 0.05)).posterior(R)
    other = propagate(R, Sites.preferences(pairs[::-1], 0.05)).posterior(R)
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.covariance, other.covariance)


def test_a_weight_equals_repeated_answers():
    R, _ = root_of(covariance(5))
    once = Sites.preferences([[0, 1], [2, 3], [1, 0]], 0.3, [3.0, 2.0, 1.0])
    often = Sites.preferences([[0, 1], [2, 3], [0, 1], [1, 0], [0, 1], [2, 3]], 0.3)
    assert len(once) == len(often) == 3
    # the same answers as sites of their own
    at = np.repeat(np.arange(3), once.weight.astype(int))
    single = Sites(once.left[at], once.right[at], once.lo[at], once.hi[at], once.noise[at], np.ones(len(at)))
    found, apart = propagate(R, once), propagate(R, single)
    assert found.log_evidence == propagate(R, often).log_evidence
    assert found.log_evidence == pytest.approx(apart.log_evidence, abs=1e-9)
    np.testing.assert_allclose(found.posterior(R).covariance, apart.posterior(R).covariance, atol=1e-7)


@pytest.mark.parametrize("sigma", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize(
    ("pairs", "weight"),
    [
        ([[0, 1], [1, 2], [2, 0]], 1.0),
        ([[0, 1], [1, 2], [2, 0]], 1e4),
        ([[0, 1]], 1e4),
        ([[0, 1], [1, 0]], 1e4),
        ([[0, 1], [1, 0], [3, 4], [2, 4]], [1e4, 1.0, 0.01, 1e-6]),
        ([[3, 4], [4, 3], [3, 0]], 1.0),
    ],
    ids=["cycle", "cycle often", "often", "contradicted often", "uneven", "equal rows"],
)
def test_hard_cases_give_finite_and_plausible_results(sigma, pairs, weight):
    K = covariance(5)
    K[4], K[:, 4] = K[3], K[:, 3]  # items 3 and 4 are one
    K[4, 4] = K[3, 3]
    R, _ = root_of(K)
    sites = Sites.preferences(pairs, sigma, np.broadcast_to(weight, len(pairs)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = propagate(R, sites)
    posterior = found.posterior(R)
    assert np.isfinite(found.log_evidence)
    assert np.isfinite(posterior.mean).all()
    assert np.linalg.eigvalsh(posterior.covariance).min() > -1e-9
    assert (posterior.std <= np.sqrt(np.diagonal(K)) + 1e-9).all()
    assert abs(posterior.mean[3] - posterior.mean[4]) < 1e-5
    if len(pairs) == 1:
        assert posterior.mean[0] > posterior.mean[1]
    if len(pairs) == 2 or pairs == [[0, 1], [1, 2], [2, 0]]:
        assert np.abs(posterior.mean).max() < 0.2  # the answers do not determine an order


def test_answers_without_noise_truncate_the_prior():
    R, _ = root_of(np.eye(2))
    posterior = propagate(R, Sites.preferences([[0, 1]], 1e-9)).posterior(R)
    mean, var = posterior.differences([[0, 1]])
    # moments of a half normal of variance 2
    np.testing.assert_allclose(mean, np.sqrt(2) * np.sqrt(2 / np.pi), rtol=1e-6)
    np.testing.assert_allclose(var, 2 * (1 - 2 / np.pi), rtol=1e-6)


def test_a_warm_start_converges_faster_to_the_same_point():
    rng, n = np.random.default_rng(6), 30
    R, _ = root_of(covariance(n))
    pairs = rng.integers(0, n, (100, 2))
    sites = Sites.preferences(pairs[pairs[:, 0] != pairs[:, 1]], 0.2)
    cold = propagate(R, sites)
    near = Sites(sites.left, sites.right, sites.lo, sites.hi, sites.noise * 1.02, sites.weight)
    warm, again = propagate(R, near, start=(cold.tau, cold.nu)), propagate(R, near)
    assert warm.n_sweeps < again.n_sweeps
    assert warm.log_evidence == pytest.approx(again.log_evidence, abs=1e-9)


def test_sites_that_do_not_converge_give_a_warning():
    R, _ = root_of(covariance(30))
    pairs = np.random.default_rng(0).permutation(30).reshape(-1, 2)
    sites = Sites.preferences(np.concatenate([pairs, pairs[:, ::-1] - pairs[:, ::-1] % 2]), 0.1)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 sweeps"):
        found = propagate(R, sites, max_sweeps=2)
    assert found.gap > TOLERANCE


def test_a_root_has_as_many_columns_as_the_rank_of_the_covariance():
    x = np.linspace(0, 1, 50)[:, None]
    K = np.exp(-((x - x.T) ** 2))
    R, pivots = root_of(K)
    assert R.shape[1] < 20
    np.testing.assert_allclose(R @ R.T, K, atol=1e-10)
    np.testing.assert_array_equal(np.triu(R[pivots], 1), 0.0)
    assert root_of(np.zeros((3, 3)))[0].shape == (3, 0)


def test_a_posterior_whose_precision_is_not_positive_gets_a_sentence():
    """As after a prior of 1e200 in a model file, whose numbers are lost beside those of the answers."""
    one = np.array([0])
    sites = Sites(one, one + 1, np.zeros(1), np.full(1, np.inf), np.ones(1), np.ones(1))
    with pytest.raises(InputError, match="the posterior is not determined"):
        assemble(np.eye(2), sites, np.zeros(1), np.zeros(1), -np.eye(2))


def test_a_hundred_thousand_equal_answers_converge_without_a_warning():
    R, sites = np.linalg.cholesky([[1.0, 0.5], [0.5, 1.0]]), Sites.preferences([[0, 1]], 0.1, [1e5])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = propagate(R, sites)
    patient = propagate(R, sites, max_sweeps=3000, quiet=True)  # large steps come back in some 1,100 sweeps
    assert patient.gap <= TOLERANCE
    assert result.log_evidence == pytest.approx(patient.log_evidence, abs=1e-3)
    np.testing.assert_allclose(R @ result.mu, R @ patient.mu, atol=1e-2)
