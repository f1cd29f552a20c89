"""
The likelihood of votes, and a Gaussian approximation of the posterior of the scores.

A vote of judge j compares item a, shown first, with item b. With η = r_j (s_a − s_b) + β,

    P(a wins), P(tie), P(b wins)  ∝  e^(η/2), e^κ, e^(−η/2)

(Davidson, 1970; without ties it is Bradley and Terry's P(a wins) = 1/(1 + e^−η)). β is the advantage of the first
place and r_j the reliability of the judge: 1 is typical, 0 a coin, below 0 the reverse order. Priors:

    s ~ N(m, Σ),   κ ~ N(−0.7, 1),   β ~ N(0, ½²),   r_j ~ N(1, ω²)

The mode is found by Fisher scoring. Each vote enters by its gradient and information in (η, κ),

    g_η = ½ (y₁ − y₃ − n (p₁ − p₃)),   g_κ = y₂ − n p₂,
    W_ηη = ¼ n (p₁ + p₃ − (p₁ − p₃)²),   W_κκ = n p₂ (1 − p₂),   W_ηκ = −½ n p₂ (p₁ − p₃),

so that votes of the same pair, order and judge are counted first. The reliabilities have a diagonal block, which is
eliminated. A step costs O(M³) for M items and O(n) for n counted cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

KAPPA, KAPPA_SPREAD = -0.7, 1.0
"""Prior of κ: 20 % of the votes between equal items are ties, within a factor of about 2.5."""
SIDE_SPREAD = 0.5
"""Prior standard deviation of β."""
_MAX_STEPS, _TOLERANCE = 100, 1e-9


@dataclass(frozen=True, eq=False)
class VoteCounts:
    """
    Votes counted by pair, order and judge.

    first, second (n,): items; judge (n,): number of the judge, −1 for a judge of reliability 1.
    wins (n, 3): number of votes for the first, for neither and for the second item.
    n_items, n_judges: numbers of items, and of judges with a reliability of their own.
    has_ties, has_sides: whether ties occur, and whether the order in which the items were shown is known.
    """

    first: Integers
    second: Integers
    judge: Integers
    wins: Floats
    n_items: int
    n_judges: int
    has_ties: bool
    has_sides: bool

    @classmethod
    def of(
        cls, first: Integers, second: Integers, outcome: Integers, count: Floats, n_items: int, *,
        judge: Integers | None = None, n_judges: int = 0, has_sides: bool = True,
    ) -> VoteCounts:  # fmt: skip
        """Count votes; `outcome` is 0, 1 or 2 if the first, neither or the second item won."""
        judge = np.full(len(first), -1) if judge is None else judge
        if not has_sides:
            swap = first > second
            first, second = np.where(swap, second, first), np.where(swap, first, second)
            outcome = np.where(swap, 2 - outcome, outcome)
        key = ((judge + 1) * n_items + first) * n_items + second
        cells, i = np.unique(key, return_inverse=True)
        wins = np.bincount(i * 3 + outcome, count, 3 * len(cells)).reshape(-1, 3).astype(np.float64)
        who, pair = np.divmod(cells, n_items * n_items)
        return cls(pair // n_items, pair % n_items, who - 1, wins, n_items, n_judges, bool(wins[:, 1].any()), has_sides)

    @property
    def n_others(self) -> int:
        """Number of κ and β that are learnt."""
        return int(self.has_ties) + int(self.has_sides)


def log_probabilities(eta: Floats, kappa: float) -> Floats:
    """Return the logarithms of P(first wins), P(tie) and P(second wins); κ is −inf without ties."""
    half = 0.5 * np.asarray(eta)
    log_z = log_normaliser(np.asarray(eta), kappa)
    return np.stack([half - log_z, kappa - log_z, -half - log_z], axis=-1)


def log_normaliser(eta: Floats, kappa: float) -> Floats:
    """Return log(e^(η/2) + e^κ + e^(−η/2)) without overflow."""
    size = np.abs(eta)
    ratio = np.exp(-size)
    return np.asarray(0.5 * size + np.log1p(ratio + np.exp(kappa) * np.sqrt(ratio)))


@dataclass(frozen=True, eq=False)
class ScorePrior:
    """
    s ~ N(mean, Σ).

    precision (M, M): Σ⁻¹; log_det: log |Σ|.
    """

    mean: Floats
    precision: Floats
    log_det: float

    @classmethod
    def of(cls, mean: Floats, covariance: Floats) -> ScorePrior:
        """Invert Σ."""
        factor = linalg.cholesky(covariance, lower=True)
        return cls(mean, symmetric_inverse(factor), 2.0 * float(np.log(np.diagonal(factor)).sum()))

    @classmethod
    def independent(cls, n_items: int, tau: float) -> ScorePrior:
        """Return N(0, τ² I)."""
        return cls(np.zeros(n_items), np.eye(n_items) / tau**2, 2.0 * n_items * float(np.log(tau)))


@dataclass(frozen=True, eq=False)
class Mode:
    """
    Mode of the posterior of (s, κ, β, r), and the Gaussian around it.

    s (M,), kappa, beta, r (J,): the mode; κ is −inf without ties.
    r_var (J,): variances of the reliabilities, given the scores.
    factor: lower Cholesky factor of the precision of (s, κ, β), without r.
    log_evidence: log P(votes), up to a constant that depends on neither mean nor Σ.
    """

    s: Floats
    kappa: float
    beta: float
    r: Floats
    r_var: Floats
    factor: Floats
    log_evidence: float

    @property
    def covariance(self) -> Floats:
        """Covariance of (s, κ, β); the scores come first."""
        return symmetric_inverse(self.factor)


def find_mode(counts: VoteCounts, prior: ScorePrior, omega: float, start: Mode | None = None) -> Mode:
    """Find the mode by Fisher scoring with step halving."""
    n, k = counts.n_items, counts.n_others
    others = np.array([KAPPA] * counts.has_ties + [0.0] * counts.has_sides)
    weights = np.array([KAPPA_SPREAD**-2] * counts.has_ties + [SIDE_SPREAD**-2] * counts.has_sides)
    x = np.concatenate([prior.mean, others]) if start is None else np.concatenate([start.s, _others(counts, start)])
    r = np.ones(counts.n_judges) if start is None else start.r

    net, total = counts.wins[:, 0] - counts.wins[:, 2], counts.wins.sum(axis=1)
    n_ties = float(counts.wins[:, 1].sum())

    def value(x: Floats, r: Floats) -> float:
        away, rest = x[:n] - prior.mean, x[n:] - others
        eta, kappa, _ = _linear(counts, x, r)
        fit = float(0.5 * net @ eta - total @ log_normaliser(eta, kappa)) + (kappa * n_ties if n_ties else 0.0)
        penalty = away @ prior.precision @ away + weights @ rest**2 + np.sum((r - 1.0) ** 2) / omega**2
        return fit - 0.5 * float(penalty)

    best = value(x, r)
    for _ in range(_MAX_STEPS):
        g, A, g_r, E, R = _curvature(counts, x, r)
        g[:n] -= prior.precision @ (x[:n] - prior.mean)
        g[n:] -= weights * (x[n:] - others)
        A[:n, :n] += prior.precision
        A[np.arange(n, n + k), np.arange(n, n + k)] += weights
        g_r, R = g_r - (r - 1.0) / omega**2, R + omega**-2
        if len(r):
            scaled = E.multiply(1.0 / R).tocsr()
            A -= (scaled @ E.T).toarray()
            g = g - scaled @ g_r
        factor = linalg.cholesky(A, lower=True)
        step = linalg.cho_solve((factor, True), g)
        step_r = (g_r - E.T @ step) / R if len(r) else g_r
        if float(g @ step) + float(g_r**2 @ (1.0 / R)) < _TOLERANCE * (1.0 + abs(best)):
            break
        size = 1.0
        while (moved := value(x + size * step, r + size * step_r)) < best and size > 1e-6:
            size *= 0.5
        if moved < best:
            break
        x, r, best = x + size * step, r + size * step_r, moved
    log_det = 2.0 * float(np.log(np.diagonal(factor)).sum()) + float(np.log(R * omega**2).sum())
    _, kappa, beta = _linear(counts, x, r)
    return Mode(x[:n], kappa, beta, r, 1.0 / R, factor, best - 0.5 * (prior.log_det + log_det))


def score_gradients(counts: VoteCounts, mode: Mode) -> tuple[Floats, Floats]:
    """Return r g_η for one vote of each outcome (n, 3), which is the gradient in s_first, and r² W_ηη (n,)."""
    x = np.concatenate([mode.s, _others(counts, mode)])
    eta, kappa, _ = _linear(counts, x, mode.r)
    p, r = np.exp(log_probabilities(eta, kappa)), _reliability(counts, mode.r)
    gap = p[:, 0] - p[:, 2]
    pull = r[:, None] * (np.array([0.5, 0.0, -0.5]) - 0.5 * gap[:, None])
    return np.asarray(pull), 0.25 * r**2 * np.maximum(p[:, 0] + p[:, 2] - gap**2, 0.0)


def information(counts: VoteCounts, mode: Mode) -> Floats:
    """Return the Fisher information of all votes about s, shape (M, M)."""
    x = np.concatenate([mode.s, _others(counts, mode)])
    return _curvature(counts, x, mode.r)[1][: counts.n_items, : counts.n_items]


def symmetric_inverse(factor: Floats) -> Floats:
    """Return (L Lᵀ)⁻¹ of a lower triangular L."""
    lower, _ = linalg.lapack.dpotri(factor, lower=1)
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def _others(counts: VoteCounts, mode: Mode) -> Floats:
    return np.array([mode.kappa] * counts.has_ties + [mode.beta] * counts.has_sides)


def _reliability(counts: VoteCounts, r: Floats) -> Floats:
    return np.append(r, 1.0)[counts.judge]  # −1 is the last entry


def _linear(counts: VoteCounts, x: Floats, r: Floats) -> tuple[Floats, float, float]:
    n = counts.n_items
    beta = float(x[-1]) if counts.has_sides else 0.0
    eta = _reliability(counts, r) * (x[counts.first] - x[counts.second]) + beta
    return eta, float(x[n]) if counts.has_ties else -np.inf, beta


def _curvature(counts: VoteCounts, x: Floats, r: Floats) -> tuple[Floats, Floats, Floats, Any, Floats]:
    """Gradient and information of (s, κ, β); gradient of r, information between both, and that of r."""
    n, a, b, wins = counts.n_items, counts.first, counts.second, counts.wins
    rho, delta = _reliability(counts, r), x[a] - x[b]
    eta, kappa, _ = _linear(counts, x, r)
    log_z = log_normaliser(eta, kappa)
    tie, top = np.exp(kappa - log_z), np.exp(0.5 * eta - log_z)
    decided = 1.0 - tie  # p₁ + p₃
    total, gap = wins.sum(axis=1), 2.0 * top - decided
    g_eta, g_kappa = 0.5 * (wins[:, 0] - wins[:, 2] - total * gap), wins[:, 1] - total * tie
    w = 0.25 * total * np.maximum(decided - gap**2, 0.0)
    w_kappa, w_both = total * tie * decided, -0.5 * total * tie * gap

    def at_items(values: Floats) -> Floats:
        return np.asarray(np.bincount(a, values, n) - np.bincount(b, values, n))

    size = n + counts.n_others
    g, A = np.zeros(size), np.zeros((size, size))
    g[:n] = at_items(rho * g_eta)
    across = np.bincount(a * n + b, w * rho**2, n * n).reshape(n, n)
    across = across + across.T
    A[:n, :n] = np.diag(across.sum(axis=1)) - across
    columns = ([(w_both, g_kappa, w_kappa)] if counts.has_ties else []) + ([(w, g_eta, w)] if counts.has_sides else [])
    for index, (with_eta, gradient, own) in enumerate(columns, n):
        A[:n, index] = A[index, :n] = at_items(rho * with_eta)
        g[index], A[index, index] = gradient.sum(), own.sum()
    if counts.n_others == 2:
        A[n, n + 1] = A[n + 1, n] = w_both.sum()
    known = counts.judge >= 0
    j, k = counts.judge[known], counts.n_judges
    g_r, R = (np.bincount(j, part[known], k).astype(np.float64) for part in (g_eta * delta, w * delta**2))
    if not k:
        return g, A, g_r, None, R
    value = (w * rho * delta)[known]
    places = [(a[known], value), (b[known], -value)]
    places += [(np.full(len(j), i), (with_eta * delta)[known]) for i, (with_eta, _, _) in enumerate(columns, n)]
    rows, values = (np.concatenate(part) for part in zip(*places, strict=True))
    E = sparse.csr_array((values, (rows, np.tile(j, len(places)))), shape=(size, k))
    return g, A, g_r, E, R
