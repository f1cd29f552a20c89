"""
Averages of candidates, weighted by the evidence that judged queries give for each.

Let V[q, c] be the metric of candidate c in judged query q, and π_c its prior probability. The Gibbs posterior

    P(c | ω) ∝ π_c exp(β Σ_q ω_q V[q, c])

is the distribution that minimises the mean loss Σ_c P(c) (−Σ_q ω_q V[q, c]) + KL(P ‖ π)/β (Catoni, 2007). It is
averaged over random weights ω of the queries, n times Dirichlet(1, ..., 1), as in bagged posteriors (Huggins and
Miller, 2023): candidates whose order depends on single queries stay together, and candidates that differ in the same
way in all queries are told apart by few. Few queries leave the average P near the prior, and many concentrate it on
the best candidates; the fusion is the mean of the weights under P.

How much a query says depends on how much paired differences vary between queries: those of a collection with one
relevant document per query vary several times as much as those with dozens of graded ones. With d[q, c] = V[q, c] −
Σ_c π_c V[q, c],

    β = `Prior.evidence` / σ²,    σ² = (Σ_c π_c Σ_q (d[q, c] − d̄_c)² + ν σ₀²) / (n − 1 + ν),

the variance of normal differences with a conjugate prior of ν queries.

Least-squares solutions take part with the values that they have on queries left out of them. Leaving out query q
gives it the weight 0 and uses the solutions without q, so that the values of the whole method on left-out queries cost
little more than one fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from corank.models.fusion.candidates import ALONE, FAMILIES, SQUARES, Candidates, Features, Prior, Squares
from corank.models.fusion.judged import JudgedQueries
from corank.models.fusion.lists import Floats

# in long lists, only rows that could be among the first are scored for all candidates
MAX_SCORED, MAX_RANK, MAX_TOP = 300, 30, 60
N_BAGS = 40


@dataclass(frozen=True, eq=False)
class Evidence:
    """
    Candidates and learnt weights, and their values in judged queries.

    V (n, C + E): metric of the candidates, and of each learnt solution in a query that it was not learnt from.
    learnt (n + 1, d, E): the solutions without each query, and from all of them.
    log_prior (C + E,): logarithms of prior probabilities.
    bags (N_BAGS, n): random weights of the queries, exponential variables.
    """

    features: Features
    candidates: Candidates
    judged: JudgedQueries
    V: Floats
    learnt: Floats
    log_prior: Floats
    bags: Floats
    prior: Prior

    @classmethod
    def of(
        cls,
        features: Features,
        judged: JudgedQueries,
        squares: Squares,
        prior: Prior,
        shared: float,
        rng: np.random.Generator,
        *,
        sources: NDArray[np.bool_] | None = None,
        nonnegative: bool = True,
    ) -> Evidence:
        """Draw candidates, solve least squares, and compute all values; see `Prior.log` for `shared` and `sources`."""
        n, candidates = len(judged), Candidates.of(features, rng)
        V = judged.shortened(_likely_rows(features, candidates, judged)).ndcg(features.values, candidates.W)
        signs = (True,) if nonnegative else (True, False)
        solved = [
            squares.solve(features.places(*names), alpha, sign)
            for names, alpha in SQUARES.items()
            for sign in signs
            if n > 1
        ]
        learnt = np.zeros((n + 1, len(features.covariance), len(solved)))
        for e, weights in enumerate(solved):
            learnt[:, :, e] = features.unit(weights.T).T
        U = np.zeros((n, len(solved)))
        for q in range(n if solved else 0):
            U[q] = judged.ndcg_of(q, features.values[judged.rows[q]] @ learnt[q])
        log_prior = prior.log(candidates, len(solved), shared, sources)
        bags = rng.exponential(size=(N_BAGS, n))
        return cls(features, candidates, judged, np.hstack([V, U]), learnt, log_prior, bags, prior)

    def __len__(self) -> int:
        return len(self.V)

    @cached_property
    def betas(self) -> Floats:
        """β without each query, and of all queries (n + 1,)."""
        n, p = len(self), _normalised(self.log_prior)
        gaps = self.V - (self.V @ p)[:, None]
        totals = np.vstack([gaps.sum(axis=0) - gaps, gaps.sum(axis=0)])
        squares = np.vstack([(gaps**2).sum(axis=0) - gaps**2, (gaps**2).sum(axis=0)])
        kept = np.append(np.full(n, n - 1.0), n)[:, None]
        spread = np.maximum(squares - totals**2 / np.maximum(kept, 1.0), 0.0) @ p
        nu = self.prior.noise_queries
        variance = (spread + nu * self.prior.noise**2) / (np.maximum(kept[:, 0] - 1.0, 0.0) + nu)
        return np.asarray(self.prior.evidence / variance)

    @cached_property
    def posterior(self) -> Floats:
        """Probabilities (n + 1, C + E) of candidates and learnt solutions without each query, and of all queries."""
        n = len(self)
        P = np.empty((n + 1, self.V.shape[1]))
        for left_out in range(n + 1):
            bags = self.bags * (np.arange(n) != left_out)
            total = bags.sum(axis=1, keepdims=True)
            bags *= (n - (left_out < n)) / np.where(total > 0, total, 1.0)
            P[left_out] = _normalised(self.log_prior + self.betas[left_out] * (bags @ self.V)).mean(axis=0)
        return P

    def weights(self, left_out: int = -1) -> Floats:
        """Return the mean weights under the posterior, of all queries or without one."""
        p, n_rules = self.posterior[left_out], self.candidates.W.shape[1]
        return np.asarray(self.candidates.W @ p[:n_rules] + self.learnt[left_out] @ p[n_rules:])

    def shares(self, form: str, left_out: int = -1) -> tuple[Floats, str]:
        """Return the mean weights of the retrievers in one engine form, and its column, under the posterior."""
        p, family = self.posterior[left_out, : len(self.candidates.p)], self.candidates.family
        numbers = [number for number, item in enumerate(FAMILIES) if item.form == form]
        best = max(numbers, key=lambda number: float(p[family == number].sum()))
        of_form = np.where((family == best) | (family == ALONE), p, 0.0)
        return of_form @ self.candidates.p / of_form.sum(), next(iter(FAMILIES[best].mixture))

    def left_out_values(self, weights: list[Floats]) -> Floats:
        """Return the metric of each query (n,) with the weights that were learnt without it."""
        rows, values = self.judged.rows, self.features.values
        return np.array([self.judged.ndcg_of(q, values[rows[q]] @ w[:, None])[0] for q, w in enumerate(weights)])

    def summary(self) -> str:
        """Return what was averaged, and the families with the largest posterior probability, in words."""
        p = self.posterior[-1]
        n_rules = len(self.candidates.p)
        masses = np.bincount(self.candidates.family, p[:n_rules], ALONE + 1)
        names = [*(family.name for family in FAMILIES), "one retriever alone", "least squares"]
        shares = dict(zip(names, [*masses.tolist(), float(p[n_rules:].sum())], strict=True))
        main = sorted(shares.items(), key=lambda item: -item[1])[:3]
        return f"average of {n_rules} simple and {len(p) - n_rules} learnt fusions: " + ", ".join(
            f"{share:.0%} {name}" for name, share in main if share >= 0.01
        )


def _likely_rows(features: Features, candidates: Candidates, judged: JudgedQueries) -> list[NDArray[np.int64]]:
    """Return positions, inside each query, of documents that some candidate could put among the first k."""
    flat, equal = features.places("flat"), candidates.W[:, candidates.is_equal]
    chosen = []
    for rows in judged.rows:
        if len(rows) <= MAX_SCORED:
            chosen.append(np.arange(len(rows)))
            continue
        values = features.values[rows]
        scores = np.hstack([values @ equal, values[:, flat]])
        n_top = np.repeat([MAX_TOP, MAX_RANK], [equal.shape[1], len(flat)])
        order = np.sort(scores, axis=0)[::-1]
        bound = order[n_top - 1, np.arange(scores.shape[1])]
        chosen.append(np.flatnonzero(((scores >= bound) & (scores > scores.min(axis=0))).any(axis=1)))
    return chosen


def _normalised(log_p: Floats) -> Floats:
    p = np.exp(log_p - log_p.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))
