"""CollaborativeGP, against explicit formulas, quadrature, finite differences and the exact optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import approx_fprime, minimize_scalar

import corank
from corank.base.kernels import GaussianKernel
from corank.errors import InputError
from corank.models.gp import CollaborativeGP
from corank.models.gp.grades import ends_of, thresholds_of
from corank.models.gp.propagation import propagate, root_of
from corank.models.gp.sites import Sites
from corank.models.gp.users import (
    GaussianLikelihood,
    OrdinalLikelihood,
    Population,
    ThresholdPrior,
    e_step,
    row_of,
)

RNG = np.random.default_rng(2)
U, N = 25, 12
Z = RNG.normal(size=(N, 2))
F = 3 + Z @ [0.5, 0.0] + 0.8 * RNG.normal(size=(U, 2)) @ Z.T + 0.4 * RNG.normal(size=(U, 1))
Y = np.clip(np.round(F + 0.3 * RNG.normal(size=(U, N))), 1, 5)
SEEN = RNG.random((U, N)) < 0.5
SEEN[:, 0] = True
SEEN[:, -1] = False  # an unrated item
USER, ITEM = np.nonzero(SEEN)
RATINGS = sparse.csr_array((Y[SEEN], (USER, ITEM)), shape=(U, N))
NAMES = np.array([f"i{j:02d}" for j in range(N)])


def some_population(noise=0.4):
    K = GaussianKernel(0.3)(Z) + 0.5
    return Population(3 + 0.1 * RNG.normal(size=N), K, noise)


def of_user(population, user):
    """Ratings less the mean, and their covariance at scale 1."""
    J, y = row_of(RATINGS, user)
    return y - population.mean[J], population.covariance[np.ix_(J, J)] + population.noise * np.eye(len(J))


def log_joint(population, user, scale):
    """log N(y_j; mean_J, s (Σ_JJ + noise I)), and with log P(s) added."""
    r, C = of_user(population, user)
    log_z = stats.multivariate_normal.logpdf(r, np.zeros(len(r)), scale * C)
    return log_z, log_z - 5.0 * (np.log(scale) + 1.0 / scale)


def penalty(population, first, weight):
    away = population.mean - first.mean
    inverse = np.linalg.inv(population.covariance)
    of_noise = np.log(population.noise) + first.noise / population.noise
    of_f = np.linalg.slogdet(population.covariance)[1] + np.trace(first.covariance @ inverse) + away @ inverse @ away
    return 0.5 * weight * (of_f + RATINGS.nnz / U * of_noise)


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_an_iteration_is_the_papers_and_never_lowers_the_objective(weight):
    first = population = some_population()
    before = -np.inf
    for _ in range(8):
        user_fit, totals = e_step(GaussianLikelihood(), population, RATINGS, None, None)
        scales = np.array([user.scale for user in user_fit])
        both = np.array([log_joint(population, user, scales[user]) for user in range(U)])
        assert totals.log_evidence == pytest.approx(both[:, 0].sum(), rel=1e-9)
        now = both[:, 1].sum() - penalty(population, first, weight)
        assert now > before - 1e-8
        before = now
        S, h = population.covariance, population.mean
        means, covariances, squares = [], [], 0.0
        for user in range(U):
            J, y = row_of(RATINGS, user)
            s = scales[user]
            G = np.linalg.inv(s * (S[np.ix_(J, J)] + population.noise * np.eye(len(J))))
            f, C = h + s * S[:, J] @ G @ (y - h[J]), s * S - s * S[:, J] @ G @ S[J] * s
            np.testing.assert_allclose(h + S[:, J] @ user_fit[user].alpha, f, rtol=1e-9)
            means.append(f)
            covariances.append(C)
            squares += (np.sum((y - f[J]) ** 2) + np.trace(C[np.ix_(J, J)])) / s
        new = population.m_step(totals, first, weight)
        mean = (weight * first.mean + np.array(means).T @ (1.0 / scales)) / (weight + np.sum(1.0 / scales))
        np.testing.assert_allclose(new.mean, mean, rtol=1e-9)
        away = np.outer(mean - first.mean, mean - first.mean)
        total = weight * (first.covariance + away) + sum(
            (np.outer(f - mean, f - mean) + C) / s for f, C, s in zip(means, covariances, scales, strict=True)
        )
        np.testing.assert_allclose(new.covariance, total / (weight + U), rtol=1e-7, atol=1e-10)
        each = RATINGS.nnz / U
        noise = (weight * each * first.noise + squares) / (weight * each + RATINGS.nnz)
        assert new.noise == pytest.approx(noise, rel=1e-9)
        population = new


def test_the_scale_of_a_user_maximises_the_likelihood():
    population = some_population()
    for user in range(5):
        user_fit = GaussianLikelihood().fit(population, *row_of(RATINGS, user))
        best = minimize_scalar(
            lambda log_s, user=user: -log_joint(population, user, np.exp(log_s))[1], bounds=(-5, 5), method="bounded"
        )
        assert np.log(user_fit.scale) == pytest.approx(best.x, abs=1e-4)


def test_the_m_step_is_optimal():
    """What the M-step maximises, computed for other means, covariances and noises near those it finds."""
    first, weight = some_population(), 3.0
    user_fit, totals = e_step(GaussianLikelihood(), first, RATINGS, None, None)
    new = first.m_step(totals, first, weight)

    def expected(population):
        """E log P(y_j, f_j) of all users under what was known before the step, and the prior."""
        inverse, value = np.linalg.inv(population.covariance), 0.0
        for user in range(U):
            J, y = row_of(RATINGS, user)
            s, S = user_fit[user].scale, first.covariance
            r, C = of_user(first, user)
            f = first.mean + S[:, J] @ np.linalg.solve(C, r)
            D = s * (S - S[:, J] @ np.linalg.solve(C, S[J]))
            away = f - population.mean
            squares_of_f = np.sum(inverse * (np.outer(away, away) + D))
            value -= 0.5 * (np.linalg.slogdet(population.covariance)[1] + squares_of_f / s)
            squares = np.sum((y - f[J]) ** 2) + np.trace(D[np.ix_(J, J)])
            value -= 0.5 * (len(J) * np.log(population.noise) + squares / (s * population.noise))
        return value - penalty(population, first, weight)

    best = expected(new)
    rng = np.random.default_rng(3)
    for size in (1e-2, 1e-1):
        for _ in range(5):
            B = np.eye(N) + size * rng.normal(size=(N, N))
            assert expected(Population(new.mean + size * rng.normal(size=N), new.covariance, new.noise)) < best
            assert expected(Population(new.mean, B @ new.covariance @ B.T, new.noise)) < best
            assert expected(Population(new.mean, new.covariance, new.noise * np.exp(size * rng.normal()))) < best


def test_the_papers_cgpr_is_ten_lines_of_numpy():
    """Equation 3, the E-step and the noise of Yu, Yu and Tresp, from mean 0, the kernel and sigma 0.1."""
    how = {"prior_weight": 0.0, "user_scales": False, "start": "kernel", "max_iter": 3, "tol": 0.0, "scale": False}
    model = CollaborativeGP("gaussian", GaussianKernel(0.3), **how).fit(RATINGS, item_features=Z)
    h, S, noise = np.zeros(N), GaussianKernel(0.3)(Z), 0.01
    for _ in range(3):
        f, C, squares = np.empty((U, N)), np.empty((U, N, N)), 0.0
        for j in range(U):
            J = np.flatnonzero(SEEN[j])
            G = np.linalg.inv(S[np.ix_(J, J)] + noise * np.eye(len(J)))
            f[j], C[j] = h + S[:, J] @ G @ (Y[j, J] - h[J]), S - S[:, J] @ G @ S[J]
            squares += np.sum((Y[j, J] - f[j, J]) ** 2) + np.trace(C[j][np.ix_(J, J)])
        h, noise = f.mean(axis=0), squares / SEEN.sum()
        S = (f - h).T @ (f - h) / U + C.mean(axis=0)
    np.testing.assert_allclose(model.item_means_, h, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.item_covariance_, S, rtol=1e-4, atol=1e-6)
    assert model.sigma_**2 == pytest.approx(noise, rel=1e-6)
    np.testing.assert_array_equal(model.user_scales_, 1.0)
    # a new item like an old one is scored like it, though the model has no level per user
    np.testing.assert_allclose(model.predict_new(Z[[2]], users=[5])[0], model.predict([2], qid=[5]), atol=1e-3)


def test_an_iteration_of_the_papers_cgpor_is_equation_3():
    """One M-step from the posteriors of single users, whose thresholds and noise have no prior."""
    how = {"prior_weight": 0.0, "free_thresholds": True, "start": "kernel", "tol": 0.0, "scale": False}
    model = CollaborativeGP("ordinal", GaussianKernel(0.3), max_iter=1, **how).fit(RATINGS, item_features=Z)
    S, counts = GaussianKernel(0.3)(Z), np.bincount(Y[SEEN].astype(int) - 1, minlength=5)
    b = np.sqrt(2.0) * stats.norm.ppf(np.cumsum(counts)[:-1] / counts.sum())  # where all users start
    lo, hi = ends_of(b)
    f, C = np.empty((U, N)), np.empty((U, N, N))
    for j in range(U):
        J, codes = np.flatnonzero(SEEN[j]), Y[j, SEEN[j]].astype(int) - 1
        R, _ = root_of(S)
        found = propagate(R, Sites.grades(J, lo[codes], hi[codes], 1.0)).posterior(R)
        f[j], C[j] = found.mean, found.covariance
    h = f.mean(axis=0)
    np.testing.assert_allclose(model.item_means_, h, atol=1e-5)
    np.testing.assert_allclose(model.item_covariance_, (f - h).T @ (f - h) / U + C.mean(axis=0), atol=1e-5)
    # an unknown user has the geometric mean of the noises
    assert np.log(model.user_sigmas_).mean() == pytest.approx(np.log(model.sigma_))
    assert np.ptp(model.user_sigmas_) > 0.1
    J, y = row_of(RATINGS, 3)
    shares = model.predict_proba(np.arange(N), qid=[3] * N)
    np.testing.assert_allclose(shares, model.predict_user_proba(J, y), atol=0.05)


def test_free_thresholds_and_noise_maximise_the_evidence():
    rng, items = np.random.default_rng(5), np.arange(60)
    x = rng.normal(size=(60, 1))
    K = GaussianKernel(0.5)(x) + 1e-6 * np.eye(60)
    values = np.linalg.cholesky(K) @ rng.normal(size=60) + 0.6 * rng.normal(size=60)
    codes = np.digitize(values, np.quantile(values, [0.3, 0.7])).astype(float)
    start = ThresholdPrior(np.array([-0.5, 0.0]), np.full(2, 0.25))
    user_fit, likelihood = None, OrdinalLikelihood(start, is_free=True)
    for _ in range(120):  # the level of the thresholds moves slowly
        user_fit = likelihood.fit(Population(np.zeros(60), K, 1.0), items, codes, user_fit)
    R, _ = root_of(K)
    found = np.append(user_fit.free, np.log(user_fit.own_noise))
    assert (np.abs(found - [-0.5, 0.0, 0.0]) < 3.9).all()  # inside the box

    def evidence(theta):
        (lo, hi), at = ends_of(thresholds_of(theta[:-1])), codes.astype(int)
        return propagate(R, Sites.grades(items, lo[at], hi[at], np.exp(theta[-1])), tol=1e-11).log_evidence

    np.testing.assert_allclose(approx_fprime(found, evidence, 1e-5), 0.0, atol=2e-2)


@pytest.mark.long
def test_a_prior_does_not_hold_the_noise_at_the_papers_start():
    """The paper starts from sigma 0.1 without a prior; with one, that value would be a strong prior."""
    rng = np.random.default_rng(0)
    f = rng.multivariate_normal(np.zeros(N), GaussianKernel(0.3)(Z), size=40)
    y = f + 0.8 * rng.normal(size=f.shape)
    item, user = np.tile(np.arange(N), 40), np.repeat(np.arange(40), N)
    model = CollaborativeGP("gaussian", GaussianKernel(0.3), start="kernel", user_scales=False, scale=False)
    model.fit(item, y.ravel(), qid=user, items=np.arange(N), item_features=Z)
    assert 0.7 < model.sigma_ < 0.9
    paper = CollaborativeGP("gaussian", prior_weight=0, user_scales=False, start="kernel", max_iter=0)
    assert paper.fit(item, y.ravel(), qid=user).sigma_ == pytest.approx(0.1)


def test_with_complete_ratings_the_optimum_is_that_of_a_normal_distribution():
    rng = np.random.default_rng(0)
    full = rng.multivariate_normal([1.0, 2.0, 3.0], [[1.0, 0.5, 0.2], [0.5, 1.5, 0.0], [0.2, 0.0, 0.8]], size=60)
    model = CollaborativeGP("gaussian", prior_weight=0.0, max_iter=300, tol=0.0).fit(sparse.csr_array(full))
    total = model.item_covariance_ + model.sigma_**2 * np.eye(3)
    # at convergence, both are averages of users weighted by their scales
    weight = 1.0 / model.user_scales_
    np.testing.assert_allclose(model.item_means_, weight @ full / weight.sum(), atol=1e-3)
    away = full - model.item_means_
    np.testing.assert_allclose(total, (away.T * weight) @ away / len(full), rtol=0.02, atol=5e-3)


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_leaving_out_unrated_items_does_not_change_the_result(weight):
    """Expectation maximisation over all items, and over those that were rated and then back."""
    first = whole = some_population()
    rated = np.unique(RATINGS.indices)
    assert len(rated) == N - 1
    part = first.among(rated)
    for _ in range(5):
        whole = whole.m_step(e_step(GaussianLikelihood(), whole, RATINGS, None, None)[1], first, weight)
        totals = e_step(GaussianLikelihood(), part, RATINGS[:, rated], None, None)[1]
        part = part.m_step(totals, first.among(rated), weight)
    back = part.extended(first, rated)
    np.testing.assert_allclose(back.mean, whole.mean, rtol=1e-6)
    np.testing.assert_allclose(back.covariance, whole.covariance, rtol=1e-5, atol=1e-8)


def test_without_iterations_it_is_gaussian_process_regression():
    model = CollaborativeGP("gaussian", GaussianKernel(0.3), max_iter=0, scale=False).fit(RATINGS, item_features=Z)
    var = 0.5 * Y[SEEN].var()
    K = var * 0.5 * (GaussianKernel(0.3)(Z) + 1.0)
    J, y = row_of(RATINGS, 4)
    G = np.linalg.inv(K[np.ix_(J, J)] + var * np.eye(len(J)))
    mean, std = model.predict(np.arange(N - 1), qid=[4] * (N - 1), return_std=True)
    at = np.arange(N - 1)
    np.testing.assert_allclose(mean, Y[SEEN].mean() + K[at][:, J] @ G @ (y - Y[SEEN].mean()), rtol=1e-9)
    left = np.diagonal(K - K[:, J] @ G @ K[J])[at]
    # up to the scales of this user and of the typical one
    factor = model.user_scales_[4] * model.sigma_**2 / var
    np.testing.assert_allclose(std**2, factor * left, rtol=1e-6)


def test_gradient_and_optimum_of_thresholds():
    threshold_prior = ThresholdPrior(np.array([-1.0, 0.1, -0.3]), np.array([0.5, 0.2, 0.1]))
    rng = np.random.default_rng(0)
    to = rng.integers(0, 4, 30), rng.normal(size=30), 0.5 + rng.random(30)
    free = np.array([-0.8, 0.3, -0.2])
    gradient = approx_fprime(free, lambda t: threshold_prior._loss(t, *to)[0], 1e-6)
    np.testing.assert_allclose(threshold_prior._loss(free, *to)[1], gradient, atol=1e-4)
    best = threshold_prior.fitted(free, *to)
    np.testing.assert_allclose(threshold_prior._loss(best, *to)[1], 0.0, atol=1e-3)
    var = threshold_prior.posterior_var(best, *to)
    assert ((var > 0) & (var <= threshold_prior.var)).all()
    # an unknown user
    nothing = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    np.testing.assert_allclose(threshold_prior.fitted(free, *nothing), threshold_prior.mean, atol=1e-3)


def test_converged_thresholds_maximise_the_evidence():
    threshold_prior = ThresholdPrior(np.array([-1.0, 0.0]), np.array([0.4, 0.3]))
    population = Population(np.zeros(N), GaussianKernel(0.3)(Z) + 0.2, 1.0)
    items, codes = np.arange(10), np.array([0, 1, 2, 1, 1, 0, 2, 2, 1, 1]).astype(float)
    user_fit = OrdinalLikelihood(threshold_prior).converge(population, items, codes)
    R, _ = root_of(population.covariance[:10, :10])

    def objective(free):
        lo, hi = ends_of(thresholds_of(free))
        at = codes.astype(int)
        found = propagate(R, Sites.grades(items, lo[at], hi[at], 1.0), tol=1e-11)
        return found.log_evidence - 0.5 * np.sum((free - threshold_prior.mean) ** 2 / threshold_prior.var)

    np.testing.assert_allclose(approx_fprime(user_fit.free, objective, 1e-5), 0.0, atol=1e-2)


def test_grades_of_a_new_user_agree_with_quadrature():
    model = CollaborativeGP(max_iter=3, random_state=0).fit(RATINGS, item_features=Z)
    shares = model.predict_user_proba([1, 3], [5, 2])
    user_fit = OrdinalLikelihood(model.threshold_prior_).converge(
        model._user_posteriors.population, np.array([1, 3]), np.array([4.0, 1.0])
    )
    S, h = model.item_covariance_, model.item_means_
    at = [1, 3, 7]
    x, w = np.polynomial.hermite_e.hermegauss(40)
    G = np.array(list(itertools.product(x, repeat=3)))
    mass = np.prod(np.array(list(itertools.product(w, repeat=3))), axis=1)
    f = h[at] + G @ np.linalg.cholesky(S[np.ix_(at, at)]).T
    lo, hi = ends_of(thresholds_of(user_fit.free))
    inside = stats.norm.cdf(hi - f[..., None]) - stats.norm.cdf(lo - f[..., None])
    mass = mass * inside[:, 0, 4] * inside[:, 1, 1]
    np.testing.assert_allclose(shares[7], mass @ inside[:, 2] / mass.sum(), atol=5e-3)


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal"])
def test_users_of_fit_and_new_users_get_equal_predictions(likelihood):
    model = CollaborativeGP(likelihood, max_iter=5, random_state=0).fit(RATINGS, item_features=Z)
    J, y = row_of(RATINGS, 3)
    mean, std = model.predict(np.arange(N), qid=[3] * N, return_std=True)
    again, again_std = model.predict_user(J, y, return_std=True)
    atol = 1e-8 if likelihood == "gaussian" else 1e-2
    np.testing.assert_allclose(mean, again, atol=atol)
    np.testing.assert_allclose(std, again_std, atol=atol)
    np.testing.assert_allclose(model.predict_users(RATINGS[[3]])[0], again, atol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(np.arange(N), qid=[3] * N), model.predict_user_proba(J, y), atol=atol
    )
    assert model.evidence_trace_[-1] > model.evidence_trace_[0]
    # an unknown user gets the prior
    mean, std = model.predict([0, 5], qid=["x", "y"], return_std=True)
    np.testing.assert_allclose(mean, model.item_means_[[0, 5]])
    np.testing.assert_allclose(std**2, np.diagonal(model.item_covariance_)[[0, 5]])
    np.testing.assert_array_equal(model.predict_user([], []), model.item_means_)
    mean, std = model.predict([99], return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


@pytest.mark.thin(2)
@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal"])
def test_it_learns_the_shared_prior(likelihood):
    model = CollaborativeGP(likelihood, scale=False, random_state=0).fit(RATINGS, item_features=Z)
    alone = CollaborativeGP(likelihood, max_iter=0, scale=False, random_state=0).fit(RATINGS, item_features=Z)
    user, item = np.nonzero(~SEEN)
    errors = [np.abs(m.predict_level(item, user, "median") - Y[~SEEN]).mean() for m in (model, alone)]
    assert errors[0] < errors[1] < 0.9


def test_threads_change_nothing():
    one, two = (CollaborativeGP(max_iter=2, n_jobs=k, random_state=0).fit(RATINGS) for k in (1, 2))
    np.testing.assert_array_equal(one.item_covariance_, two.item_covariance_)
    np.testing.assert_array_equal(one.predict(ITEM, USER), two.predict(ITEM, USER))


def test_features_are_matched_with_item_ids():
    order = RNG.permutation(N)
    how = {"likelihood": "gaussian", "max_iter": 3, "scale": False, "random_state": 0}
    one = CollaborativeGP(**how).fit(RATINGS, item_features=Z)
    kept = ITEM < N - 1
    shuffled = RNG.permutation(len(ITEM))
    events = NAMES[ITEM[shuffled]], Y[SEEN][shuffled]
    other = CollaborativeGP(**how).fit(*events, qid=USER[shuffled], items=NAMES[order], item_features=Z[order])
    assert kept.all()
    np.testing.assert_array_equal(other.items_, NAMES)
    np.testing.assert_allclose(other.item_covariance_, one.item_covariance_, rtol=1e-8)
    given = CollaborativeGP(kernel="precomputed", **how)
    K = one.kernel_(Z)
    given.fit(*events, qid=USER[shuffled], items=NAMES[order], item_features=K[np.ix_(order, order)])
    np.testing.assert_allclose(given.item_covariance_, one.item_covariance_, rtol=1e-8)
    prior = RNG.normal(size=len(ITEM))
    on_top = CollaborativeGP(**how).fit(NAMES[ITEM], Y[SEEN], qid=USER, items=NAMES, item_features=Z, prior=prior)
    rest = CollaborativeGP(**how).fit(NAMES[ITEM], Y[SEEN] - prior, qid=USER, items=NAMES, item_features=Z)
    np.testing.assert_allclose(on_top.predict(NAMES[ITEM], USER, prior=prior), prior + rest.predict(NAMES[ITEM], USER))


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal"])
def test_a_new_item_is_scored_by_its_features(likelihood):
    model = CollaborativeGP(likelihood, GaussianKernel(0.3), max_iter=4).fit(RATINGS, item_features=Z)
    mean, std = model.predict_new(Z[[2, 6]], users=[5, 0, 77], return_std=True)
    for row, user in enumerate([5, 0, 77]):
        known, known_std = model.predict([2, 6], qid=[user] * 2, return_std=True)
        np.testing.assert_allclose(mean[row], known, atol=1e-4)
        np.testing.assert_allclose(std[row], known_std, atol=1e-3)
    far, far_std = model.predict_new([[50.0, 50.0]], return_std=True)
    assert far.shape == (U, 1)
    assert far_std[5, 0] > std[0].max()


def test_a_saved_model_predicts_the_same(tmp_path):
    for likelihood, is_free in (("gaussian", False), ("ordinal", False), ("ordinal", True)):
        model = CollaborativeGP(likelihood, free_thresholds=is_free, max_iter=2, random_state=0).fit(
            NAMES[ITEM], Y[SEEN], qid=USER, items=NAMES, item_features=Z
        )
        corank.save(model, tmp_path / f"{likelihood} {is_free}")
        again = corank.load(tmp_path / f"{likelihood} {is_free}")
        np.testing.assert_array_equal(again.predict(NAMES, qid=[3] * N), model.predict(NAMES, qid=[3] * N))
        np.testing.assert_array_equal(again.predict_proba(NAMES, qid=[3] * N), model.predict_proba(NAMES, qid=[3] * N))
        np.testing.assert_array_equal(again.predict_new(Z[:2]), model.predict_new(Z[:2]))


def test_users_of_wide_ratings_get_large_scales():
    rng = np.random.default_rng(4)
    wide = np.repeat([0.3, 1.0, 3.0], 10)
    f = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 40))
    truth = np.sqrt(wide)[:, None] * (f + 0.5 * rng.normal(size=f.shape))
    model = CollaborativeGP("gaussian").fit(sparse.csr_array(truth))
    found = np.log(model.user_scales_).reshape(3, 10).mean(axis=1)
    assert (np.diff(found) > 0.5).all()  # shrunken towards each other
    levels = model.predict_proba(np.arange(3), qid=[0, 15, 29])
    np.testing.assert_allclose(levels.sum(axis=1), 1.0)


def test_users_with_one_rating_and_two_grades():
    model = CollaborativeGP(max_iter=3).fit([1, 2, 1, 2], [0, 1, 1, 1], qid=["a", "b", "c", "c"])
    shares = model.predict_proba([1, 2], qid=["a", "b"])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares[0, 0] > shares[1, 0]
    assert model.user_thresholds_.shape == (3, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"item_features": Z[:-1]}, "item_features has 11 rows for 12 columns of X; pass one row for each item"),
        ({"items": NAMES}, "items was given without item_features"),
        (
            {"item_features": np.where(np.arange(N)[:, None] == 2, np.nan, Z)},
            "item_features contains NaN at row 2, column 0; pass",
        ),
        ({"items": NAMES, "item_features": Z}, "items was given with a matrix of ratings"),
        ({"X": NAMES[ITEM], "y": Y[SEEN], "qid": USER, "item_features": Z}, "item_features was given without items"),
        (
            {"X": NAMES[ITEM], "y": Y[SEEN], "qid": USER, "items": NAMES[1:], "item_features": Z[1:]},
            "item 'i00' of X has no row in item_features",
        ),
        (
            {"X": NAMES[ITEM], "y": Y[SEEN], "qid": USER, "items": NAMES[1:], "item_features": Z},
            "items holds 11 distinct ids for 12 rows of item_features",
        ),
        ({"X": NAMES[ITEM], "y": RNG.normal(size=len(ITEM)), "qid": USER}, "takes at most 20"),
        ({"X": NAMES[ITEM], "y": Y[SEEN], "qid": USER, "prior": Y[SEEN]}, "grades are not numbers"),
        ({"X": NAMES[ITEM], "y": Y[SEEN], "qid": USER, "sample_weight": Y[SEEN]}, "all ratings have equal weight"),
    ],
)
def test_bad_input_gets_one_sentence(change, sentence):
    with pytest.raises(InputError, match=sentence):
        CollaborativeGP().fit(**{"X": RATINGS, **change})


def test_bad_prediction_input_gets_one_sentence():
    model = CollaborativeGP(max_iter=1).fit(RATINGS)
    with pytest.raises(InputError, match=r"a rating is 2\.5"):
        model.predict_user([1], [2.5])
    with pytest.raises(InputError, match="fitted without item_features"):
        model.predict_new(Z)
    with pytest.raises(InputError, match="by is 'mean'; pass 'mode' or 'median'"):
        model.predict_level([1], [1], "mean")


def test_features_of_any_scale_give_the_same_model():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 3))
    truth = 3 + rng.normal(size=(15, 3)) @ features.T
    seen = rng.random(truth.shape) < 0.4
    ratings = sparse.csr_array((truth[seen], np.nonzero(seen)), shape=truth.shape)
    scores, new = [], []
    for size in (np.ones(3), np.array([1e6, 1.0, 1e-3])):
        model = CollaborativeGP("gaussian", max_iter=3, random_state=0).fit(ratings, item_features=features * size)
        scores.append(model.predict_users(ratings))
        new.append(model.predict_new(features[:4] * size))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)
    np.testing.assert_allclose(new[0], new[1], rtol=1e-6)
    with pytest.raises(InputError, match="item_features has 2 columns"):
        model.predict_new(features[:, :2])
