"""
What to judge next: which query, which of its rows, and no row twice in other words.

1. **Which query.** A query with a single judged row comes first, since one judgement makes no pair; then the one with
   the fewest judged rows. Suggested rows count as judged; among equals the query that appears first is taken. Queries
   of a single row, which never make a pair, come last.
2. **Which row.** The unjudged row that the rule values highest; among equals the first.
3. **No repetition.** A row whose cosine with a suggested row of its query is `similar` or more is passed over while
   the query has others.

Costs one prediction of all rows, one evaluation of the rule for each query that is asked, and one similarity to every
row of the query for each suggestion.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.data.problem.inputs import as_scores
from corank.data.problem.queries import Queries
from corank.judging.suggestions.model import Seen, see
from corank.judging.suggestions.strategies import Floats, Pool, find_rule, values_of
from corank.parameters import check_values, number, rng_of, seed, whole

Integers = NDArray[np.int64]


def suggest(
    model: Any,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    n: int = 10,
    by: Any = "uncertain",
    *,
    similar: float = 0.9,
    random_state: Any = None,
) -> Integers:
    """
    Choose the rows to judge next.

    Every suggestion goes to a query first: one with a single judged row, which makes no pair yet, else the one with the
    fewest judged rows; suggested rows count as judged. In it, the unjudged row is taken that the rule values highest.

    Parameters
    ----------
    model : fitted Ranker, regressor, Pipeline or search, or None
        What scores rows. None where nothing is judged yet, or the rule needs no scores.
    X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
        All rows, judged or not.
    y : array-like of shape (n_rows,)
        Judgements; NaN where there is none.
    qid : array-like of shape (n_rows,), optional
        One query id per row; None puts all rows in one query.
    n : int
        Number of rows; fewer come where fewer are unjudged.
    by : {"uncertain", "top", "representative", "random"} or callable
        "uncertain": the smallest |f − t|, t halfway between the mean scores of rows judged good (above the middle of
        the query's judged grades) and bad, over the standard deviation of f where ``predict`` takes ``return_std``;
        where judged rows agree, unjudged rows stand for the other side. "top": the highest score. "representative":
        the highest mean similarity to the query's rows, less that to its judged rows. Where a query has no judged row,
        "uncertain", and "top" without a model, are "representative". A function takes a `Pool` and returns a value for
        each of its rows.
    similar : float
        Cosine from which a row repeats one suggested before it and is passed over, while its query has others; in the
        space that the model's last step sees. Above 1 nothing is passed over.
    random_state : int, RandomState or None
        Seed, for rules that throw dice.

    Returns
    -------
    array of int64
        Row numbers, the first to be judged first.

    Examples
    --------
    >>> from corank import RankRLS
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0, float("nan"), float("nan"), float("nan"), 1]
    >>> model = RankRLS().fit(X, y)
    >>> suggest(model, X, y, n=1).tolist(), suggest(model, X, y, n=1, by="top").tolist()
    ([2], [3])
    """
    name, rule = find_rule(by)
    given = {"n": n, "similar": similar, "random_state": random_state}
    check_values(given, {"n": whole(0), "similar": number(0), "random_state": seed})
    seen = see(model, X, qid)
    scores = as_scores(y, seen.X.shape[0])
    queries = Queries.of(qid, len(scores))
    rng = rng_of(random_state)
    found = _in_turn(queries, np.isnan(scores))
    walks: dict[int, Iterator[int]] = {}
    chosen = []
    for _, q in zip(range(n), found, strict=False):
        if q not in walks:
            rows, pool = _pool(seen, scores, queries, q, rng)
            walks[q] = _walk(rows, pool, values_of(rule, name, pool), similar)
        chosen.append(next(walks[q]))
    return np.array(chosen, dtype=np.int64)


def _in_turn(queries: Queries, is_open: NDArray[np.bool_]) -> Iterator[int]:
    """Queries in the order of their need, each as often as it has unjudged rows."""
    judged = np.bincount(queries.codes[~is_open], minlength=len(queries))
    heap = [(_need(size, count), q) for q, (size, count) in enumerate(zip(queries.sizes, judged, strict=True))]
    heap = [entry for entry in heap if judged[entry[1]] < queries.sizes[entry[1]]]
    heapq.heapify(heap)
    while heap:
        q = heap[0][1]
        yield q
        judged[q] += 1
        if judged[q] < queries.sizes[q]:
            heapq.heapreplace(heap, (_need(queries.sizes[q], judged[q]), q))
        else:
            heapq.heappop(heap)


def _need(size: int, judged: int) -> tuple[bool, bool, int]:
    """Sorts queries, the neediest first."""
    return bool(size < 2), bool(judged != 1), int(judged)


def _pool(seen: Seen, y: Floats, queries: Queries, q: int, rng: np.random.Generator) -> tuple[Integers, Pool]:
    """One query as a rule sees it, and which rows it has."""
    rows = queries.order[queries.starts[q] : queries.starts[q + 1]]
    scores, std = (None if values is None else values[rows] for values in (seen.scores, seen.std))
    return rows, Pool(seen.X if len(queries) == 1 else seen.X[rows], y[rows], scores, std, rng)


def _walk(rows: Integers, pool: Pool, values: Floats, similar: float) -> Iterator[int]:
    """Unjudged rows of one query by falling value, those that repeat an earlier one last."""
    left = np.flatnonzero(~pool.is_judged)
    left = left[np.argsort(-values[left], kind="stable")]
    nearest = np.full(len(rows), -np.inf)
    while len(left):
        repeats = nearest[left] >= similar
        at = int(repeats.argmin())  # the first that does not; the first of all where all do
        pick = left[at]
        yield int(rows[pick])
        left = np.delete(left, at)
        one = pool.X[[pick]].toarray()[0] if sparse.issparse(pool.X) else pool.X[pick]
        np.maximum(nearest, pool.X @ one, out=nearest)
