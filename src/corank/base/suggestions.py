"""
Choose the rows to judge next.

1. **Query.** A query with a single judged row comes first, since one judgement makes no pair; then the query with the
   fewest judged rows. Suggested rows count as judged. Ties go to the query that appears first. Queries with a single
   row come last.
2. **Row.** The unjudged row with the highest value; ties go to the first row.
3. **Near-duplicates.** A row whose cosine with an earlier suggestion of its query is `similar` or more is skipped while
   the query has other rows.

Cost: one prediction of all rows, one evaluation of the strategy per chosen query, and one similarity to every row of
the query per suggestion.
"""

from __future__ import annotations

import heapq
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from corank.base.docs import fill_choices
from corank.data.inputs import as_scores
from corank.data.queries import Queries
from corank.data.routing import predict_with_qid, transform_with_qid
from corank.data.rows import as_rows, encode_categories, encode_like
from corank.errors import InputError, suggest_names
from corank.parameters import check_values, integer, number, rng_of, seed

Integers = NDArray[np.int64]


def suggest(
    model: Any,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    n: int = 10,
    strategy: Any = "uncertain",
    *,
    similar: float = 0.9,
    random_state: Any = None,
) -> Integers:
    """
    Choose the rows to judge next.

    Each suggestion first chooses a query: one with a single judged row, which makes no pair yet, else the one with the
    fewest judged rows. Suggested rows count as judged. Then it takes the unjudged row with the highest value.

    Parameters
    ----------
    model : fitted Ranker, regressor, Pipeline or search, or None
        Model that scores the rows. None if no row is judged yet, or if the strategy needs no scores.
    X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
        All rows, judged or not.
    y : array-like of shape (n_rows,)
        Judgements; NaN marks an unjudged row.
    qid : array-like of shape (n_rows,), optional
        One query id per row; None means one query.
    n : int
        Number of rows; fewer are returned if fewer are unjudged.
    strategy : str or callable
        Which rows are most valuable, a name of `corank.base.STRATEGIES`:
        {choices}
        A function takes a `Pool` and returns one value per row.
    similar : float
        Cosine from which a row counts as a near-duplicate of an earlier suggestion and is skipped, while its query has
        other rows. It is measured in the space of the model's last step. A value above 1 skips no row.
    random_state : int, RandomState or None
        Random seed.

    Returns
    -------
    array of int64
        Row numbers, the first to be judged first.

    Examples
    --------
    >>> from corank import RankRLS
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0, float("nan"), float("nan"), float("nan"), 1]
    >>> model = RankRLS().fit(X, y)
    >>> suggest(model, X, y, n=1).tolist(), suggest(model, X, y, n=1, strategy="top").tolist()
    ([2], [3])
    """
    name, value = find_strategy(strategy)
    check_values(
        {"n": n, "similar": similar, "random_state": random_state},
        {"n": integer(0), "similar": number(0), "random_state": seed},
    )
    predictions = _predict(model, X, qid)
    scores = as_scores(y, predictions.X.shape[0])
    queries = Queries.of(qid, len(scores))
    rng = rng_of(random_state)
    walks: dict[int, Iterator[int]] = {}
    chosen = []
    for _, q in zip(range(n), _queries_in_turn(queries, np.isnan(scores)), strict=False):
        if q not in walks:
            rows, pool = _pool(predictions, scores, queries, q, rng)
            walks[q] = _walk(rows, pool, values_of(value, name, pool), similar)
        chosen.append(next(walks[q]))
    return np.array(chosen, dtype=np.int64)


class _Predictions(NamedTuple):
    """Rows of norm 1 in the space of the model's last step, with scores and standard deviations."""

    X: Any
    scores: Floats | None
    std: Floats | None


def _predict(model: Any, X: Any, qid: ArrayLike | None) -> _Predictions:
    """Transform the rows once and predict; without a model only the rows are returned."""
    if model is None:
        return _Predictions(_unit_rows(encode_categories(X)), None, None)
    X = encode_like(X, getattr(model, "feature_names_in_", None))
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if isinstance(model, Pipeline) and len(model) > 1:
        X, model = transform_with_qid(model[:-1], X, qid), model[-1]
    if "return_std" in inspect.signature(model.predict).parameters:
        scores, std = model.predict(X, return_std=True)
        return _Predictions(_unit_rows(X), np.asarray(scores, dtype=np.float64), np.asarray(std, dtype=np.float64))
    return _Predictions(_unit_rows(X), predict_with_qid(model, X, qid).astype(np.float64), None)


def _unit_rows(X: Any) -> Any:
    """Rows of norm 1; columns of a dense table are standardised first."""
    rows = as_rows(X)
    if not sparse.issparse(rows):
        deviation = rows.std(axis=0)
        varies = deviation > 1e-12 * np.abs(rows).max(axis=0, initial=0.0)  # not only by rounding
        rows = np.where(varies, rows - rows.mean(axis=0), 0.0) / np.where(varies, deviation, 1.0)
    return normalize(rows)


def _queries_in_turn(queries: Queries, is_open: NDArray[np.bool_]) -> Iterator[int]:
    """Queries by priority, each as often as it has unjudged rows."""
    judged = np.bincount(queries.codes[~is_open], minlength=len(queries))
    heap = [(_priority(size, count), q) for q, (size, count) in enumerate(zip(queries.sizes, judged, strict=True))]
    heap = [entry for entry in heap if judged[entry[1]] < queries.sizes[entry[1]]]
    heapq.heapify(heap)
    while heap:
        q = heap[0][1]
        yield q
        judged[q] += 1
        if judged[q] < queries.sizes[q]:
            heapq.heapreplace(heap, (_priority(queries.sizes[q], judged[q]), q))
        else:
            heapq.heappop(heap)


def _priority(size: int, judged: int) -> tuple[bool, bool, int]:
    """Sort key of a query; the smallest comes first."""
    return bool(size < 2), bool(judged != 1), int(judged)


def _pool(
    predictions: _Predictions, y: Floats, queries: Queries, q: int, rng: np.random.Generator
) -> tuple[Integers, Pool]:
    """Row numbers of a query, and its `Pool`."""
    rows = queries.order[queries.starts[q] : queries.starts[q + 1]]
    scores, std = (None if values is None else values[rows] for values in (predictions.scores, predictions.std))
    return rows, Pool(predictions.X if len(queries) == 1 else predictions.X[rows], y[rows], scores, std, rng)


def _walk(rows: Integers, pool: Pool, values: Floats, similar: float) -> Iterator[int]:
    """Unjudged rows of one query by decreasing value, near-duplicates of earlier ones last."""
    left = np.flatnonzero(~pool.is_judged)
    left = left[np.argsort(-values[left], kind="stable")]
    nearest = np.full(len(rows), -np.inf)
    while len(left):
        repeats = nearest[left] >= similar
        i = int(repeats.argmin())  # the first that is not a near-duplicate; the first of all if all are
        pick = left[i]
        yield int(rows[pick])
        left = np.delete(left, i)
        item = pool.X[[pick]].toarray()[0] if sparse.issparse(pool.X) else pool.X[pick]
        np.maximum(nearest, pool.X @ item, out=nearest)


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pool:
    """
    The rows of one query, as a strategy receives them.

    A strategy is a function of a `Pool` that returns one value per row. Values of judged rows are ignored, and values
    of different queries are never compared.

    X: The rows as the model's last step receives them, scaled to norm 1. Columns of a dense table are standardised
        first.
    """

    X: Any
    y: Floats  # judgements; NaN marks an unjudged row
    scores: Floats | None  # predicted scores; None without a model
    std: Floats | None  # standard deviations of the scores, if ``predict`` takes ``return_std``
    rng: np.random.Generator  # random generator

    @property
    def is_judged(self) -> NDArray[np.bool_]:
        """Whether each row is judged."""
        return ~np.isnan(self.y)


Strategy = Callable[[Pool], Any]


def uncertain(pool: Pool) -> Floats:
    """
    Rows whose score is nearest to the border between good and bad.

    The value is −|f − t|, divided by the standard deviation of f if the model returns one. t is halfway between the
    mean scores of rows judged good and bad, i.e. above the middle of the judged grades or not. If all judged grades
    are equal, the unjudged rows take the other side. If no row is judged, rows are valued as by `representative`.
    """
    judged = pool.is_judged
    if not judged.any():
        return representative(pool)
    scores = _scores(pool, "uncertain")
    if judged.all():
        return np.zeros(len(scores))
    grades = pool.y[judged]
    good = judged.copy()
    good[judged] = grades > (grades.min() + grades.max()) / 2.0
    bad = judged & ~good if good.any() else ~judged
    t = (scores[good if good.any() else judged].mean() + scores[bad].mean()) / 2.0
    distance: Floats = np.abs(scores - t)
    return -distance if pool.std is None else -distance / np.maximum(pool.std, np.finfo(np.float64).tiny)


def top(pool: Pool) -> Floats:
    """Rows with the highest score; without a model and judgements, as `representative`."""
    if pool.scores is None and not pool.is_judged.any():
        return representative(pool)
    return _scores(pool, "top")


def representative(pool: Pool) -> Floats:
    """Rows with the highest mean similarity to the rows of the query, minus that to the judged rows."""
    judged = pool.is_judged
    centre = np.asarray(pool.X.mean(axis=0)).ravel()
    if judged.any():
        centre = centre - np.asarray(pool.X[np.flatnonzero(judged)].mean(axis=0)).ravel()
    return np.asarray(pool.X @ centre, dtype=np.float64)


def random(pool: Pool) -> Floats:
    """Random rows."""
    return pool.rng.random(len(pool.y))


STRATEGIES: dict[str, Strategy] = {f.__name__: f for f in (uncertain, top, representative, random)}
"""Strategies by name; help, docstring and guide take the first sentence of each docstring."""
fill_choices(suggest, STRATEGIES)


def find_strategy(strategy: Any) -> tuple[str, Strategy]:
    """Return the name of a strategy, and its function; `strategy` is either of them."""
    if callable(strategy):
        return getattr(strategy, "__name__", type(strategy).__name__), strategy
    if not (isinstance(strategy, str) and strategy in STRATEGIES):
        names = suggest_names(str(strategy), list(STRATEGIES))
        raise InputError(f"strategy is {strategy!r}; {names}, or pass a function of a Pool.")
    return strategy, STRATEGIES[strategy]


def values_of(strategy: Strategy, name: str, pool: Pool) -> Floats:
    """Evaluate a strategy, and check the values."""
    values = np.asarray(strategy(pool), dtype=np.float64)
    if values.shape != pool.y.shape:
        raise InputError(
            f"{name} returned values of shape {values.shape} for {len(pool.y)} rows; return one value per row."
        )
    if np.isnan(values[~pool.is_judged]).any():
        raise InputError(f"{name} returned NaN for an unjudged row; return numbers.")
    return values


def _scores(pool: Pool, name: str) -> Floats:
    if pool.scores is None:
        raise InputError(f"strategy={name!r} needs scores, but model is None; pass a fitted model.")
    return pool.scores
