"""
Which documents to judge next, so that a fusion is chosen well.

Let D_b(d) = 1/log₂(1 + rank) be the discount of document d in the first k of fusion b, 0 below. Two fusions differ in
DCG by Σ_d g(d) (D_b(d) − D_c(d)), so a grade matters as far as plausible fusions place its document differently
(minimal test collections; Carterette, Allan and Sitaraman, 2006). The plausible fusions are the learnt one, the same
with the weight of one retriever halved or doubled, RRF, the mean of min-max scores, and each retriever alone. p_b is
the probability that b is the best of them on further queries, given the judged ones (`Expectation`). The value of a
document is

    v(d) = Σ_b p_b D_b(d)² − (Σ_b p_b D_b(d))² ,

and n documents are drawn without replacement with probabilities π(d) = min(1, c v(d)), c such that Σ π = n (systematic
sampling). Then Σ_d g(d) D_b(d) / π(d) over the drawn documents estimates DCG without bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.comparison.fusion_report import alone, mean_of_scores
from corank.comparison.winner import Expectation
from corank.models.fusion import FusionDefinition
from corank.models.fusion.lists import RetrievedLists
from corank.models.fusion.values import JudgedQueries, discounts, top_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MIN_FACTOR, MAX_FACTOR = 0.5, 2.0
ROUNDING = 1e-12


class QueryValue(NamedTuple):
    """A query without judgements: its id, the sum of the values of its documents, and how many have one."""

    query: str
    value: float
    n_documents: int


@dataclass(frozen=True, eq=False)
class FusionSuggestions:
    """Documents to judge, the most valuable first."""

    rows: Integers
    values: Floats
    probabilities: Floats
    reasons: tuple[str, ...]
    queries: tuple[QueryValue, ...]  # whole queries worth judging, the most valuable first


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
) -> Floats:
    """Return v of every document."""
    scores = np.column_stack([rule.score_lists(lists) for rule in plausible_fusions(definition)])
    p = _probabilities(scores, lists, y, k, rng)
    D = np.zeros_like(scores)
    for q in range(len(lists.queries)):
        rows = lists.queries.order[lists.queries.starts[q] : lists.queries.starts[q + 1]]
        top = top_rows(scores[rows], k)
        D[rows[top], np.arange(scores.shape[1])] = discounts(len(top))[:, None]
    spread = D**2 @ p - (D @ p) ** 2
    return np.where(spread > ROUNDING, spread, 0.0)


def _probabilities(scores: Floats, lists: RetrievedLists, y: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Return the probability of each fusion to be the best; equal ones share it."""
    judged = JudgedQueries.of(y, lists.queries, k, None)
    if len(judged) < 2:
        return np.full(scores.shape[1], 1.0 / scores.shape[1])
    values = judged.ndcg(scores)
    draws = Expectation.of({str(b): values[:, b] for b in range(values.shape[1])}, {}, rng).draws
    is_best = draws >= draws.max(axis=1, keepdims=True)
    return np.asarray((is_best / is_best.sum(axis=1, keepdims=True)).mean(axis=0))


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
    definition: FusionDefinition, lists: RetrievedLists, y: Floats, n: int, *, k: int = 10, random_state: int = 0
) -> FusionSuggestions:
    """Choose n unjudged documents to judge, and whole queries."""
    rng = np.random.default_rng(random_state)
    values = np.where(np.isnan(y), document_values(definition, lists, y, k, rng), 0.0)
    probabilities = inclusion_probabilities(values, n)
    rows = draw(probabilities, rng)
    rows = rows[np.argsort(-values[rows], kind="stable")]
    codes = lists.queries.codes
    has_judged = np.bincount(codes, weights=~np.isnan(y), minlength=len(lists.queries)) > 0
    total = np.bincount(codes, weights=values, minlength=len(lists.queries))
    count = np.bincount(codes, weights=values > 0, minlength=len(lists.queries))
    new = [int(q) for q in np.argsort(-total, kind="stable") if not has_judged[q] and total[q] > 0]
    queries = tuple(QueryValue(str(lists.queries.ids[q]), float(total[q]), int(count[q])) for q in new)
    reasons = tuple(_reason(lists.ranks[row], definition.retrievers) for row in rows.tolist())
    return FusionSuggestions(rows, values[rows], probabilities[rows], reasons, queries)


def _reason(ranks: Integers, names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {rank or 'absent'}" for name, rank in zip(names, ranks.tolist(), strict=True))
