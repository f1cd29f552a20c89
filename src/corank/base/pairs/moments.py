"""
Moments: sufficient statistics of squared losses over rows and pairs, computed in one pass, additive over queries.

For features Φ (X itself, or a kernel against basis rows) and scores y of the compared rows, with L the Laplacian of the
pairs (see `corank.base.pairs`), one pass through the data gives ``[Φ y]ᵀ L [Φ y]`` and optionally ``[Φ y 1]ᵀ [Φ y 1]``.
With ``ties``, L = ⊕_q c_q (n_q I − 1 1ᵀ); otherwise pairs of equal scores are excluded by subtracting the blocks of the
grades. The moments of parts of a data set that share no query can be added: the result is that of the whole, up to
rounding. Cost O(n d²) time and O(block · d + d²) memory per thread; a query may have any size.

Rows are split into leaves that depend on the data only (whole queries, about 65,536 rows), and their sums are added in
a fixed tree: any number of threads gives the same bytes up to 192 columns. Above, BLAS uses its own threads, and sums
agree to about 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.pairs.losses import weigh_queries
from corank.core.exact_sums import Slots, add_pair_squares, fold
from corank.core.rows.access import as_core_rows, factors_of
from corank.core.rows.access import plain as plain_rows
from corank.core.rows.blocks import add_sparse_spread
from corank.core.rows.products import MAX_COLUMNS, GramSum
from corank.core.threads import add_up, cut
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.fitted import Part, Shapes

BLOCK = 1 << 18
"""Entries of a block of rows: 2 MiB of float64."""
LEAF = 1 << 16
"""Rows or preferences of a leaf, the unit of work of a thread."""

Floats = NDArray[np.float64]
RowKind = Literal["scored", "unscored"]
Features = Callable[[Any], NDArray[Any]]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowPass:
    """One pass through the pairs of rows of each query, of different scores or all."""

    X: Any  # X, y, features: see `corank.base.pairs.Moments.of`
    y: Floats
    features: Features
    order: Integers  # order, slots: the compared rows by (query, grade), and their weights
    slots: Slots
    w: Floats | None  # weights in sums over rows; None without such sums
    width: int  # width, block: columns of [Φ y], and rows of a block
    block: int

    @property
    def pair_weight(self) -> float:
        """Total weight of the pairs: half the trace of L (`diagonal` adds c_q w² for a row alone in its grade)."""
        alone = self.slots.grade < 0
        return float(np.sum(self.slots.diagonal) - np.sum(self.slots.weight[alone] ** 2)) / 2

    @property
    def has_plain(self) -> bool:
        """Whether there are sums over rows."""
        return self.w is not None

    @property
    def leaves(self) -> list[tuple[int, int]]:
        """Groups of whole queries with about `LEAF` rows, as ranges of `order`."""
        starts = np.append(np.flatnonzero(np.diff(self.slots.query, prepend=-1)), len(self.order))
        runs = cut(starts, max(round(len(self.order) / LEAF), 1))
        return [(int(starts[first]), int(starts[last])) for first, last in runs] or [(0, 0)]

    def add(self, first: int, last: int, pair: GramSum, single: GramSum) -> None:
        """Add the sums over pairs of a leaf to `pair`, and those over rows to `single`."""
        block = min(self.block, max(last - first, 1))
        shift, sums = np.empty(self.width), np.empty((2, self.width))
        F, Z, plus, minus = (np.empty((rows, self.width)) for rows in (block, block, block // 2 + 1, block))
        for begin in range(first, last, block):
            rows = self.order[begin : min(begin + block, last)]
            n = len(rows)
            F[:n, :-1], F[:n, -1] = self.features(take(self.X, rows)), self.y[rows]
            n_plus, n_minus = fold(F[:n], self.slots, begin, shift, sums, Z, plus, minus)
            pair.add(Z[:n])
            pair.add(plus[:n_plus])
            pair.add(minus[:n_minus], -1.0)
            if self.w is not None:
                single.add(np.column_stack([F[:n], np.ones(n)]) * np.sqrt(self.w[begin : begin + n])[:, None])

    def squares(self, first: int, last: int) -> Floats:
        """Return the part of a leaf in the diagonal of XᵀLX, without visiting zeros of a CSR matrix."""
        out = np.zeros(self.width - 1)
        if not sparse.issparse(self.X):
            add_pair_squares(np.ascontiguousarray(self.X), self.order, self.slots, first, last, out)
            return out
        rows, leaf = as_core_rows(self.X[self.order[first:last]]), slice(first, last)
        for group, sign in ((self.slots.query[leaf], 1.0), (self.slots.grade[leaf], -1.0)):
            members = np.flatnonzero(group >= 0)
            starts = np.append(np.flatnonzero(np.diff(group[members], prepend=-1)), len(members))
            w, spread = self.slots.weight[leaf].copy(), np.zeros((2, len(out)))
            if len(members):
                w[members] *= np.repeat(np.add.reduceat(w[members], starts[:-1]), np.diff(starts))
                add_sparse_spread(rows, w, members, starts, spread, 0, len(starts) - 1)
            out += sign * spread[0]
        return out


@dataclass(frozen=True, eq=False)
class PreferencePass:
    """One pass through given preferences, query by query."""

    X: Any  # X, features: see `corank.base.pairs.Moments.of`
    features: Features
    pairs: Integers  # pairs, w (n_pairs, 2): winners and losers, and weights
    w: Floats
    gaps: Floats  # (n_pairs,): target difference of each
    width: int  # width, block: columns of [Φ gap], and preferences of a block
    block: int

    has_plain = False

    @property
    def pair_weight(self) -> float:
        """Total weight of the preferences."""
        return float(np.sum(self.w))

    @property
    def leaves(self) -> list[tuple[int, int]]:
        """Ranges of `LEAF` preferences."""
        n = len(self.pairs)
        return [(first, min(first + LEAF, n)) for first in range(0, n, LEAF)] or [(0, 0)]

    def add(self, first: int, last: int, pair: GramSum, single: GramSum) -> None:
        """Add the sums over pairs of a leaf to `pair`; preferences have no sums over rows."""
        D = np.empty((min(self.block, last - first), self.width))
        for begin in range(first, last, self.block):
            end = min(begin + self.block, last)
            n, (winners, losers) = end - begin, self.pairs[begin:end].T
            D[:n, :-1] = self.features(self.X[winners])
            D[:n, :-1] -= self.features(self.X[losers])
            D[:n, -1] = self.gaps[begin:end]
            D[:n] *= np.sqrt(self.w[begin:end])[:, None]
            pair.add(D[:n])

    def squares(self, first: int, last: int) -> Floats:
        """Return the part of a leaf in the diagonal of XᵀLX, without visiting zeros of a CSR matrix."""
        out = np.zeros(self.width - 1)
        for begin in range(first, last, self.block):
            end = min(begin + self.block, last)
            winners, losers = self.pairs[begin:end].T
            D = self.X[winners].astype(np.float64) - self.X[losers]
            out += (D.power(2) if sparse.issparse(D) else D * D).T @ self.w[begin:end]
        return out


def prepare_pass(
    data: RankingData,
    features: Features | None,
    rows: RowKind,
    ties: bool,
    query_weight: str,
    *,
    plain: bool = False,
    block: int | None = None,
) -> RowPass | PreferencePass:
    """Prepare a pass; see `corank.base.pairs.Moments.of`."""
    data.require_unchanged()
    X = plain_rows(data.X) if features is None else data.X
    features = features or dense
    width = features(X[:1]).shape[1] + 1
    block = block or max(1, BLOCK // width)
    weighed = weigh_queries(data, query_weight, ties=ties, rows=rows)
    if rows == "scored" and data.pairs is not None:
        by_query = np.argsort(data.queries.codes[data.pairs[:, 0]], kind="stable")
        w, gaps = weighed.pair_weight[by_query], data.pair_targets[by_query]
        return PreferencePass(X, features, data.pairs[by_query], w, gaps, width, block)
    unscored = rows == "unscored"
    # without grades, rows are read in their original order
    order = data.queries.order if ties or unscored else data.order
    order = order[data.is_scored[order] != unscored]
    targets = None if unscored else data.targets
    by_grade = None if ties or unscored or data.y is None else data.y[order]
    slots = _slots(data.queries.codes[order], by_grade, weighed.weight_of(order))
    y = np.zeros(data.n_rows) if targets is None else targets
    return RowPass(X, y, features, order, slots, data.weight_of(order) if plain else None, width, block)


def _slots(query: Integers, y: Floats | None, w: Floats) -> Slots:
    """Return the weights of rows: by grades of the scores y, or for all pairs of a query."""
    W_q = np.bincount(query, weights=w)
    if y is None:
        W_g, grade = np.zeros(len(query)), np.full(len(query), -1)
    else:
        new = np.ones(len(query), dtype=bool)
        new[1:] = (query[1:] != query[:-1]) | (y[1:] != y[:-1])
        grade = np.cumsum(new) - 1
        per_grade, alone = np.bincount(grade, weights=w), np.bincount(grade)[grade] == 1
        W_g, grade = np.where(alone, 0.0, per_grade[grade]), np.where(alone, -1, grade)
    return Slots(w * (W_q[query] - W_g), w, query, grade)


def take(X: Any, rows: Integers) -> Any:
    """Return rows of X; contiguous rows as a slice, which does not copy a memory map."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return X[rows[0] : rows[-1] + 1]
    return X[rows]


def dense(rows: Any) -> NDArray[Any]:
    """Return rows as a dense array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


@dataclass(frozen=True, eq=False)
class Moments(Part):
    """Sums of products over pairs and rows."""

    _shapes: ClassVar[Shapes] = {"pair": ("size", "size"), "plain": ("size", "size")}

    pair: Floats  # ``[Φ y]ᵀ L [Φ y]``
    plain: Floats | None  # ``[Φ y 1]ᵀ diag(w) [Φ y 1]``
    pair_weight: float  # total weight of the pairs in L; their number without weights

    @classmethod
    def of(
        cls,
        data: RankingData,
        *,
        features: Features | None = None,
        rows: RowKind = "scored",
        ties: bool = False,
        query_weight: str = "pairs",
        plain: bool = False,
        block: int | None = None,
    ) -> Moments:
        """Compute the moments of a problem."""
        rows_pass = prepare_pass(data, features, rows, ties, query_weight, plain=plain, block=block)

        def leaf(first: int, last: int) -> Moments:
            pair, single = GramSum(rows_pass.width), GramSum(rows_pass.width + 1)
            rows_pass.add(first, last, pair, single)
            return Moments(pair.total(), single.total() if rows_pass.has_plain else None, 0.0)

        # wide rows are multiplied by BLAS, which has its own threads
        n_jobs = None if rows_pass.width < MAX_COLUMNS else 1
        sums: Moments = add_up(leaf, rows_pass.leaves, n_jobs)
        total = replace(sums, pair_weight=rows_pass.pair_weight)
        factors = factors_of(data.X) if features is None else None
        return total if factors is None else total.scaled(factors)

    @property
    def n_features(self) -> int:
        """Number of columns of Φ."""
        return len(self.pair) - 1

    def scaled(self, factors: Floats) -> Moments:
        """Return the moments of Φ diag(factors)."""
        pair, single = np.append(factors, 1.0), np.append(factors, [1.0, 1.0])
        sums = None if self.plain is None else self.plain * np.outer(single, single)
        return Moments(self.pair * np.outer(pair, pair), sums, self.pair_weight)

    def __add__(self, other: Moments) -> Moments:
        if self.pair.shape != other.pair.shape or (self.plain is None) != (other.plain is None):
            raise InputError("the moments have different shapes; add moments of parts of the same problem only.")
        plain = None if self.plain is None or other.plain is None else self.plain + other.plain
        return Moments(self.pair + other.pair, plain, self.pair_weight + other.pair_weight)


def pair_squares(data: RankingData, *, ties: bool = False, query_weight: str = "pairs") -> tuple[Floats, float]:
    """Sum the squared differences of compared pairs for each column: the diagonal of XᵀLX."""
    rows_pass = prepare_pass(data, None, "scored", ties, query_weight)

    with np.errstate(over="ignore", invalid="ignore"):
        total, factors = np.asarray(add_up(rows_pass.squares, rows_pass.leaves)), factors_of(data.X)
        return total if factors is None else total * factors**2, rows_pass.pair_weight
