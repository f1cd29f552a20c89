"""PairSampler: probability distributions over pairs, and how kernels sample from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.base.pairs.losses import require_query_weight
from corank.core.pairs import sampling as core
from corank.core.pairs.sampling import PairIndex
from corank.core.random import alias_table, seed_state
from corank.data.ranking import RankingData
from corank.errors import InputError

DRAWS = ("pairs", "rows")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairSampler:
    """
    A probability distribution over comparable pairs; create one with `of`.

    Comparable pairs are rows of one query with different scores. With row weights `w` and their sums W_q and W_g over
    the scored rows of a query and of a grade, a pair {a, b} of query q has probability ∝ c_q w_a w_b, where

    * ``query_weight="pairs"``: c_q = 1, all (unweighted) pairs are equally likely;
    * ``"equal"``: c_q = 1 / (W_q² − Σ_g W_g²), all queries are equally likely;
    * ``"rows"``: c_q = 1 / W_q, queries are drawn in proportion to their rows.

    ``draw="rows"`` is the distribution of sofia-ml: a row a with a partner is drawn ∝ w_a, then a partner b of another
    score ∝ w_b, so that {a, b} has probability ∝ w_a w_b (1/(W_q − W_g(a)) + 1/(W_q − W_g(b))).

    `differences` multiplies the weight of a pair (with ``draw="rows"``: of the partner) by |y_a − y_b|. Preferences are
    drawn ∝ c_q times their weight; "equal" and "rows" then refer to the preferences of a query and their rows. A draw
    costs O(1), or O(log n_q) with row weights or differences. Probabilities are exact up to rounding.
    """

    index: PairIndex  # argument of `corank.core.pairs.sampling.draw_pairs`
    n_skipped_queries: int  # queries with candidate rows but no pair

    @classmethod
    def of(
        cls,
        data: RankingData,
        query_weight: str = "pairs",
        draw: str = "pairs",
        *,
        unscored: bool = False,
        differences: bool = False,
    ) -> PairSampler:
        """Index the pairs of a problem."""
        require_query_weight(query_weight)
        if draw not in DRAWS:
            raise InputError(f"draw is {draw!r}; choose one of {', '.join(DRAWS)}.")
        if draw == "rows" and query_weight != "pairs":
            raise InputError(
                f"draw='rows' does not support query weights, but query_weight is {query_weight!r}; "
                "set query_weight='pairs', or draw='pairs'."
            )
        if differences and (unscored or data.y is None):
            kind = "unjudged rows" if unscored else "preference pairs"
            raise InputError(f"differences=True needs scores, but {kind} have none; set differences=False.")
        law = "partners" if draw == "rows" else query_weight
        if not unscored:
            data.require_pairs()
        if not unscored and data.pairs is not None:
            return cls(*_listed(data, law))
        w = None if data.weights is None else np.asarray(data.weights / data.weights.max())
        slots = _slots(data, unscored, w)
        if w is None and not differences:
            return cls(*_counted(slots, law, unscored))
        return cls(*_weighted(slots, law, unscored, data.y if differences else None, w))

    def draw(self, n: int, rng: np.random.Generator | NDArray[np.uint64]) -> Integers:
        """Draw pairs with replacement."""
        state = seed_state(rng) if isinstance(rng, np.random.Generator) else rng
        if not (isinstance(state, np.ndarray) and state.dtype == np.uint64 and state.shape == (4,)):
            raise InputError(f"rng is {rng!r}; pass a numpy Generator such as numpy.random.default_rng(0).")
        if n < 0:
            raise InputError(f"n is {n}; pass a number of at least 0.")
        out = np.empty((n, 2), dtype=np.int64)
        core.draw_pairs(state, self.index, out.view(np.uint64))
        return out


class _Slots(NamedTuple):
    """Candidate rows sorted by (query, score), in groups of rows that are not compared with each other."""

    rows: Integers
    codes: Integers  # query of each slot
    starts: Integers  # first slot of each query, Q + 1
    groups: Integers  # group of each slot
    group_starts: Integers  # G + 1
    n_queries: int  # with a candidate row, possibly of weight zero


def _slots(data: RankingData, unscored: bool, w: Floats | None) -> _Slots:
    is_candidate = ~data.is_scored if unscored else data.is_scored
    rows = data.order[is_candidate[data.order]]
    n_queries = int(np.count_nonzero(np.diff(data.queries.codes[rows], prepend=-1)))
    if w is not None:
        rows = rows[w[rows] > 0]
    codes = data.queries.codes[rows]
    is_start = np.diff(codes, prepend=-1) != 0
    if not unscored and data.y is not None:
        scores = data.y[rows]
        is_start[1:] |= scores[1:] != scores[:-1]
    groups = np.cumsum(is_start) - 1
    starts = np.searchsorted(codes, np.arange(len(data.queries) + 1))
    return _Slots(rows, codes, starts, groups, np.append(np.flatnonzero(is_start), len(rows)), n_queries)


def _spans(slots: _Slots, winners_only: bool) -> tuple[Integers, Integers]:
    """Return members and partners of each group as in `PairIndex`, and the query of each group."""
    query = slots.codes[slots.group_starts[:-1]]
    start, stop = slots.group_starts[:-1], slots.group_starts[1:]
    # if only winners are drawn first, the losers are one range below them
    high = stop if winners_only else slots.starts[query + 1]
    return np.stack([slots.starts[query], start, stop, high], axis=1), query


def _counted(slots: _Slots, law: str, unscored: bool) -> tuple[PairIndex, int]:
    spans, query = _spans(slots, winners_only=law != "partners" and not unscored)
    lower, start, stop, higher = spans.T
    size = (stop - start).astype(np.float64)
    partners = size - 1 if unscored else ((start - lower) + (higher - stop)).astype(np.float64)
    weights, n_skipped = _entry_weights(law, size, partners, query, np.bincount(query, weights=size), slots.n_queries)
    kept = weights > 0
    return _index(
        core.BLOCKS if unscored else core.GRADES, weights[kept], spans=spans[kept], rows=slots.rows
    ), n_skipped


def _weighted(slots: _Slots, law: str, unscored: bool, y: Floats | None, w: Floats | None) -> tuple[PairIndex, int]:
    spans, query = _spans(slots, winners_only=law != "partners" and not unscored)
    # an empty slot after each query, so that running sums at STOP exist and stay inside the query
    n_slots = len(slots.rows) + len(slots.starts) - 1
    i = np.arange(len(slots.rows)) + slots.codes
    own, rows, groups = np.zeros(n_slots), np.zeros(n_slots, dtype=np.int64), np.zeros(n_slots, dtype=np.int64)
    own[i] = 1.0 if w is None else w[slots.rows]
    rows[i], groups[i] = slots.rows, slots.groups
    sums = np.zeros((n_slots, 3))
    padded = slots.starts + np.arange(len(slots.starts))
    core.running_sums(own, padded, sums[:, core.MASS])
    if y is None:
        sums[:, core.LEVEL] = 1.0
    else:
        # levels relative to the lowest score of the query; scaling by a power of two is exact and keeps sums finite
        exponent = np.frexp(np.abs(y[slots.rows]).max(initial=1.0))[1]
        scores = np.ldexp(y[slots.rows], -exponent)
        sums[i, core.LEVEL] = scores - scores[slots.starts[slots.codes]]
        core.running_sums(own * sums[:, core.LEVEL], padded, sums[:, core.MOMENT])
    kind = core.WEIGHTED_BLOCKS if unscored else core.WEIGHTED_GRADES
    index = _index(kind, spans=spans + query[:, None], rows=rows, groups=groups, sums=sums)
    partners = np.empty(len(i))
    core.partner_weights(index, i.view(np.uint64), partners)
    weights = np.zeros(n_slots)
    W_q = np.bincount(slots.codes, weights=own[i])
    weights[i], n_skipped = _entry_weights(law, own[i], partners, slots.codes, W_q, slots.n_queries)
    return index._replace(table=alias_table(weights)), n_skipped


def _listed(data: RankingData, law: str) -> tuple[PairIndex, int]:
    """Index given pairs: partners are the rows listed together."""
    assert data.pairs is not None
    pairs, codes, weight = data.pairs, data.queries.codes, data.pair_weight / data.pair_weight.max()
    w = np.where(data.is_scored, data.weight_of(np.arange(data.n_rows)), 0.0)
    W_q = np.bincount(codes, weights=w)
    if law == "partners":
        # a row ∝ w_a, then one of its pairs ∝ its weight; either row may come first
        share = np.bincount(pairs.ravel(), weights=np.repeat(weight, 2), minlength=len(w))
        per_weight = np.divide(w, share, out=np.zeros_like(w), where=share > 0)
        weight, law = weight * per_weight[pairs].sum(axis=1), "pairs"
    query = codes[pairs[:, 0]]
    weights, n_skipped = _entry_weights(law, weight, np.ones(len(pairs)), query, W_q, len(np.unique(query)))
    kept = weights > 0
    return _index(core.LISTED, weights[kept], rows=pairs[kept].ravel()), n_skipped


def _entry_weights(
    law: str, own: Floats, partners: Floats, query: Integers, W_q: NDArray[Any], n_queries: int
) -> tuple[Floats, int]:
    """Return the weight of each entry of the alias table, and the number of queries without a pair."""
    weight = own * partners
    in_query = np.bincount(query, weights=weight)
    n_with_pairs = int(np.count_nonzero(in_query))
    if n_with_pairs == 0:
        raise InputError(
            f"none of the {n_queries} queries with candidate rows has a pair of positive weight; "
            "score more rows, keep two unjudged rows in a query, or check the weights."
        )
    if law == "partners":
        weight = np.where(partners > 0, own, 0.0)
    elif law != "pairs":
        below = in_query if law == "equal" else W_q
        weight = np.divide(weight, below[query], out=np.zeros_like(weight), where=weight > 0)
    return weight, n_queries - n_with_pairs


def _index(
    kind: int,
    weights: Floats | None = None,
    spans: Integers | None = None,
    rows: Integers | None = None,
    groups: Integers | None = None,
    sums: Floats | None = None,
) -> PairIndex:
    nothing = np.empty(0, dtype=np.int64)
    return PairIndex(
        kind=kind,
        table=np.empty((0, 2), dtype=np.uint64) if weights is None else alias_table(weights),
        spans=_narrow(np.empty((0, 4), dtype=np.int64) if spans is None else spans),
        rows=_narrow(nothing if rows is None else rows),
        groups=_narrow(nothing if groups is None else groups),
        sums=np.empty((0, 3)) if sums is None else sums,
    )


def _narrow(numbers: Integers) -> NDArray[np.uint32]:
    """Convert to uint32, which halves the memory of random accesses."""
    if numbers.max(initial=0) > np.iinfo(np.uint32).max:
        raise InputError(f"the problem has {numbers.max()} rows, too many to sample from; pass fewer than 2³² rows.")
    return numbers.astype(np.uint32)


NO_PAIRS = _index(core.LISTED)
"""An index without pairs."""
