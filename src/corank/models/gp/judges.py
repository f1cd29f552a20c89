"""
Pairwise answers of many judges: what each judge prefers, what they prefer overall, and how noisy each judge is.

    g ~ N(0, K)                                  values of the items overall
    f_j = g + d_j,  d_j ~ N(0, Σ)                values for judge j; all judges share g and Σ
    P(a ≻ b | j) = Φ((f_j(a) − f_j(b)) / (√2 σ_j))

the collaborative pairwise likelihood that S. Yu, K. Yu and Tresp (2005) leave to future work, with a noise per judge.
σ_j takes the values of a grid, the largest of which is a judge who answers at random, with probabilities π. The grid is
in standard deviations of f_j, √(1 + ρ) where the initial Σ is ρK, so that ρ does not change the relative noise.

Inference is expectation propagation at two levels. Without judge j, the overall values are N(h, V); then f_j ~ N(h, P),
P = Σ + V, and expectation propagation over the answers of j gives α_c, M_c and Z_c for each σ_c of the grid. With
r_c ∝ π_c Z_c, the posterior of f_j is matched by its first two moments, h + P α and P − P M P:

    α = Σ_c r_c α_c,    M = Σ_c r_c (M_c − α_c α_cᵀ) + α αᵀ,

and the message of judge j about g is exp(−½ gᵀQg + qᵀg), Q = (I − MV)⁻¹M, q = Qh + (I − MV)⁻¹α. Sweeps over judges
repeat this until the messages converge. With a single σ the fixed point is that of expectation propagation over all
answers at once.

Expectation maximisation learns Σ and π: Σ' = (w ρK + Σ_j E d_j d_jᵀ)/(w + n) for n judges, with
E d_j d_jᵀ = Σ + Σ(ααᵀ − M)Σ and an inverse-Wishart prior that counts as w judges, one for each item. ρ is the most
probable value of a grid. A judge with k answers costs O(k³) and the overall values O(N³) per sweep, for N compared
items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from corank.errors import InputError
from corank.models.gp.process import Posterior
from corank.models.gp.propagation import Approximation, propagate, root_of
from corank.models.gp.questions import pair_values
from corank.models.gp.sites import Sites
from corank.models.gp.users import Population

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SIGMAS = np.array([0.06, 0.15, 0.4, 1.0, 30.0])
"""Noises σ_c of a judge, in standard deviations of f_j; the last one stands for random answers."""
PRIOR = np.array([0.2, 0.3, 0.28, 0.15, 0.07])
"""Initial π."""
# number of judges that the initial π counts as
_PRIOR_WEIGHT = 4.0
# ρ: candidates of the variance of d_j in units of that of g, compared on random judges with about _MANY answers in all
_RHOS, _MANY = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), 2000
# ρ is log-normal: its median, and the standard deviation of log ρ
_RHO, _RHO_SPREAD = 0.3, 1.2
# sweeps over the answers of a judge, and the change at which they end
_SWEEPS, _TOLERANCE = 60, 1e-5
# sweeps over judges before an M-step and at the end, and the change of the overall means at which they end
_OUTER, _STILL = 20, 1e-4


@dataclass(frozen=True, eq=False)
class JudgeFit:
    """
    The answers of one judge under one prior.

    items (k,), sites: the items that the judge compared, and the answers, which name positions in `items`.
    """

    items: Integers
    sites: Sites
    alpha: Floats  # alpha (k,), M (k, k): the posterior of f_j, see above
    M: Floats
    Q: Floats  # Q (k, k), q (k,): the message about g
    q: Floats
    shares: Floats  # (G,): r, the probabilities of the noises
    log_z: float  # log Σ_c π_c Z_c minus that of the message
    start: tuple[tuple[Floats, Floats], ...]  # τ and ν for each noise

    @classmethod
    def of(cls, sites: Sites) -> JudgeFit:
        """A judge whose answers were not used yet."""
        items, named = sites.compacted()
        k = len(items)
        zeros = tuple((np.zeros(len(named)), np.zeros(len(named))) for _ in SIGMAS)
        return cls(items, named, np.zeros(k), np.zeros((k, k)), np.zeros((k, k)), np.zeros(k), PRIOR, 0.0, zeros)

    def updated(self, m: Floats, V: Floats, S: Floats, sigmas: Floats, prior: Floats) -> JudgeFit:
        """
        Find the posterior of the judge, and the message.

        S (k, k): Σ at `items`. sigmas, prior (G,): the grid of noises, and π.
        """
        h, V = without(m, V, self.Q, self.q)
        P = S + V
        fits = [answers_under(self.sites, sigma, h, P, s) for sigma, s in zip(sigmas, self.start, strict=True)]
        log_joint = np.log(prior) + np.array([fit.log_evidence for _, _, fit in fits])
        log_z = float(logsumexp(log_joint))
        r = np.exp(log_joint - log_z)
        alphas = np.array([of_sigma for of_sigma, _, _ in fits])
        alpha = r @ alphas
        M = (
            np.tensordot(r, np.array([of_sigma for _, of_sigma, _ in fits]), 1)
            - (alphas.T * r) @ alphas
            + np.outer(alpha, alpha)
        )
        # a mixture of noises may be wider than the prior in some direction: then the message says nothing there
        W = np.linalg.solve(np.eye(len(h)) - M @ V, M)
        values, U = np.linalg.eigh(0.5 * (W + W.T))
        Q = (U * np.maximum(values, 0.0)) @ U.T
        q = Q @ h + alpha + Q @ V @ alpha
        log_z -= _log_normaliser(h, V, Q, q)
        start = tuple((fit.tau, fit.nu) for _, _, fit in fits)
        return replace(self, alpha=alpha, M=M, Q=Q, q=q, shares=r, log_z=log_z, start=start)


def answers_under(
    sites: Sites, sigma: float, h: Floats, P: Floats, start: tuple[Floats, Floats]
) -> tuple[Floats, Floats, Approximation]:
    """Return α, M and the posterior of one judge whose values are N(h, P) before these answers."""
    R, _ = root_of(P)
    lo, noise = h[sites.right] - h[sites.left], np.full(len(sites), 2.0 * sigma**2)
    fit = propagate(R, replace(sites, lo=lo, noise=noise), start=start, max_sweeps=_SWEEPS, tol=_TOLERANCE, quiet=True)
    return *fit.posterior_weights(R), fit


def without(m: Floats, V: Floats, Q: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of g without a message, from those with it."""
    cavity = np.linalg.solve(np.eye(len(m)) - V @ Q, V)
    cavity = 0.5 * (cavity + cavity.T)
    return m + cavity @ (Q @ m - q), cavity


def _log_normaliser(h: Floats, V: Floats, Q: Floats, q: Floats) -> float:
    """log ∫ N(g; h, V) exp(−½ gᵀQg + qᵀg) dg."""
    B = np.eye(len(h)) + V @ Q
    t = q - Q @ h
    return float(-0.5 * h @ Q @ h + q @ h + 0.5 * t @ np.linalg.solve(B, V @ t) - 0.5 * np.linalg.slogdet(B)[1])


@dataclass(frozen=True, eq=False)
class JudgeModel:
    """What the answers of all judges say; see `corank.models.gp.judges`."""

    K: Floats  # K, deviation: prior covariance of g, and Σ
    deviation: Floats
    named: Integers  # the items that were compared; judges name positions in this list
    judges: tuple[JudgeFit, ...]  # one entry per judge
    A: Floats  # A, q: sums of the messages about g at `named`
    q: Floats
    sigmas: Floats  # sigmas, noise_prior: the grid of noises, and π, their probabilities
    noise_prior: Floats
    log_evidence: float  # log P(answers)

    @property
    def overall(self) -> Posterior:
        """The joint Gaussian of g over all items."""
        return self._rest(-1)

    @property
    def weights(self) -> Floats:
        """Weight of each judge: the expected share of the variance of f_j + noise that is not noise, 0 to 1."""
        var = float(np.mean(np.diagonal(self.K) + np.diagonal(self.deviation)))
        return np.array([fitted.shares @ (var / (var + self.sigmas**2)) for fitted in self.judges])

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise of an unknown judge who does not answer at random."""
        return float(np.sqrt(self.noise_prior[:-1] @ self.sigmas[:-1] ** 2 / self.noise_prior[:-1].sum()))

    def of(self, judge: int) -> Posterior:
        """Return the joint Gaussian of f_j over all items."""
        rest = self._rest(judge)
        P = self.deviation + rest.covariance
        if judge < 0:
            return Posterior(rest.mean, P)
        fitted = self.judges[judge]
        across = P[:, self.named[fitted.items]]
        return Posterior(rest.mean + across @ fitted.alpha, P - across @ fitted.M @ across.T)

    def gains(self, judge: int, pairs: ArrayLike) -> Floats:
        """
        Return the mutual information of g and a judge's answers to pairs of items, in nats.

        Given the overall difference, the answer depends on the rest of the judge's own difference and on the noise, so
        that both count as noise.
        """
        rest, posterior, overall = self._rest(judge), self.of(judge), self.overall
        C, shares = rest.covariance, self.noise_prior
        if judge >= 0:
            fitted = self.judges[judge]
            J, shares = self.named[fitted.items], fitted.shares
            C = C - C[:, J] @ fitted.M @ (self.deviation + C)[J]
        a, b = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
        (mean, var), (_, of_g) = (
            posterior.differences(np.column_stack([a, b])),
            overall.differences(np.column_stack([a, b])),
        )
        both = C[a, a] + C[b, b] - C[a, b] - C[b, a]
        explained = np.minimum(both**2 / np.maximum(of_g, 1e-300), var)
        total = np.zeros(len(a))
        for share, sigma in zip(shares, self.sigmas, strict=True):
            scale = var - explained + 2.0 * sigma**2
            total += share * pair_values(mean / np.sqrt(scale), explained / scale, 1.0, "bald")
        return total

    def _rest(self, judge: int) -> Posterior:
        """The joint Gaussian of g over all items without the message of a judge; with all messages for −1."""
        A, q = self.A.copy(), self.q.copy()
        if judge >= 0:
            fitted = self.judges[judge]
            A[np.ix_(fitted.items, fitted.items)] -= fitted.Q
            q[fitted.items] -= fitted.q
        across = self.K[:, self.named]
        M = np.linalg.solve(np.eye(len(q)) + A @ across[self.named], A)
        # mean of g at the named items: K q − K M K q
        Kq = across[self.named] @ q
        return Posterior(across @ (q - M @ Kq), self.K - across @ (0.5 * (M + M.T)) @ across.T)


def fit_judges(K: ArrayLike, answers: Sequence[tuple[ArrayLike, ArrayLike | None]], *, max_iter: int = 5) -> JudgeModel:
    """Learn from the pairwise answers of several judges."""
    K = np.asarray(K, dtype=np.float64)
    if not answers or not all(len(np.asarray(pairs)) for pairs, _ in answers):
        raise InputError("answers has no judge, or a judge without answers; pass at least one answer of each judge.")
    sites = [Sites.preferences(pairs, 1.0, weight) for pairs, weight in answers]
    named = np.unique(np.concatenate([np.concatenate([site.left, site.right]) for site in sites]))
    places = np.full(len(K), -1)
    places[named] = np.arange(len(named))
    judges = [JudgeFit.of(replace(site, left=places[site.left], right=places[site.right])) for site in sites]
    prior = K[np.ix_(named, named)]
    share = min(1.0, _MANY / sum(len(site) for site in sites))
    some = [judges[number] for number in np.random.default_rng(0).permutation(len(judges))[: ceil(share * len(judges))]]

    def posterior_of(rho: float) -> float:
        evidence = _swept(prior, rho * prior, some, SIGMAS * sqrt(1.0 + rho), PRIOR, 3)[0]
        return evidence - 0.5 * (log(rho / _RHO) / _RHO_SPREAD) ** 2

    rho = max(_RHOS, key=posterior_of)
    S, sigmas, pi, n, w = rho * prior, SIGMAS * sqrt(1.0 + rho), PRIOR, len(judges), float(len(named))
    for _ in range(max_iter):
        _, judges, _, _ = _swept(prior, S, judges, sigmas, pi, 1)
        G = np.zeros_like(S)
        for fitted in judges:
            G[np.ix_(fitted.items, fitted.items)] += np.outer(fitted.alpha, fitted.alpha) - fitted.M
        S = (w * rho * prior + n * S + S @ G @ S) / (w + n)
        S = 0.5 * (S + S.T)
        pi = (_PRIOR_WEIGHT * PRIOR + np.sum([fitted.shares for fitted in judges], axis=0)) / (_PRIOR_WEIGHT + n)
    log_evidence, judges, A, q = _swept(prior, S, judges, sigmas, pi, _OUTER)
    first = Population(np.zeros(len(K)), rho * K, 1.0)
    deviation = Population(np.zeros(len(named)), S, 1.0).extended(first, named).covariance
    return JudgeModel(K, deviation, named, tuple(judges), A, q, sigmas, pi, log_evidence)


def _swept(
    K: Floats, S: Floats, judges: Sequence[JudgeFit], sigmas: Floats, prior: Floats, n_sweeps: int
) -> tuple[float, list[JudgeFit], Floats, Floats]:
    """Sweep over judges; return log P(answers), the judges, and the sums of their messages."""
    judges = list(judges)
    A, q = np.zeros_like(K), np.zeros(len(K))
    for fitted in judges:
        A[np.ix_(fitted.items, fitted.items)] += fitted.Q
        q[fitted.items] += fitted.q
    m, V = _overall(K, A, q)
    for _ in range(n_sweeps):
        before = m
        for number, fitted in enumerate(judges):
            J = fitted.items
            new = fitted.updated(m[J], V[np.ix_(J, J)], S[np.ix_(J, J)], sigmas, prior)
            A[np.ix_(J, J)] += new.Q - fitted.Q
            q[J] += new.q - fitted.q
            judges[number] = new
            m, V = _overall(K, A, q)
        if np.abs(m - before).max() < _STILL:
            break
    return _log_normaliser(np.zeros(len(K)), K, A, q) + sum(fitted.log_z for fitted in judges), judges, A, q


def _overall(K: Floats, A: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of g ~ N(0, K) with the message A, q."""
    V = np.linalg.solve(np.eye(len(K)) + K @ A, K)
    V = 0.5 * (V + V.T)
    return V @ q, V
