"""The Gaussian approximation: derivatives, optimum and evidence found in other ways."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import logsumexp

from corank.models.votes.laplace import (
    KAPPA,
    KAPPA_SPREAD,
    SIDE_SPREAD,
    ScorePrior,
    VoteCounts,
    find_mode,
    information,
    log_probabilities,
    score_gradients,
)
from corank.models.votes.scores import DEGREES, JUDGES, SIGMA_SPREAD, CheapScores, Hyperprior, Marginals, average


def drawn(n_items, n_votes, seed=0, *, n_judges=0, has_sides=True, ties=True):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, n_items, n_votes)
    b = (a + rng.integers(1, n_items, n_votes)) % n_items
    outcome = rng.choice(3 if ties else [0, 2], n_votes)
    judge = rng.integers(0, n_judges, n_votes) if n_judges else None
    ones = np.ones(n_votes)
    counts = VoteCounts.of(a, b, outcome, ones, n_items, judge=judge, n_judges=n_judges, has_sides=has_sides)
    return counts, (a, b, outcome, judge)


def test_probabilities_are_those_of_davidson():
    eta, kappa = np.array([0.3, -2.0, 700.0]), -0.4
    worth_a, worth_b = np.exp(eta[:2]), 1.0
    total = worth_a + worth_b + np.exp(kappa) * np.sqrt(worth_a * worth_b)
    p = np.exp(log_probabilities(eta, kappa))
    assert p[:2, 0] == pytest.approx(worth_a / total)
    assert p[:2, 1] == pytest.approx(np.exp(kappa) * np.sqrt(worth_a) / total)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert np.exp(log_probabilities(eta[:2], -np.inf))[:, 0] == pytest.approx(1 / (1 + np.exp(-eta[:2])))


@pytest.mark.parametrize(("n_judges", "has_sides", "ties"), [(0, True, True), (3, True, True), (3, False, False)])
def test_the_mode_maximises_the_posterior_of_single_votes(n_judges, has_sides, ties):
    n_items, omega = 5, 0.5
    counts, (a, b, outcome, judge) = drawn(n_items, 60, n_judges=n_judges, has_sides=has_sides, ties=ties)
    rng = np.random.default_rng(1)
    mean, root = rng.normal(size=n_items), rng.normal(size=(n_items, n_items))
    covariance = root @ root.T / n_items + 0.3 * np.eye(n_items)

    def parts(x):
        s, rest = x[:n_items], list(x[n_items:])
        kappa = rest.pop(0) if ties else -np.inf
        beta = rest.pop(0) if has_sides else 0.0
        return s, kappa, beta, np.array(rest)

    def loss(x):
        s, kappa, beta, r = parts(x)
        scale = r[judge] if n_judges else 1.0
        log_p = log_probabilities(scale * (s[a] - s[b]) + beta, kappa)
        log_p = log_p[np.arange(len(a)), outcome].sum() + stats.multivariate_normal.logpdf(s, mean, covariance)
        log_p += stats.norm.logpdf(kappa, KAPPA, KAPPA_SPREAD) if ties else 0.0
        log_p += stats.norm.logpdf(beta, 0.0, SIDE_SPREAD) if has_sides else 0.0
        return -log_p - stats.norm.logpdf(r, 1.0, omega).sum()

    mode = find_mode(counts, ScorePrior.of(mean, covariance), omega)
    at = np.concatenate([mode.s, [mode.kappa] * ties, [mode.beta] * has_sides, mode.r])
    best = optimize.minimize(loss, at + 0.1, method="BFGS", options={"gtol": 1e-6})
    assert loss(at) <= best.fun + 1e-6
    assert at == pytest.approx(best.x, abs=2e-3)


def test_evidence_and_moments_agree_with_sampling():
    # a check of the Laplace approximation: importance sampling from a wide t around the mode
    n_items, tau = 4, 0.8
    counts, (a, b, outcome, _) = drawn(n_items, 40, seed=3)
    prior = ScorePrior.independent(n_items, tau)
    mode = find_mode(counts, prior, 0.5)
    size = n_items + 2
    centre = np.concatenate([mode.s, [mode.kappa, mode.beta]])
    around = stats.multivariate_t(centre, 1.3 * mode.covariance, df=8, seed=0)
    x = around.rvs(40_000)
    log_p = np.zeros(len(x))
    for first, second, which in zip(a, b, outcome, strict=True):
        eta = x[:, first] - x[:, second] + x[:, -1]
        terms = np.stack([eta / 2, x[:, -2], -eta / 2])
        log_p += terms[which] - logsumexp(terms, axis=0)
    log_prior = stats.norm.logpdf(x[:, :n_items], 0.0, tau).sum(axis=1)
    log_prior += stats.norm.logpdf(x[:, -2], KAPPA, KAPPA_SPREAD) + stats.norm.logpdf(x[:, -1], 0.0, SIDE_SPREAD)
    log_w = log_p + log_prior - around.logpdf(x)
    constant = -np.log(KAPPA_SPREAD) - np.log(SIDE_SPREAD)
    assert mode.log_evidence + constant == pytest.approx(logsumexp(log_w) - np.log(len(x)), abs=0.1)
    w = np.exp(log_w - logsumexp(log_w))
    mean = w @ x
    sd = np.sqrt(w @ (x - mean) ** 2)
    assert np.abs(mean - centre).max() < 0.1
    assert np.sqrt(np.diagonal(mode.covariance)) == pytest.approx(sd, rel=0.1)
    assert mode.covariance.shape == (size, size)


def test_counting_changes_nothing_but_the_work():
    rng = np.random.default_rng(0)
    a, b, o = np.array([0, 0, 1, 2, 0]), np.array([1, 1, 2, 0, 1]), np.array([0, 0, 2, 1, 2])
    once = VoteCounts.of(a, b, o, np.ones(5), 3)
    assert len(once.first) == 3
    order = rng.permutation(5)
    again = VoteCounts.of(a[order], b[order], o[order], np.ones(5), 3)
    assert np.array_equal(once.wins, again.wins)
    prior = ScorePrior.independent(3, 1.0)
    assert find_mode(once, prior, 0.4).s == pytest.approx(find_mode(again, prior, 0.4).s)
    # without sides, a vote counts the same in both orders
    swapped = VoteCounts.of(b, a, 2 - o, np.ones(5), 3, has_sides=False)
    assert np.array_equal(swapped.wins, VoteCounts.of(a, b, o, np.ones(5), 3, has_sides=False).wins)


def test_gradients_of_single_votes_add_up_to_zero_at_the_optimum():
    counts, _ = drawn(4, 80, n_judges=2)
    prior = ScorePrior.independent(4, 0.7)
    mode = find_mode(counts, prior, 0.4)
    pull, weight = score_gradients(counts, mode)
    total = np.zeros(4)
    for row in range(len(counts.first)):
        total[counts.first[row]] += pull[row] @ counts.wins[row]
        total[counts.second[row]] -= pull[row] @ counts.wins[row]
    assert total == pytest.approx(prior.precision @ mode.s, abs=1e-3)
    H = np.zeros((4, 4))
    for row, n in enumerate(counts.wins.sum(axis=1)):
        e = np.eye(4)[counts.first[row]] - np.eye(4)[counts.second[row]]
        H += n * weight[row] * np.outer(e, e)
    assert information(counts, mode) == pytest.approx(H)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_average_agrees_with_a_fine_grid(sign):
    rng = np.random.default_rng(4)
    s = rng.normal(size=6)
    a = rng.integers(0, 6, 150)
    b = (a + rng.integers(1, 6, 150)) % 6
    outcome = np.where(rng.random(150) < 1 / (1 + np.exp(s[b] - s[a])), 0, 2)
    counts = VoteCounts.of(a, b, outcome, np.ones(150), 6)
    hyper = Hyperprior(6, CheapScores(sign * (s - s.mean()), 0.02 * np.eye(6)))
    nodes, weights = average(counts, hyper)
    mean = sum(w * mode.s for w, mode in zip(weights, nodes.values(), strict=True))
    points = [(z, u, 0) for z in np.arange(-3.9, 4.0, 0.3) for u in np.arange(-1.6, 1.7, 0.2)]
    modes = [find_mode(counts, hyper.prior(point, 0.2), 0.4) for point in points]
    log_w = np.array([mode.log_evidence + hyper.log_prior(at) for at, mode in zip(points, modes, strict=True)])
    w = np.exp(log_w - logsumexp(log_w))
    assert mean == pytest.approx(w @ np.array([mode.s for mode in modes]), abs=0.02)
    rho = np.array([np.tanh(point[0]) for point in nodes])
    assert weights @ rho == pytest.approx(w @ np.tanh([point[0] for point in points]), abs=0.02)
    assert sign * (weights @ rho) > 0.8
    assert hyper.log_prior((2.0, 0.0, 0)) - hyper.log_prior((2.0, 0.7, 0)) == pytest.approx(
        stats.norm.logpdf(0, scale=SIGMA_SPREAD) - stats.norm.logpdf(0.7, scale=SIGMA_SPREAD)
    )
    assert JUDGES[:, 0].sum() == pytest.approx(1.0)
    z = np.array([-4.0, 0.0, 1.0, 3.0])
    p = sum(share * stats.t.pdf(z, DEGREES, median, spread) for share, median, spread in JUDGES)
    density = np.array([hyper.log_prior((each, 0.0, 0)) for each in z])
    assert density - density[0] == pytest.approx(np.log(p / p[0]))


def test_the_prior_of_cheap_votes_and_features_is_a_regression_on_uncertain_scores():
    # moments of s = λ c + e by simulation; λ varies inside a cell of the grid
    rng = np.random.default_rng(0)
    C = np.diag([0.1, 0.2, 0.05]) + 0.02
    cheap, F = CheapScores(np.array([1.0, -0.5, -0.5]), C), np.array([[1.2], [0.0], [-1.2]])
    hyper, point, n = Hyperprior(3, cheap, F), (0.5, 0.1, 1), 200_000
    sigma, rho = np.exp(0.1), np.tanh(0.5)
    tau = sigma * np.sqrt(1 - rho**2)
    slope = sigma * rho / cheap.spread
    c = rng.multivariate_normal(cheap.mean, C, n)
    e = tau * np.sqrt(0.5) * (rng.normal(size=(n, 3)) + rng.normal(size=(n, 1)) @ F.T)
    s = slope * c + slope * rng.uniform(-0.35 / 2, 0.35 / 2, (n, 1)) * cheap.mean + e
    prior = hyper.prior(point, 0.35)
    assert prior.mean == pytest.approx(s.mean(axis=0), abs=0.01)
    assert np.linalg.inv(prior.precision) == pytest.approx(np.cov(s.T), abs=0.02)
    assert prior.log_det == pytest.approx(-np.linalg.slogdet(prior.precision)[1])
    assert hyper.tau(point) == pytest.approx(tau)


@pytest.mark.parametrize("degrees", [np.inf, 4.0])
def test_quantiles_of_a_mixture_are_those_of_draws(degrees):
    rng = np.random.default_rng(0)
    weights, means, deviations = np.array([0.7, 0.3]), np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[1, 0.2], [2, 1]])
    which = rng.choice(2, 200_000, p=weights)
    noise = rng.normal(size=len(which)) if np.isinf(degrees) else rng.standard_t(degrees, len(which))
    mixture = Marginals(weights, means, deviations, degrees)
    for level in (0.025, 0.5, 0.9):
        expected = np.quantile(means[which] + deviations[which] * noise[:, None], level, axis=0)
        assert mixture.quantile(level) == pytest.approx(expected, abs=0.05)
