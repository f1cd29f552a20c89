"""
Judged queries: grades after unjudged documents were treated, and nDCG@k of many weight vectors at once.

Whole lists count unjudged documents as irrelevant. Documents that no list has at its top, but all lists have, come up
in a fusion; where nobody judged them, whole lists favour single retrievers over every fusion. Condensed lists leave
out the documents that nobody looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.pools import PoolPolicy, one_source
from corank.data.queries import Queries
from corank.errors import warn
from corank.models.fusion.lists import Floats, RetrievedLists, reciprocal_rank

MAX_HOLES = 0.1
"""Share of unjudged documents in RRF's top up to which whole lists are evaluated."""


def discounts(n: int) -> Floats:
    """Return 1/log₂(1 + rank) for ranks 1 to n."""
    return 1.0 / np.log2(np.arange(2, n + 2))


def top_rows(scores: Floats, k: int) -> NDArray[np.int64]:
    """
    Return the rows of the k highest scores of each column, best first; equal scores keep the order of the rows.

    scores (n_rows, n_columns)

    >>> top_rows(np.array([[1.0], [3.0], [3.0], [2.0]]), 2).tolist()
    [[1], [2]]
    """
    if len(scores) <= 2 * k:
        return np.argsort(-scores, axis=0, kind="stable")[:k]
    by_column = np.ascontiguousarray(-scores.T)
    top = np.sort(np.argpartition(by_column, k - 1, axis=1)[:, :k], axis=1)
    chosen = np.take_along_axis(by_column, top, axis=1)
    top = np.take_along_axis(top, np.argsort(chosen, axis=1, kind="stable"), axis=1)
    # the partition may choose any row of a tie at the k-th place
    tied = (by_column <= chosen.max(axis=1, keepdims=True)).sum(axis=1) > k
    top[tied] = np.argsort(by_column[tied], axis=1, kind="stable")[:, :k]
    return top.T


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """
    The judged queries of a problem, for metrics.

    rows: for each query, its rows in input order.
    gains: for each query, max(grade, 0) of its rows; 0 where unjudged.
    ideals (n_judged,): DCG@k of the best possible order.
    codes (n_judged,): positions of the queries.
    k: cut-off of the metric.
    """

    rows: Sequence[NDArray[np.int64]]
    gains: Sequence[Floats]
    ideals: Floats
    codes: NDArray[np.int64]
    k: int

    @classmethod
    def of(
        cls,
        y: Floats,
        queries: Queries,
        k: int,
        missed: tuple[NDArray[np.int64], Floats] | None = None,
        *,
        condensed: bool = False,
        weights: Floats | None = None,
    ) -> JudgedQueries:
        """
        Index the queries with a relevant document; in others every order is equally good.

        missed: codes of queries, and grades of judged documents that no retriever returned.
        condensed: whether unjudged documents are left out of the lists (Sakai, 2007), not counted as irrelevant.
        weights: of rows, such as inverse probabilities that they were judged.
        """
        rows, gains, ideals, codes = [], [], [], []
        graded = np.maximum(np.nan_to_num(y), 0.0) * (1.0 if weights is None else weights)
        for q in range(len(queries)):
            members = queries.order[queries.starts[q] : queries.starts[q + 1]]
            members = members[~np.isnan(y[members])] if condensed else members
            all_grades = graded[members]
            if missed is not None:
                all_grades = np.concatenate([all_grades, np.maximum(missed[1][missed[0] == q], 0.0)])
            best = np.sort(all_grades)[::-1][:k]
            ideal = float(best @ discounts(len(best)))
            if ideal > 0 and len(members):
                rows.append(members)
                gains.append(graded[members])
                ideals.append(ideal)
                codes.append(q)
        return cls(rows, gains, np.array(ideals), np.array(codes, dtype=np.int64), k)

    def __len__(self) -> int:
        return len(self.codes)

    def ndcg_of(self, q: int, scores: Floats) -> Floats:
        """Return nDCG@k (n_columns,) of scores (rows of query q, n_columns)."""
        top = top_rows(scores, self.k)
        return np.asarray(discounts(len(top)) @ self.gains[q][top] / self.ideals[q])

    def ndcg(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return nDCG@k (n_judged, n_columns) of scores of all rows: `values`, or `values` times `weights`."""
        n_columns = (values if weights is None else weights).shape[1]
        out = np.empty((len(self), n_columns))
        for q, rows in enumerate(self.rows):
            out[q] = self.ndcg_of(q, values[rows] if weights is None else values[rows] @ weights)
        return out

    def shortened(self, chosen: Sequence[NDArray[np.int64]]) -> JudgedQueries:
        """Return the queries with some of their rows, given by position; the ideal stays the same."""
        rows = [part[some] for part, some in zip(self.rows, chosen, strict=True)]
        gains = [part[some] for part, some in zip(self.gains, chosen, strict=True)]
        return JudgedQueries(rows, gains, self.ideals, self.codes, self.k)


@dataclass(frozen=True, eq=False)
class TreatedGrades:
    """Grades after the policy: rows with NaN do not count; `sources` are the judged retrievers, None if all are."""

    y: Floats
    weights: Floats
    is_condensed: bool
    sources: NDArray[np.bool_] | None
    sentence: str
    notes: tuple[str, ...] = ()


def treat_unjudged(
    lists: RetrievedLists, y: Floats, weights: Floats, names: tuple[str, ...], unjudged: str, pool: Any, *,
    rrf_k: float, k: int,
) -> TreatedGrades:  # fmt: skip
    """Apply a policy to the rows of judged queries; the parameters are those of `corank.Fusion`."""
    if unjudged == "irrelevant":
        return TreatedGrades(y, weights, False, None, "Unjudged documents count as irrelevant, in whole lists.")
    if unjudged == "missing":
        return TreatedGrades(y, weights, True, None, "Unjudged documents are left out of the lists (condensed lists).")
    source, notes, given = one_source(lists.ranks, y) if pool is None else None, tuple[str, ...](), pool
    if source is not None:
        sentence = source.sentence(names)
        warn(sentence)
        given = {name: source.depth * (j == source.retriever) for j, name in enumerate(names)}
        notes = (sentence[0].upper() + sentence[1:],)
    qid = lists.queries.ids[lists.queries.codes]
    rows = PoolPolicy("pooled", given).apply(y, qid=qid, ranks=lists.ranks, retrievers=names)
    assert rows.is_reached is not None
    is_judged = ~np.isnan(y)
    only_relevant = given is None and bool((y[is_judged] > 0).all())  # what is not listed counts as irrelevant
    is_known = is_judged | only_relevant | (rows.is_reached if given is not None else False)
    judged_lists, holes = judged_retrievers(lists, is_known, k), unknown_share(lists, is_known, rrf_k, k)
    if unjudged == "auto" and judged_lists.all() and holes <= MAX_HOLES:
        why = "only relevant documents are listed" if only_relevant else "the tops of all lists and of RRF were judged"
        sentence = f"Unjudged documents count as irrelevant, in whole lists, since {why}."
        return TreatedGrades(y, weights * rows.weights, False, None, sentence)
    sentence = rows.sentence
    if source is not None:
        top = f"the top {source.depth} of {names[source.retriever]}"
        sentence = f"Unjudged documents in {top} count as irrelevant, others are left out."
    sentence += " Values are those of condensed lists."
    if unjudged == "auto" and judged_lists.all():
        sentence += f" {holes:.0%} of RRF's first {k} are unjudged, and would count 0 in whole lists."
    sources = None if judged_lists.all() else judged_lists
    return TreatedGrades(rows.y, weights * rows.weights, True, sources, sentence, notes)


def judged_retrievers(lists: RetrievedLists, is_known: NDArray[np.bool_], k: int) -> NDArray[np.bool_]:
    """Return whose lists were judged: the share of known documents among their first k is at least half the largest."""
    top = (lists.ranks > 0) & (lists.ranks <= k)
    share = (top & is_known[:, None]).sum(axis=0) / np.maximum(top.sum(axis=0), 1)
    return np.asarray(share >= 0.5 * share.max())


def unknown_share(lists: RetrievedLists, is_known: NDArray[np.bool_], rrf_k: float, k: int) -> float:
    """Return the share of unknown documents among the first k of RRF, the mean over queries."""
    fused = reciprocal_rank(lists, rrf_k).sum(axis=1)
    is_top = lists.queries.ranks(fused) <= k
    n_queries = len(lists.queries)
    n_top = np.bincount(lists.queries.codes[is_top], minlength=n_queries)
    n_unknown = np.bincount(lists.queries.codes[is_top & ~is_known], minlength=n_queries)
    return float((n_unknown / np.maximum(n_top, 1)).mean())
