"""
The expected result of each method on further queries, from few judged ones.

v_qm is the value of method m on query q, out of fold, larger being better. The Bayesian bootstrap (Rubin, 1981) draws
weights w ~ Dirichlet(1, ..., 1) of the n queries; Σ_q w_q v_qm is a draw of the expected value of m. All methods share
w, so differences are paired by query. The largest of several means of few queries is too large on average, and few
queries that agree by chance seem certain. Therefore κ pseudo-queries join the judged ones. On them, methods differ by
b_m, their result on other collections, and differences vary between queries with standard deviation σ:

    μ_m = λ Σ_q w_q v_qm + (1 − λ)(v̿ + b_m + ε_m),    λ = n / (n + κ),    ε_m ~ N(0, σ² / 2κ),

where v̿ is the mean of all methods and queries. For normal differences with mean d̄ and variance s² this is the posterior
of a conjugate model: mean (n d̄ + κ b) / (n + κ), variance (n s² + κ σ²) / (n + κ)². Deviations of μ from its mean are
multiplied by c: the recommended method was selected for its lead, and the model that is fitted to all queries is not
one of those that were evaluated. c was chosen so that stated probabilities hold on collections at hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PSEUDO = 10.0
"""κ: the weight of other collections, in queries. Chosen by ``python -m experiments compare-advice``."""

SIZES = (10, 20, 40, 80)
"""Numbers of queries at which `OFFSETS` were measured."""

OFFSETS: dict[str, tuple[float, float, float, float]] = {
    "columns": (-0.0500, -0.0500, -0.0500, -0.0500),
    "rankrls": (0.0018, 0.0034, 0.0014, -0.0001),
    "lcra": (0.0017, -0.0027, -0.0047, -0.0085),
    "ranking-pursuit": (-0.0126, -0.0105, -0.0089, -0.0047),
    "rankrls-gaussian": (0.0087, 0.0007, 0.0126, 0.0204),
    "lightgbm": (-0.0114, -0.0041, -0.0017, 0.0372),
}
"""b at each of `SIZES`: nDCG@10 minus that of the median learnt method, on five collections, by the same command."""

SPREAD = 0.14
"""σ: standard deviation, between queries, of the difference of two methods, by the same command."""

INFLATION = 1.5
"""c: factor of all deviations, by the same command."""

SURE = 0.95
"""Probability from which a difference counts as settled."""

N_DRAWS = 4000

# normal quantile of `SURE`
_Z = 1.6449

_MOST = 10**6


_LIKE = {
    "ranksvm": "rankrls", "spd": "rankrls", "crr": "rankrls", "view-rankrls": "rankrls", "lambdarank": "rankrls",
    "co-rankrls": "lcra", "co-ranking-pursuit": "ranking-pursuit", "ranksvm-gaussian": "rankrls-gaussian",
    "ordinal-gp": "rankrls-gaussian", "preference-gp": "rankrls-gaussian", "lambdarank-trees": "lightgbm",
}  # fmt: skip
"""Methods that were not measured, and the similar one whose offset they take."""


def offsets_at(n: int) -> dict[str, float]:
    """Return b of each known method for n judged queries, linear in log n between `SIZES`."""
    found = {name: float(np.interp(math.log(max(n, 1)), np.log(SIZES), of)) for name, of in OFFSETS.items()}
    return {**found, **{name: found[other] for name, other in _LIKE.items()}}


@dataclass(frozen=True, eq=False)
class Expectation:
    """Expected results of methods."""

    names: tuple[str, ...]  # the methods
    means: Floats  # μ of each, shape (n_methods,)
    draws: Floats  # from the distribution of the expected values, shape (n_draws, n_methods)
    values: Floats  # of each judged query, shape (n_queries, n_methods)
    offsets: Floats  # b, with mean 0
    pseudo: float  # κ; 0 for no prior

    @classmethod
    def of(
        cls,
        values: Mapping[str, Floats],
        offsets: Mapping[str, float],
        rng: np.random.Generator,
        pseudo: float = PSEUDO,
    ) -> Expectation:
        """Compute the distribution of the expected values."""
        names = tuple(values)
        V = np.column_stack([values[name] for name in names])
        V = V[~np.isnan(V).any(axis=1)]
        n = len(V)
        b = np.array([offsets.get(name, 0.0) for name in names])
        b -= b.mean()
        rate = n / (n + pseudo)
        prior = V.mean() + b
        draws = rate * (rng.dirichlet(np.ones(n), N_DRAWS) @ V)
        if pseudo > 0.0:
            noise = SPREAD / math.sqrt(2.0 * pseudo) * rng.standard_normal((N_DRAWS, len(names)))
            draws += (1.0 - rate) * (prior + noise)
        means = rate * V.mean(axis=0) + (1.0 - rate) * prior
        return cls(names, means, means + INFLATION * (draws - means), V, b, pseudo)

    def difference(self, first: str, second: str) -> float:
        """Return the expected lead of the first method over the second."""
        a, b = (self.names.index(name) for name in (first, second))
        return float(self.means[a] - self.means[b])

    def p_above(self, first: str, second: str, margin: float = 0.0) -> float:
        """Return the probability that the first method leads by more than a margin; ties count half."""
        a, b = (self.names.index(name) for name in (first, second))
        lead = self.draws[:, a] - self.draws[:, b] - margin
        return float(np.mean(lead > 0.0) + 0.5 * np.mean(lead == 0.0))

    def n_needed(self, first: str, second: str) -> int | None:
        """
        Return how many judged queries would make a lead of the first method probable (`SURE`).

        Mean and standard deviation s of the paired difference are assumed to stay as they are: the smallest N above n
        with (N d̄ + κ b) / √(N s² + κ σ²) ≥ c z, by the normal approximation. Returns: None if the first does not lead
        on the judged queries, or if N is above a million.
        """
        a, b = (self.names.index(name) for name in (first, second))
        d = self.values[:, a] - self.values[:, b]
        if d.mean() <= 0.0 or len(d) < 2:
            return None
        mean, s2 = float(d.mean()), float(d.var(ddof=1))
        prior, noise = self.pseudo * float(self.offsets[a] - self.offsets[b]), self.pseudo * SPREAD**2

        def is_enough(n: int) -> bool:
            return n * mean + prior >= INFLATION * _Z * math.sqrt(n * s2 + noise)

        low, high = len(d), _MOST  # the judged ones were not enough
        if not is_enough(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high
