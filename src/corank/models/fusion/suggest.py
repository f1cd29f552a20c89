"""
Which documents to judge next, so that a fusion is chosen well.

Let D_b(d) = 1/log₂(1 + rank) be the discount of document d in the first k of fusion b, 0 below. Two fusions differ in
DCG by Σ_d g(d) (D_b(d) − D_c(d)), so a grade matters as far as plausible fusions place its document differently
(minimal test collections; Carterette, Allan and Sitaraman, 2006). The plausible fusions are the learnt one, the same
with the weight of one retriever halved or doubled, RRF, the mean of min-max scores, and each retriever alone. p_b is
the probability that b is the best of them on further queries, given the judged ones and a few pseudo-queries on which
all are equal. The value of a document is

    v(d) = Σ_b p_b D_b(d)² − (Σ_b p_b D_b(d))² ,

and that of a query is the sum over its unjudged documents. The strategy "queries" takes whole queries, the most
valuable first, and in each of them all documents that some plausible fusion places among the first k; each was chosen
with probability 1. (A pool of the first k of every list alone favours single retrievers, since documents that fusions
lift from lower ranks would count as irrelevant.) The strategy "sample" draws single documents of all queries without
replacement, with probabilities π(d) = min(1, c v(d)), c such that Σ π = n (systematic sampling); then Σ_d g(d) D_b(d) /
π(d) over the drawn documents estimates DCG without bias. ``python benchmarks/bench_fusion_suggest.py`` compares both
with top-k pools.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, suggest_names
from corank.models.fusion.definition import FusionDefinition
from corank.models.fusion.judged import JudgedQueries, discounts, top_rows
from corank.models.fusion.lists import RetrievedLists
from corank.models.fusion.report import alone, mean_of_scores
from corank.parameters import FUSION_STRATEGIES

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MIN_FACTOR, MAX_FACTOR = 0.5, 2.0
ROUNDING = 1e-12
PSEUDO, SPREAD, INFLATION, N_DRAWS = 7.5, 0.129, 1.75, 4000
"""Number of pseudo-queries, standard deviation of a difference of two fusions on them, factor of deviations, draws."""
UNKNOWN = 0.1
"""Probability that the judged queries say nothing, so that no fusion is ever excluded."""


class QueryValue(NamedTuple):
    """A query: its id, the sum of the values of its unjudged documents, and how many there are to judge."""

    query: str
    value: float
    n_documents: int


@dataclass(frozen=True, eq=False)
class FusionSuggestions:
    """Documents to judge, by query."""

    rows: Integers
    probabilities: Floats
    reasons: tuple[str, ...]
    queries: tuple[QueryValue, ...]  # further queries worth judging, the most valuable first


def plausible_fusions(definition: FusionDefinition) -> list[FusionDefinition]:
    """Return the learnt fusion, variants of its weights, and the simple rules."""
    names = definition.retrievers
    variants = [
        replace(
            definition,
            terms=tuple(
                replace(term, weight=term.weight * (factor if term.retriever == name else 1.0))
                for term in definition.terms
            ),
        )
        for name in names
        for factor in (MIN_FACTOR, MAX_FACTOR)
    ]
    rules = [FusionDefinition.rrf(names), mean_of_scores(names), *(alone(names, name) for name in names)]
    return [definition, *variants, *rules]


def document_values(
    definition: FusionDefinition, lists: RetrievedLists, y: Floats, k: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return v of every document, and whether a plausible fusion places it among the first k."""
    scores = np.column_stack([rule.score_lists(lists) for rule in plausible_fusions(definition)])
    p = _probabilities(scores, lists, y, k, rng)
    D = np.zeros_like(scores)
    for q in range(len(lists.queries)):
        rows = lists.queries.order[lists.queries.starts[q] : lists.queries.starts[q + 1]]
        top = top_rows(scores[rows], k)
        D[rows[top], np.arange(scores.shape[1])] = discounts(len(top))[:, None]
    spread = D**2 @ p - (D @ p) ** 2
    return np.where(spread > ROUNDING, spread, 0.0), np.asarray((D > 0.0).any(axis=1))


def _probabilities(scores: Floats, lists: RetrievedLists, y: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Return the probability of each fusion to be the best, mixed with equal ones."""
    judged, equal = JudgedQueries.of(y, lists.queries, k, None), np.full(scores.shape[1], 1.0 / scores.shape[1])
    if len(judged) < 2:
        return equal
    values = judged.ndcg(scores)
    (n, m), mean = values.shape, values.mean(axis=0)
    draws = rng.standard_normal((N_DRAWS, n)) @ (values - mean)
    draws += np.sqrt(PSEUDO / 2.0) * SPREAD * rng.standard_normal((N_DRAWS, m))
    results = (n * mean + PSEUDO * mean.mean() + INFLATION * draws) / (n + PSEUDO)
    is_best = results >= results.max(axis=1, keepdims=True)
    p = (is_best / is_best.sum(axis=1, keepdims=True)).mean(axis=0)
    return np.asarray((1.0 - UNKNOWN) * p + UNKNOWN * equal)


def inclusion_probabilities(values: Floats, n: int) -> Floats:
    """
    Return π = min(1, c v) with Σ π = n, or 1 for all positive values if there are no more than n.

    >>> inclusion_probabilities(np.array([8.0, 1.0, 1.0, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    probabilities = np.where(values > 0, 1.0, 0.0)
    is_free = values > 0
    while is_free.sum() and (budget := n - int((~is_free & (values > 0)).sum())) < is_free.sum():
        share = np.where(is_free, budget * values / values[is_free].sum(), 0.0)
        probabilities = np.where(is_free, share, probabilities)
        above = is_free & (share >= 1.0)
        if not above.any():
            break
        probabilities[above], is_free = 1.0, is_free & ~above
    return probabilities


def draw(probabilities: Floats, rng: np.random.Generator) -> Integers:
    """Draw rows without replacement with these probabilities: systematic sampling in random order."""
    order = rng.permutation(np.flatnonzero(probabilities > 0))
    total = np.cumsum(probabilities[order])
    ticks = np.floor(np.concatenate([[0.0], total]) + rng.uniform() + 1e-9)
    return np.asarray(order[np.diff(ticks) > 0])


def suggest_for_fusion(
    definition: FusionDefinition, lists: RetrievedLists, y: Floats, n: int, *, strategy: str = "queries", k: int = 10,
    random_state: int = 0,
) -> FusionSuggestions:  # fmt: skip
    """Choose at most n unjudged documents to judge, and further queries."""
    if strategy not in FUSION_STRATEGIES:
        raise InputError(f"the strategy is {strategy!r}; {suggest_names(strategy, list(FUSION_STRATEGIES))}.")
    rng = np.random.default_rng(random_state)
    values, is_placed = document_values(definition, lists, y, k, rng)
    values = np.where(np.isnan(y), values, 0.0)
    codes, n_queries = lists.queries.codes, len(lists.queries)
    is_pooled = np.isnan(y) & is_placed
    total = np.bincount(codes, weights=values, minlength=n_queries)
    count = np.bincount(codes, weights=is_pooled, minlength=n_queries).astype(np.int64)
    order = [q for q in np.argsort(-total, kind="stable").tolist() if total[q] > 0 and count[q]]
    if strategy == "sample":
        probabilities = inclusion_probabilities(values, n)
        rows = draw(probabilities, rng)
        rows = rows[np.lexsort((-values[rows], codes[rows]))]
    else:
        probabilities, room = np.ones(len(y)), n
        taken: list[Integers] = []
        for q in order[: n + 1]:
            if count[q] <= room or not taken:  # one query at least, cut to its most valuable documents
                members = np.flatnonzero(is_pooled & (codes == q))
                taken.append(members[np.argsort(-values[members], kind="stable")[:room]])
                room -= len(taken[-1])
        rows = np.concatenate([np.empty(0, np.int64), *taken])
    chosen = set(codes[rows].tolist())
    queries = tuple(
        QueryValue(str(lists.queries.ids[q]), float(total[q]), int(count[q])) for q in order if q not in chosen
    )
    reasons = tuple(_reason(lists.ranks[row], definition.retrievers) for row in rows.tolist())
    return FusionSuggestions(rows, probabilities[rows], reasons, queries)


def _reason(ranks: Integers, names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {rank or 'absent'}" for name, rank in zip(names, ranks.tolist(), strict=True))
