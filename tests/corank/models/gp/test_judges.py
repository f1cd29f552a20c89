"""Pairwise answers of several judges, against one joint approximation, sampling and simulated judges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, ndtr

from corank.errors import InputError
from corank.models.gp import judges as module
from corank.models.gp.judges import SIGMAS, JudgeFit, JudgeModel, fit_judges
from corank.models.gp.propagation import propagate, root_of
from corank.models.gp.sites import Sites

N = 4
K = np.array([[1.0, 0.3, 0.1, 0.0], [0.3, 1.2, 0.2, 0.1], [0.1, 0.2, 0.9, 0.0], [0.0, 0.1, 0.0, 1.0]])
S = 0.4 * np.eye(N) + 0.1
ANSWERS = ([[0, 1], [1, 2], [0, 2], [2, 1]], [[1, 0], [0, 2], [0, 1]], [[2, 0], [1, 2]])


@pytest.fixture
def one_noise(monkeypatch):
    """A grid of a single noise, for which the two levels of propagation are those of one."""
    monkeypatch.setattr(module, "SIGMAS", np.array([0.6]))
    monkeypatch.setattr(module, "PRIOR", np.array([1.0]))
    return 0.6


def learnt(n_sweeps=60):
    """The judges of ANSWERS, whose fourth item nobody compared, under the priors K and S."""
    named = np.arange(3)
    judges = [JudgeFit.of(Sites.preferences(pairs, 1.0)) for pairs in ANSWERS]
    part = np.ix_(named, named)
    evidence, judges, A, q = module._swept(K[part], S[part], judges, module.SIGMAS, module.PRIOR, n_sweeps)
    return JudgeModel(K, S, named, tuple(judges), A, q, module.SIGMAS, module.PRIOR, evidence)


def test_two_levels_of_propagation_are_one_over_all_answers(one_noise, monkeypatch):
    monkeypatch.setattr(module, "_STILL", 1e-10)
    model = learnt()
    # g, f_1, f_2 and f_3 at once
    joint = np.kron(np.ones((4, 4)), K) + np.kron(np.diag([0, 1, 1, 1]), S)
    R, _ = root_of(joint)
    pairs = np.concatenate([np.array(pairs) + N * (j + 1) for j, pairs in enumerate(ANSWERS)])
    found = propagate(R, Sites.preferences(pairs, one_noise), tol=1e-11)
    whole = found.posterior(R)
    assert model.log_evidence == pytest.approx(found.log_evidence, abs=1e-6)
    np.testing.assert_allclose(model.overall.mean, whole.mean[:N], atol=1e-5)
    np.testing.assert_allclose(model.overall.covariance, whole.covariance[:N, :N], atol=1e-5)
    for j in range(3):
        own = slice(N * (j + 1), N * (j + 2))
        np.testing.assert_allclose(model.of(j).mean, whole.mean[own], atol=1e-5)
        np.testing.assert_allclose(model.of(j).covariance, whole.covariance[own, own], atol=1e-5)
        # E d dᵀ of the M-step
        D = np.zeros((N, 4 * N))
        D[:, own], D[:, :N] = np.eye(N), -np.eye(N)
        second = np.outer(D @ whole.mean, D @ whole.mean) + D @ whole.covariance @ D.T
        one = model.judges[j]
        across = S[:, one.items]
        np.testing.assert_allclose(S + across @ (np.outer(one.alpha, one.alpha) - one.M) @ across.T, second, atol=1e-5)
        # mutual information of g and an answer, by quadrature over the overall difference
        for a, b in ((0, 1), (1, 3)):
            c = np.zeros((2, 4 * N))
            c[0, [a, b]], c[1, [N * (j + 1) + a, N * (j + 1) + b]] = (1, -1), (1, -1)
            (_, mf), C = c @ whole.mean, c @ whole.covariance @ c.T
            x, w = np.polynomial.hermite_e.hermegauss(60)
            w = w / w.sum()
            slope = C[0, 1] / C[0, 0]
            given = mf + slope * np.sqrt(C[0, 0]) * x
            p = ndtr(given / np.sqrt(C[1, 1] - slope * C[0, 1] + 2 * one_noise**2))
            known = w @ (entr(p) + entr(1 - p))
            information = entr(w @ p) + entr(1 - w @ p) - known
            assert model.gains(j, [[a, b]])[0] == pytest.approx(information, abs=4e-3)


def test_noises_values_and_evidence_agree_with_sampling(monkeypatch):
    monkeypatch.setattr(module, "_STILL", 1e-8)
    model = learnt()
    rng, n = np.random.default_rng(0), 200_000
    g = rng.normal(size=(n, N)) @ np.linalg.cholesky(K).T
    weight, of_noise = np.ones(n), []
    for pairs in ANSWERS:
        f = g + rng.normal(size=(n, N)) @ np.linalg.cholesky(S).T
        a, b = np.array(pairs).T
        each = np.array(
            [module.PRIOR[c] * ndtr((f[:, a] - f[:, b]) / (np.sqrt(2) * s)).prod(axis=1) for c, s in enumerate(SIGMAS)]
        )
        of_noise.append(each)
        weight *= each.sum(axis=0)
    assert model.log_evidence == pytest.approx(np.log(weight.mean()), abs=0.02)
    mean = weight @ g / weight.sum()
    np.testing.assert_allclose(model.overall.mean, mean, atol=0.02)
    cov = (g - mean).T @ ((g - mean) * (weight / weight.sum())[:, None])
    np.testing.assert_allclose(model.overall.covariance, cov, atol=0.05)
    for one, each in zip(model.judges, of_noise, strict=True):
        shares = (each / each.sum(axis=0)) @ weight / weight.sum()
        np.testing.assert_allclose(one.shares, shares, atol=0.02)


def crowd(n_judges, n_answers, n_items, rng, random=()):
    """Judges with values of their own about common ones; those in `random` throw a coin."""
    g = rng.normal(size=n_items)
    answers = []
    for j in range(n_judges):
        f = g + 0.4 * rng.normal(size=n_items)
        pairs = np.array([rng.permutation(n_items)[:2] for _ in range(n_answers)])
        gap = f[pairs[:, 0]] - f[pairs[:, 1]] + 0.4 * rng.normal(size=n_answers)
        first = rng.random(n_answers) < 0.5 if j in random else gap > 0
        answers.append((np.where(first[:, None], pairs, pairs[:, ::-1]), None))
    return g, answers


def test_a_random_judge_gets_a_weight_near_zero():
    rng = np.random.default_rng(1)
    g, answers = crowd(6, 60, 10, rng, random=(2, 5))
    model = fit_judges(np.eye(10), answers)
    careful = [0, 1, 3, 4]
    assert (model.weights[[2, 5]] < 0.1).all()
    assert (model.weights[careful] > 0.5).all()
    pairs = np.column_stack(np.triu_indices(10, 1))
    # nothing is learnt from asking a coin
    assert model.gains(2, pairs).max() < 0.2 * model.gains(0, pairs).max()
    assert np.corrcoef(g, model.overall.mean)[0, 1] > 0.8


@pytest.mark.long
def test_the_model_is_ahead_of_pooling_and_of_each_judge_alone():
    rng = np.random.default_rng(2)
    n, k = 30, 12
    tastes = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=8)
    every = np.column_stack(np.triu_indices(8, 1))
    answers, left_out = [], []
    for f in tastes:
        pairs = rng.permutation(every)
        pairs = np.where((f[pairs[:, 0]] > f[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
        answers.append((pairs[:k], None))
        left_out.append(pairs[k:])

    def right(means):
        return np.mean([np.mean(m[p[:, 0]] > m[p[:, 1]]) for m, p in zip(means, left_out, strict=True)])

    model = fit_judges(np.eye(8), answers)
    alone = [fit_judges(np.eye(8), [one]).of(0).mean for one in answers]
    together = right([model.of(j).mean for j in range(n)])
    assert together > right(alone) + 0.01
    assert together > right([model.overall.mean] * n) + 0.05


def test_weights_count_as_repetitions_and_unnamed_items_keep_their_prior():
    twice = fit_judges(K, [([[0, 1], [0, 1], [1, 2]], None), ([[1, 0]], None)])
    weighted = fit_judges(K, [([[0, 1], [1, 2]], [2.0, 1.0]), ([[1, 0]], None)])
    np.testing.assert_allclose(twice.overall.mean, weighted.overall.mean, atol=1e-10)
    alone = fit_judges(np.eye(3), [([[0, 1]], None), ([[0, 1]], None)])
    assert alone.overall.mean[2] == 0.0
    assert alone.overall.covariance[2, 2] == pytest.approx(1.0)
    assert alone.of(0).covariance[2, 2] == pytest.approx(1.0 + alone.deviation[2, 2])


@pytest.mark.parametrize("answers", [[], [([[0, 1]], None), ([], None)]])
def test_a_judge_without_answers_raises(answers):
    with pytest.raises(InputError, match="pass at least one answer of each judge"):
        fit_judges(np.eye(2), answers)


@pytest.mark.long
def test_judges_who_hardly_agree_are_not_forced_together():
    """The variance of their own values is chosen by evidence, also if it is larger than that of the overall values."""
    rng = np.random.default_rng(4)
    every = np.column_stack(np.triu_indices(8, 1))
    answers = []
    for _ in range(40):
        pairs = rng.permutation(every)[:10]
        f = rng.normal(size=8)
        answers.append((np.where((f[pairs[:, 0]] > f[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1]), None))
    assert np.diagonal(fit_judges(np.eye(8), answers).deviation).mean() > 2.0
    _, alike = crowd(12, 20, 8, rng)
    assert np.diagonal(fit_judges(np.eye(8), alike).deviation).mean() < 1.0
