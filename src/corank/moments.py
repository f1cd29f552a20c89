"""
Moments: the sums over rows and pairs that every squared loss needs, in one pass, additive over queries.

For features Φ (X itself, or a kernel against basis rows) and scores y of the compared rows, with L the Laplacian of the
pairs (see `corank.graphs`), a pass over the data gives ``[Φ y]ᵀ L [Φ y]`` and, where asked, ``[Φ y 1]ᵀ [Φ y 1]``.
Pairs of equal scores are left out unless ``ties`` is set: then L = ⊕_q c_q (n_q I − 1 1ᵀ), else the same less the
blocks of the grades. Two parts of a data set that share no query may be summed apart and added: the result is that of
the whole, up to rounding. Cost O(n d²) and O(block · d + d²) memory; a query may be of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.moments import Slots, fold
from corank.core.products import MOST_COLUMNS, Gram
from corank.core.threads import cut, n_threads, spread
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.graphs import query_factors

# entries of a block of rows: 2 MiB of float64
BLOCK = 1 << 18

Floats = NDArray[np.float64]
Features = Callable[[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Moments:
    """
    Sums over pairs and rows.

    Attributes
    ----------
    pair : array of shape (d + 1, d + 1)
        ``[Φ y]ᵀ L [Φ y]``.
    plain : array of shape (d + 2, d + 2), or None
        ``[Φ y 1]ᵀ diag(w) [Φ y 1]``.
    pair_weight : float
        Total weight of the pairs in L; their number where nothing is weighted.

    Examples
    --------
    >>> data = RankingData.of([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> Moments.of(data).pair.tolist()  # pairs (1, 0) and (2, 0)
    [[10.0, 4.0], [4.0, 2.0]]
    """

    pair: Floats
    plain: Floats | None
    pair_weight: float

    @classmethod
    def of(
        cls,
        data: RankingData,
        *,
        features: Features | None = None,
        rows: Literal["scored", "unscored"] = "scored",
        ties: bool = False,
        query_weight: str = "pairs",
        plain: bool = False,
        block: int | None = None,
    ) -> Moments:
        """
        Sum over a problem.

        Parameters
        ----------
        data : RankingData
            The problem, with its weights; with preference pairs, a pair asks for a difference of 1.
        features : callable, optional
            Takes rows of X and returns Φ for them as a dense array; X itself by default.
        rows : {"scored", "unscored"}
            Compare rows by their scores, or all unscored rows of a query with each other (then y counts as 0).
        ties : bool
            Whether two rows of equal score make a pair too.
        query_weight : {"pairs", "equal", "rows"}
            c_q = 1; 1 / (W_q² − Σ_g W_g²), one over twice the weight of the pairs of q; or 1 / W_q.
        plain : bool
            Whether to sum over rows too.
        block : int, optional
            Rows in memory at a time; by default as many as make 2 MiB.

        Returns
        -------
        Moments
            The sums.
        """
        features = features or dense
        d = features(data.X[:1]).shape[1]
        block = block or max(1, BLOCK // (d + 1))
        if rows == "scored" and data.pairs is not None:
            return cls._of_preferences(data, features, block)
        unscored = rows == "unscored"
        # where grades do not matter, rows are read in the order they stand in
        order = data.queries.order if ties or unscored else data.order
        order = order[data.is_scored[order] != unscored]
        w = data.weight_of(order)
        slots, pair_weight = _slots(data, order, w, ties or unscored, query_weight)
        y = np.zeros(data.n_rows) if unscored or data.y is None else data.y
        return cls(*_sum(data.X, y, order, slots, w if plain else None, features, d + 1, block), pair_weight)

    @classmethod
    def _of_preferences(cls, data: RankingData, features: Features, block: int) -> Moments:
        assert data.pairs is not None
        pair: Floats | float = 0.0
        total = 0.0
        for start in range(0, len(data.pairs), block):
            winners, losers = data.pairs[start : start + block].T
            D = np.asarray(features(data.X[winners]), dtype=np.float64) - features(data.X[losers])
            D = np.column_stack([D, np.ones(len(D))])
            w = data.pair_weight[start : start + block]
            D *= np.sqrt(w)[:, None]
            pair = pair + D.T @ D
            total += float(w.sum())
        return cls(np.asarray(pair), None, total)

    @property
    def n_features(self) -> int:
        """Number of columns of Φ."""
        return len(self.pair) - 1

    def __add__(self, other: Moments) -> Moments:
        if self.pair.shape != other.pair.shape or (self.plain is None) != (other.plain is None):
            raise InputError("these moments are of different features or kinds; sum parts of one problem only.")
        plain = None if self.plain is None or other.plain is None else self.plain + other.plain
        return Moments(self.pair + other.pair, plain, self.pair_weight + other.pair_weight)


def dense(rows: Any) -> NDArray[Any]:
    """
    Return rows as a dense array.

    Parameters
    ----------
    rows : ndarray or CSR matrix
        Rows of X.

    Returns
    -------
    ndarray
        The rows.
    """
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _slots(
    data: RankingData, order: NDArray[np.int64], w: Floats, ties: bool, query_weight: str
) -> tuple[Slots, float]:
    query, n_queries = data.queries.codes[order], len(data.queries)
    W_q = np.bincount(query, weights=w, minlength=n_queries)
    if ties or data.y is None:
        W_g, grade = np.zeros(len(order)), np.full(len(order), -1)
        same = np.bincount(query, weights=w * w, minlength=n_queries)
    else:
        new = np.ones(len(order), dtype=bool)
        new[1:] = (query[1:] != query[:-1]) | (data.y[order[1:]] != data.y[order[:-1]])
        grade = np.cumsum(new) - 1
        per_grade, alone = np.bincount(grade, weights=w), np.bincount(grade)[grade] == 1
        same = np.bincount(query[new], weights=per_grade**2, minlength=n_queries)
        W_g, grade = np.where(alone, 0.0, per_grade[grade]), np.where(alone, -1, grade)
    c = query_factors(W_q, query_weight, W_q**2 - same)
    slots = Slots(c[query] * w * (W_q[query] - W_g), np.sqrt(c[query]) * w, query, grade)
    return slots, float(np.sum(c * (W_q**2 - same))) / 2


def _sum(
    X: Any, y: Floats, order: NDArray[np.int64], slots: Slots, w: Floats | None, features: Features, d: int, block: int
) -> tuple[Floats, Floats | None]:
    """Sum over runs of whole queries, each on a thread of its own; BLAS, which wide rows go to, has its own threads."""

    def sum_run(first_query: int, last_query: int) -> tuple[Floats, Floats | None]:
        return _sum_run(X, y, order, slots, w, features, d, block, slice(starts[first_query], starts[last_query]))

    starts = np.append(np.flatnonzero(np.diff(slots.query, prepend=-1)), len(order))
    parts = spread(sum_run, cut(starts, n_threads() if d < MOST_COLUMNS else 1))
    if not parts:
        parts = [sum_run(0, 0)]
    plains = [plain for _, plain in parts if plain is not None]
    return np.sum([pair for pair, _ in parts], axis=0), np.sum(plains, axis=0) if plains else None


def _sum_run(
    X: Any, y: Floats, order: NDArray[np.int64], slots: Slots, w: Floats | None, features: Features, d: int, block: int,
    run: slice,
) -> tuple[Floats, Floats | None]:  # fmt: skip
    block = min(block, max(run.stop - run.start, 1))
    shift, sums = np.empty(d), np.empty((2, d))
    F, Z, plus, minus = (np.empty((rows, d)) for rows in (block, block, block // 2 + 1, block))
    pair, plain = Gram(d), None if w is None else Gram(d + 1)
    for first in range(run.start, run.stop, block):
        rows = order[first : min(first + block, run.stop)]
        n = len(rows)
        F[:n, :-1], F[:n, -1] = features(_take(X, rows)), y[rows]
        n_plus, n_minus = fold(F[:n], slots, first, shift, sums, Z, plus, minus)
        pair.add(Z[:n])
        pair.add(plus[:n_plus])
        pair.add(minus[:n_minus], -1.0)
        if plain is not None and w is not None:
            plain.add(np.column_stack([F[:n], np.ones(n)]) * np.sqrt(w[first : first + n])[:, None])
    return pair.total(), None if plain is None else plain.total()


def _take(X: Any, rows: NDArray[np.int64]) -> Any:
    """Rows of X; a run of neighbours is a slice, which a memory map reads without copying."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return X[rows[0] : rows[-1] + 1]
    return X[rows]
