"""
Averages of candidates, weighted by the evidence that judged queries give for each.

Let V[q, c] be the metric of candidate c in judged query q, and π_c its prior probability. The Gibbs posterior

    P(c) ∝ π_c exp(β Σ_q V[q, c])

is the distribution that minimises the mean loss Σ_c P(c) (−Σ_q V[q, c]) + KL(P ‖ π)/β (Catoni, 2007). Few queries leave
it near the prior, and many concentrate it on the best candidates; the fusion is the mean of the weights under P.

How much a query says depends on how much paired differences vary between queries: those of a collection with one
relevant document per query vary several times as much as those with dozens of graded ones. With d[q, c] = V[q, c] −
Σ_c π_c V[q, c],

    β = `Prior.evidence` / σ²,    σ² = (Σ_c π_c Σ_q (d[q, c] − d̄_c)² + ν σ₀²) / (n − 1 + ν),

the variance of normal differences with a conjugate prior of ν queries.

Least-squares solutions take part with the values that they have on queries left out of them. Leaving out query q
subtracts β V[q, ·] and uses the solutions without q, so that the values of the whole method on left-out queries cost
little more than one fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from corank.models.fusion.candidates import FAMILIES, Candidates, Features, Prior
from corank.models.fusion.least_squares import EXPERTS, FORM_ALPHA, Squares
from corank.models.fusion.lists import Floats, RetrievedLists, reciprocal_rank
from corank.models.fusion.values import JudgedQueries

MAX_HOLES = 0.1
"""Share of unjudged documents in RRF's top up to which whole lists are evaluated."""
# in long lists, only rows that could be among the first are scored for all candidates
MAX_SCORED, MAX_RANK, MAX_TOP = 300, 30, 60

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Evidence:
    """
    Candidates and learnt weights, and their values in judged queries.

    V (n, C): metric of the candidates.
    U (n, E): metric of each learnt solution in a query that it was not learnt from.
    learnt (d, E): the solutions from all queries.
    without (n, d, E): the solutions without each query.
    solved: the columns of each solution.
    """

    features: Features
    candidates: Candidates
    judged: JudgedQueries
    V: Floats
    U: Floats
    learnt: Floats
    without: Floats
    solved: tuple[tuple[str, ...], ...]
    prior: Prior

    @classmethod
    def of(
        cls,
        features: Features,
        candidates: Candidates,
        judged: JudgedQueries,
        squares: Squares,
        prior: Prior,
        *,
        nonnegative: bool = True,
    ) -> Evidence:
        """Compute all values."""
        n, d = len(judged), len(features.covariance)
        V = judged.shortened(_likely_rows(features, candidates, judged)).ndcg(features.values, candidates.W)
        signs = (True,) if nonnegative else (True, False)
        solvers = [(names, alpha, sign) for names, alpha in EXPERTS.items() for sign in signs]
        solvers += [((next(iter(family.mixture)),), FORM_ALPHA, True) for family in FAMILIES if family.form]
        solvers = solvers if n > 1 else []
        learnt, without, U = np.zeros((d, len(solvers))), np.zeros((n, d, len(solvers))), np.zeros((n, len(solvers)))
        for e, (names, alpha, sign) in enumerate(solvers):
            columns = np.concatenate([features.places(name) for name in names])
            learnt[:, e], without[:, :, e] = squares.solve(columns, alpha, sign)
        for q in range(n if solvers else 0):
            without[q] = features.unit(without[q])
            U[q] = judged.ndcg_of(q, features.values[judged.rows[q]] @ without[q])
        solved = tuple(names for names, _, _ in solvers)
        return cls(features, candidates, judged, V, U, features.unit(learnt), without, solved, prior)

    def __len__(self) -> int:
        return len(self.V)

    @property
    def is_average(self) -> Mask:
        """Which learnt solutions take part in the average; the others only serve as engine forms."""
        return np.array([names in EXPERTS for names in self.solved], dtype=bool)

    @cached_property
    def betas(self) -> Floats:
        """β without each query, and of all queries (n + 1,)."""
        n, rule, learnt = len(self), self.candidates.is_rule, self.is_average
        values = np.hstack([self.V[:, rule], self.U[:, learnt]])
        p = _normalised(self._log_prior(rule, learnt))
        gaps = values - (values @ p)[:, None]
        totals = np.vstack([gaps.sum(axis=0) - gaps, gaps.sum(axis=0)])
        squares = np.vstack([(gaps**2).sum(axis=0) - gaps**2, (gaps**2).sum(axis=0)])
        kept = np.append(np.full(n, n - 1.0), n)[:, None]
        spread = np.maximum(squares - totals**2 / np.maximum(kept, 1.0), 0.0) @ p
        nu = self.prior.noise_queries
        variance = (spread + nu * self.prior.noise**2) / (np.maximum(kept[:, 0] - 1.0, 0.0) + nu)
        return np.asarray(self.prior.evidence / variance)

    def _log_prior(self, rule: Mask, learnt: Mask) -> Floats:
        prior = self.candidates.log_prior[rule]
        odds = self.prior.learnt / (1.0 - self.prior.learnt) / max(int(learnt.sum()), 1)
        return np.append(prior, np.full(int(learnt.sum()), np.logaddexp.reduce(prior) + np.log(odds)))

    def posterior(self, left_out: int | None = None, rule: Mask | None = None, learnt: Mask | None = None) -> Floats:
        """Return probabilities of some candidates, all rules by default, followed by those of learnt solutions."""
        rule = self.candidates.is_rule if rule is None else rule
        learnt = self.is_average if learnt is None else learnt
        values = np.append(self._sums[0][rule], self._sums[1][learnt])
        if left_out is not None:
            values = values - np.append(self.V[left_out, rule], self.U[left_out, learnt])
        return _normalised(self._log_prior(rule, learnt) + self.betas[-1 if left_out is None else left_out] * values)

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        return self.V.sum(axis=0), self.U.sum(axis=0)

    def weights(self, left_out: int | None = None, rule: Mask | None = None, learnt: Mask | None = None) -> Floats:
        """Return the mean weights under the posterior, of all queries or without one."""
        rule = self.candidates.is_rule if rule is None else rule
        learnt = self.is_average if learnt is None else learnt
        solutions, p = (
            self.learnt if left_out is None else self.without[left_out],
            self.posterior(left_out, rule, learnt),
        )
        n_rules = len(p) - int(learnt.sum())
        return np.asarray(self.candidates.W[:, rule] @ p[:n_rules] + solutions[:, learnt] @ p[n_rules:])

    def form_weights(self, form: tuple[str, str | None], left_out: int | None = None) -> tuple[Floats, int]:
        """Return the mean weights of one engine form under the posterior, and the number of its best family."""
        total = self._sums[0] - (0.0 if left_out is None else self.V[left_out])
        evidence = self.candidates.log_prior + self.betas[-1 if left_out is None else left_out] * total
        numbers = [number for number, family in enumerate(FAMILIES) if family.form == form]
        best = max(numbers, key=lambda number: float(np.logaddexp.reduce(evidence[self.candidates.family == number])))
        columns = tuple(FAMILIES[best].mixture)
        learnt = np.array([names == columns for names in self.solved], dtype=bool)
        return self.weights(left_out, self.candidates.family == best, learnt), best

    def left_out_values(self, weights: list[Floats]) -> Floats:
        """Return the metric of each query (n,) with the weights that were learnt without it."""
        rows, values = self.judged.rows, self.features.values
        return np.array([self.judged.ndcg_of(q, values[rows[q]] @ w[:, None])[0] for q, w in enumerate(weights)])


def restricted(candidates: Candidates, sources: Mask) -> Candidates:
    """
    Return the candidates that give the retrievers whose lists were judged at least half their equal share.

    Another retriever orders the judged documents of a list well if what both return is good; on its own list, it would
    bring documents that nobody judged. Condensed lists cannot show that.
    """
    is_fair = candidates.p[:, sources].sum(axis=1) >= 0.5 * sources.mean() - 1e-9
    return replace(candidates, log_prior=np.where(is_fair, candidates.log_prior, -np.inf))


def _likely_rows(features: Features, candidates: Candidates, judged: JudgedQueries) -> list[NDArray[np.int64]]:
    """Return positions, inside each query, of documents that some candidate could put among the first k."""
    flat = features.places("flat")
    is_equal = np.ptp(candidates.p, axis=1) < 1e-12
    equal = candidates.W[:, is_equal]
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
    p = np.exp(log_p - log_p.max())
    return np.asarray(p / p.sum())


def covered(lists: RetrievedLists, is_known: Mask, k: int) -> Mask:
    """
    Return which retrievers' lists were judged, by the share of known documents among their first k.

    A list counts as judged if this share is at least half of the largest one.
    """
    top = (lists.ranks > 0) & (lists.ranks <= k)
    share = (top & is_known[:, None]).sum(axis=0) / np.maximum(top.sum(axis=0), 1)
    return np.asarray(share >= 0.5 * share.max())


def unknown_share(lists: RetrievedLists, is_known: Mask, rrf_k: float, k: int) -> float:
    """
    Return the share of unknown documents among the first k of RRF, the mean over queries.

    Documents that no list has at its top, but all lists have, come up in a fusion. Where nobody judged them, whole
    lists count them as irrelevant, which favours single retrievers over every fusion.
    """
    fused = reciprocal_rank(lists, rrf_k).sum(axis=1)
    ranks = lists.queries.ranks(fused)
    is_top = ranks <= k
    n_queries = len(lists.queries)
    n_top = np.bincount(lists.queries.codes[is_top], minlength=n_queries)
    n_unknown = np.bincount(lists.queries.codes[is_top & ~is_known], minlength=n_queries)
    return float((n_unknown / np.maximum(n_top, 1)).mean())
