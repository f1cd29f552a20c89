"""
Averages of candidates, weighted by the evidence that judged queries give for each.

Let V[q, c] be the metric of candidate c in judged query q, and π_c its prior probability. The Gibbs posterior

    P(c) ∝ π_c exp(β Σ_q V[q, c])

is the distribution that minimises the mean loss Σ_c P(c) (−Σ_q V[q, c]) + KL(P ‖ π)/β (Catoni, 2007). Few queries leave
it near the prior, and many concentrate it on the best candidates; the fusion is the mean of the weights under P.
Least-squares solutions take part with the values that they have on queries left out of them. Leaving out query q
subtracts β V[q, ·] and uses the solutions without q, so that the values of the whole method on left-out queries cost
little more than one fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.models.fusion.candidates import FAMILIES, Candidates, Features
from corank.models.fusion.least_squares import EXPERTS, FORM_ALPHA, Squares
from corank.models.fusion.lists import Floats, RetrievedLists, reciprocal_rank
from corank.models.fusion.values import JudgedQueries

BETA, BETA_CONDENSED = 10.0, 5.0
"""β, and β of condensed lists, which say less about the top of whole lists."""
MAX_HOLES = 0.1
"""Share of unjudged documents in RRF's top up to which whole lists are evaluated."""
LEARNT = 0.35
"""Prior probability of all least-squares solutions together."""
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
    beta: float

    @classmethod
    def of(
        cls,
        features: Features,
        candidates: Candidates,
        judged: JudgedQueries,
        squares: Squares | None,
        beta: float,
        *,
        nonnegative: bool = True,
    ) -> Evidence:
        """Compute all values; without `squares` nothing is learnt by least squares."""
        n, d = len(judged), len(features.covariance)
        V = judged.shortened(_likely_rows(features, candidates, judged)).ndcg(features.values, candidates.W)
        signs = (True,) if nonnegative else (True, False)
        solvers = [(names, alpha, sign) for names, alpha in EXPERTS.items() for sign in signs]
        solvers += [((next(iter(family.mixture)),), FORM_ALPHA, True) for family in FAMILIES if family.form]
        solvers = solvers if squares is not None and n > 1 else []
        learnt, without, U = np.zeros((d, len(solvers))), np.zeros((n, d, len(solvers))), np.zeros((n, len(solvers)))
        for e, (names, alpha, sign) in enumerate(solvers):
            assert squares is not None
            columns = np.concatenate([features.places(name) for name in names])
            learnt[:, e], without[:, :, e] = squares.solve(columns, alpha, sign)
        for q in range(n if solvers else 0):
            without[q] = features.unit(without[q])
            U[q] = judged.ndcg_of(q, features.values[judged.rows[q]] @ without[q])
        solved = tuple(names for names, _, _ in solvers)
        return cls(features, candidates, judged, V, U, features.unit(learnt), without, solved, beta)

    def __len__(self) -> int:
        return len(self.V)

    @property
    def is_average(self) -> Mask:
        """Which learnt solutions take part in the average; the others only serve as engine forms."""
        return np.array([names in EXPERTS for names in self.solved], dtype=bool)

    def posterior(self, is_kept: Mask, rule: Mask | None = None, learnt: Mask | None = None) -> Floats:
        """Return probabilities of some candidates, all rules by default, followed by those of learnt solutions."""
        rule = self.candidates.is_rule if rule is None else rule
        learnt = self.is_average if learnt is None else learnt
        prior = self.candidates.log_prior[rule]
        log_p = prior + self.beta * self.V[np.ix_(is_kept, rule)].sum(axis=0)
        if learnt.any():
            share = np.logaddexp.reduce(prior)
            mass = share + np.log(LEARNT / (1.0 - LEARNT) / learnt.sum())
            log_p = np.concatenate([log_p, mass + self.beta * self.U[np.ix_(is_kept, learnt)].sum(axis=0)])
        return _normalised(log_p)

    def weights(self, left_out: int | None = None, rule: Mask | None = None, learnt: Mask | None = None) -> Floats:
        """Return the mean weights under the posterior, of all queries or without one."""
        rule = self.candidates.is_rule if rule is None else rule
        learnt = self.is_average if learnt is None else learnt
        is_kept = np.arange(len(self)) != (-1 if left_out is None else left_out)
        solutions = self.learnt if left_out is None else self.without[left_out]
        return np.hstack([self.candidates.W[:, rule], solutions[:, learnt]]) @ self.posterior(is_kept, rule, learnt)

    def form_weights(self, form: tuple[str, str | None], left_out: int | None = None) -> tuple[Floats, int]:
        """Return the mean weights of one engine form under the posterior, and the number of its best family."""
        is_kept = np.arange(len(self)) != (-1 if left_out is None else left_out)
        evidence = self.candidates.log_prior + self.beta * self.V[is_kept].sum(axis=0)
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
    Return the candidates that give the retrievers whose lists were judged at least their equal share of the weight.

    Inside the judged top of a list, its own scores hardly vary: judgements of these documents say how to weigh the
    other retrievers against each other, but make the judged one look worse than it is.
    """
    m = len(sources)
    is_fair = candidates.p[:, sources].sum(axis=1) >= sources.sum() / m - 1e-9
    log_prior = np.where(is_fair, candidates.log_prior, -np.inf)
    return Candidates(candidates.W, candidates.p, candidates.family, log_prior)


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
