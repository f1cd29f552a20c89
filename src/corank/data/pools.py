"""
PoolPolicy: grades and weights of unjudged rows, from how rows came to be judged.

Somebody judged the top of some list; this set of rows is the pool. A row outside of it is unjudged because it was not
looked at, and a row inside it without a grade was looked at, or its list says only what is relevant. `PoolPolicy.apply`
is one step before ``fit`` of any ranker: it returns y and weights, and one sentence on what was assumed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.inputs import as_numbers
from corank.data.queries import Queries
from corank.errors import InputError, suggest_names
from corank.parameters import Rules, check_values, integer, none, number, one_of, rng_of, seed

Floats = NDArray[np.float64]
UNJUDGED = ("missing", "irrelevant", "pooled")
"""Values of the parameter `unjudged`."""
# the share of a retriever's rows of one rank that must be judged, so that the pool is said to reach that rank
_REACHED = 0.5
# the share of a list's first documents that must be judged, so that this list is the pool although others overlap with
# it, and the share of those that another list may have
_WHOLE, _OTHERS = 0.95, 0.9
_RULES: Rules = {
    "unjudged": one_of(*UNJUDGED), "weight": number(0, inside="()"), "grade": number(),
    "max_rows": integer(1) | none, "random_state": seed,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class PooledRows:
    """
    What a policy makes of the grades.

    y (n_rows,): grades, NaN where a row stays unjudged.
    weights (n_rows,): weights of the rows.
    is_reached (n_rows,): whether the pool reached the row; None if that was not needed.
    sentence: what was assumed.
    """

    y: Floats
    weights: Floats
    is_reached: NDArray[np.bool_] | None
    sentence: str


@dataclass(frozen=True)
class PoolPolicy:
    """
    How unjudged rows are treated: left unjudged, taken as irrelevant, or as the pool says.

    Parameters
    ----------
    unjudged : {"missing", "irrelevant", "pooled"}
        "missing" changes nothing. "irrelevant" gives unjudged rows of judged queries the grade `grade` and the weight
        `weight`. "pooled" does so only where the pool reached the row: its rank in the list of some retriever is at
        most the pool's depth for that retriever. Other rows stay unjudged.
    pool : int, mapping, table or None
        Depth of the pool for all retrievers, by name of a retriever (0 for those that were not used), or rows
        (query, retriever, depth[, probability]), as tuples or as a DataFrame with these columns. With a probability, a
        row of that depth was judged with that probability: a judged row then weighs the inverse of its probability,
        and the rows that were not drawn stay unjudged. None estimates depths from the ranks of judged rows.
    weight : float, default 1
        Weight of rows that are taken as irrelevant; judged rows weigh 1.
    grade : float, default 0
        Their grade.
    max_rows : int, optional
        At most so many of them in each query, drawn at random.
    random_state : int, optional
        Random seed of the draw.

    Examples
    --------
    >>> ranks = np.array([[1, 0], [2, 1], [3, 2]])
    >>> policy = PoolPolicy("pooled", pool={"bm25": 2, "vectors": 0})
    >>> rows = policy.apply([1.0, np.nan, np.nan], ranks=ranks, retrievers=["bm25", "vectors"])
    >>> rows.y.tolist()
    [1.0, 0.0, nan]
    """

    unjudged: Literal["missing", "irrelevant", "pooled"] = "pooled"
    pool: Any = None
    weight: float = 1.0
    grade: float = 0.0
    max_rows: int | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        check_values({name: getattr(self, name) for name in _RULES}, _RULES)

    def apply(
        self,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        ranks: ArrayLike | None = None,
        retrievers: Sequence[str] | None = None,
    ) -> PooledRows:
        """
        Return grades and weights.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Grades; NaN marks an unjudged row.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        ranks : array-like of int, shape (n_rows, n_retrievers), optional
            Ranks in the lists of the retrievers from 1; 0 or NaN where a retriever did not return the row. Needed for
            "pooled".
        retrievers : list of str, optional
            Names of the columns of `ranks`; r1, r2, ... by default.

        Returns
        -------
        PooledRows
            Grades, weights and a sentence on what was assumed.
        """
        grades = as_numbers(y, "y", "grade").copy()
        queries = Queries.of(qid, len(grades))
        is_judged = ~np.isnan(grades)
        has_judged = np.bincount(queries.codes[is_judged], minlength=len(queries))[queries.codes] > 0
        weights = np.ones(len(grades))
        if self.unjudged == "missing":
            return PooledRows(grades, weights, None, "Unjudged documents are left out.")
        if not (grades[is_judged] > self.grade).any():
            raise InputError(
                f"no judged row has a grade above {self.grade:g}, that of rows taken as irrelevant; judge a relevant "
                "row, or pass a lower grade."
            )
        is_free = ~is_judged & has_judged
        reached: NDArray[np.bool_] | None = None
        sentence = "Unjudged documents of judged queries count as irrelevant."
        if self.unjudged == "pooled":
            table = _as_ranks(ranks, len(grades))
            names = list(retrievers) if retrievers is not None else [f"r{j + 1}" for j in range(table.shape[1])]
            depths, odds, sentence = self._depths(table, is_judged, has_judged, queries, names)
            inside = (table > 0) & (table <= depths[queries.codes])
            reached = np.asarray(inside.any(axis=1))
            # a row is judged unless all lists that could have brought it did not
            chance = 1.0 - np.prod(np.where(inside, 1.0 - odds[queries.codes], 1.0), axis=1)
            weights[is_judged & reached] = 1.0 / chance[is_judged & reached]
            is_free &= reached & (chance >= 1.0)
        chosen = self._some(np.flatnonzero(is_free), queries)
        grades[chosen], weights[chosen] = self.grade, self.weight
        return PooledRows(grades, weights, reached, sentence)

    def _some(self, rows: NDArray[np.int64], queries: Queries) -> NDArray[np.int64]:
        """Draw at most `max_rows` rows of each query."""
        if self.max_rows is None:
            return rows
        # rows in random order, sorted by query: take the first of each
        drawn = rng_of(self.random_state).permutation(rows)
        drawn = drawn[np.argsort(queries.codes[drawn], kind="stable")]
        codes = queries.codes[drawn]
        first: NDArray[np.int64] = drawn[np.arange(len(drawn)) - np.searchsorted(codes, codes) < self.max_rows]
        return first

    def _depths(
        self,
        ranks: Floats,
        is_judged: NDArray[np.bool_],
        has_judged: NDArray[np.bool_],
        queries: Queries,
        names: list[str],
    ) -> tuple[Floats, Floats, str]:
        """Return depth and probability for each query and retriever, (n_queries, m), and the sentence."""
        shape = len(queries), ranks.shape[1]
        if self.pool is None:
            depth = estimated_depths(ranks, is_judged, has_judged)
            reached = ", ".join(f"{name} {n}" for name, n in zip(names, depth.tolist(), strict=True))
            sentence = (
                f"The pool is estimated from the ranks of judged documents: at least half of the documents are judged "
                f"down to rank {reached}. Unjudged documents of these ranks count as irrelevant, others are left out."
            )
            return np.broadcast_to(depth.astype(np.float64), shape), np.ones(shape), sentence
        sentence = "The pool was given: unjudged documents inside it count as irrelevant, others are left out."
        if isinstance(self.pool, int | np.integer) and not isinstance(self.pool, bool):
            return np.full(shape, float(_as_depth(self.pool))), np.ones(shape), sentence
        if isinstance(self.pool, Mapping):
            unknown = [str(name) for name in self.pool if name not in names]
            if unknown:
                raise InputError(f"the pool names the retriever {unknown[0]!r}; {suggest_names(unknown[0], names)}.")
            if missing := [name for name in names if name not in self.pool]:
                raise InputError(f"the pool has no depth for {missing[0]!r}; pass 0 if its list was not judged.")
            depth = np.array([_as_depth(self.pool[name]) for name in names], dtype=np.float64)
            return np.broadcast_to(depth, shape), np.ones(shape), sentence
        depths, odds = np.zeros(shape), np.ones(shape)
        place = {query: q for q, query in enumerate(queries.ids.tolist())}
        text_place = {str(query): q for query, q in place.items()}
        column = {name: j for j, name in enumerate(names)}
        n_used = 0
        for query, retriever, depth, *probability in _pool_rows(self.pool):
            if retriever not in column:
                raise InputError(
                    f"the pool names the retriever {str(retriever)!r}; {suggest_names(str(retriever), names)}."
                )
            q = place.get(query, text_place.get(str(query)))
            if q is None:
                continue  # a pool may cover more queries than these
            n_used += 1
            depths[q, column[retriever]] = _as_depth(depth)
            if probability and probability[0] is not None and probability[0] == probability[0]:
                if not 0 < float(probability[0]) <= 1:
                    raise InputError(f"the pool has the probability {probability[0]}; pass numbers above 0 up to 1.")
                odds[q, column[retriever]] = float(probability[0])
        if not n_used:
            raise InputError("the pool has none of the queries of qid; pass rows (query, retriever, depth).")
        return depths, odds, sentence


def estimated_depths(ranks: Floats, is_judged: NDArray[Any], has_judged: NDArray[Any]) -> NDArray[np.int64]:
    """
    Return the depth to which the list of each retriever was judged, (m,).

    It is the largest d such that at least half of the documents of each rank up to d are judged, over the judged
    queries. Documents of irrelevant grade may not be listed at all: then only rank 1 tells, and the depth is small.

    >>> ranks = np.array([[1, 0], [2, 2], [3, 1]])
    >>> estimated_depths(ranks, np.array([True, True, False]), np.full(3, True)).tolist()
    [2, 0]
    """
    depths = np.zeros(ranks.shape[1], dtype=np.int64)
    for j in range(ranks.shape[1]):
        r = ranks[has_judged, j].astype(np.int64)
        n, n_judged = np.bincount(r), np.bincount(r, weights=is_judged[has_judged].astype(np.float64))
        is_deep = (n_judged[1:] >= _REACHED * n[1:]) & (n[1:] > 0)
        depths[j] = len(is_deep) if is_deep.all() else int(is_deep.argmin())
    return depths


@dataclass(frozen=True)
class PoolSource:
    """
    The one retriever whose list explains which documents were judged.

    retriever: position of its column.
    depth: all judged documents are among its first so many.
    n_judged: number of judged documents.
    """

    retriever: int
    depth: int
    n_judged: int

    def sentence(self, retrievers: Sequence[str]) -> str:
        """Return a warning."""
        others = [name for j, name in enumerate(retrievers) if j != self.retriever]
        return (
            f"all {self.n_judged} judged documents come from the top {self.depth} of {retrievers[self.retriever]}; "
            f"weights of {', '.join(others)} cannot be learnt from them. Judge the top of the other lists, too."
        )


def one_source(ranks: NDArray[Any], y: Floats) -> PoolSource | None:
    """
    Return the one retriever whose list was judged, or None if no single list explains the judged documents.

    All judged documents are among the first d of its list, and the share of judged documents among the first d of the
    other lists is at most half of its own. If all its first d are judged, that is the pool unless another list has
    nearly the same documents: then the other share is at most nine tenths.

    >>> ranks = np.array([[1, 4], [2, 0], [0, 1], [0, 2]])
    >>> one_source(ranks, np.array([1.0, 0.0, np.nan, np.nan]))
    PoolSource(retriever=0, depth=2, n_judged=2)
    """
    is_judged = ~np.isnan(y)
    if ranks.shape[1] < 2 or not is_judged.any():
        return None
    far = np.iinfo(np.int64).max
    deepest = np.where(ranks[is_judged] > 0, ranks[is_judged], far).max(axis=0)
    source = int(deepest.argmin())
    depth, is_top = int(deepest[source]), (ranks > 0) & (ranks <= deepest[source])
    share = (is_top & is_judged[:, None]).sum(axis=0) / np.maximum(is_top.sum(axis=0), 1)
    if (
        depth == far
        or np.delete(share, source).max() > (_OTHERS if share[source] >= _WHOLE else _REACHED) * share[source]
    ):
        return None
    return PoolSource(source, depth, int(is_judged.sum()))


def _as_ranks(ranks: ArrayLike | None, n_rows: int) -> Floats:
    if ranks is None:
        raise InputError("unjudged='pooled' needs ranks, one column per retriever; pass ranks, or another policy.")
    table = np.asarray(ranks, dtype=np.float64)
    if table.ndim != 2 or len(table) != n_rows:
        raise InputError(f"ranks has shape {table.shape}; pass one row for each of the {n_rows} grades.")
    table = np.where(np.isnan(table), 0.0, table)
    if (table < 0).any() or (table != np.floor(table)).any():
        raise InputError("ranks holds a number that is not a rank; pass whole numbers from 1, and 0 for absent rows.")
    return table


def _as_depth(value: Any) -> int:
    if isinstance(value, bool) or value != value or int(value) != value or value < 0:
        raise InputError(f"the pool has the depth {value!r}; pass a whole number of at least 0.")
    return int(value)


def _pool_rows(pool: Any) -> Iterable[Sequence[Any]]:
    """Yield (query, retriever, depth[, probability]) from a frame or from tuples."""
    columns = [str(name) for name in getattr(pool, "columns", ())]
    if columns:
        wanted = ["query", "retriever", "depth", *(["probability"] if "probability" in columns else [])]
        if lacking := [name for name in wanted if name not in columns]:
            raise InputError(f"the pool has no column {lacking[0]!r}; its columns are query, retriever and depth.")
        return zip(*(list(pool[name]) for name in wanted), strict=True)
    rows = list(pool) if isinstance(pool, Iterable) and not isinstance(pool, str) else []
    if not rows or any(isinstance(row, str) or len(row) not in (3, 4) for row in rows):
        raise InputError("pool must be a depth, a depth per retriever, or rows (query, retriever, depth).")
    return rows


def presumed_negatives(
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    n: int = 100,
    weight: float = 0.1,
    score: float = 0.0,
    random_state: int | None = None,
) -> tuple[Floats, Floats]:
    """Return grades and weights of `PoolPolicy` with unjudged="irrelevant"; the old name, removed in 0.4."""
    warnings.warn(
        'presumed_negatives is now corank.data.PoolPolicy("irrelevant", weight=0.1, max_rows=100).apply(y, qid=qid); '
        "the old name is removed in 0.4.",
        FutureWarning,
        stacklevel=2,
    )
    rows = PoolPolicy("irrelevant", weight=weight, grade=score, max_rows=n, random_state=random_state).apply(y, qid=qid)
    return rows.y, rows.weights
