"""
ValidationFolds: folds of judged queries, and the value of scores that models gave to queries they had not seen.

If only one query has judgements, its rows are assigned to folds in the order of their scores, and each fold is
evaluated as a list of its own, since scores of different models cannot be compared. Folds depend on the content of
queries, not on their order or names.

A row may occur in several queries, such as a product. Models that score it are then fitted without its judgements in
all queries: otherwise a model that remembers rows would look better than it is on new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from corank.base.held_out import judged_units, keep_judgements
from corank.data.ranking import RankingData
from corank.data.scoring import score_columns
from corank.data.splits import keep_scores, shared_rows
from corank.metrics import parse_metric
from corank.metrics.conventions import find_convention
from corank.metrics.judgements import Judgements

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# whole grades up to this one are evaluated by nDCG@10, other scores by the share of pairs in the right order
_LARGEST_GRADE = 10.0
# rows of one query that a fold needs
_FEWEST = 4

ONE_QUERY = "parts of one query"
SHARED_ROWS = "queries, whose rows were not learnt from in other queries either"
"""What lists are if they are not simply queries."""


@dataclass(frozen=True, eq=False)
class ValidationFolds:
    """
    Judged rows in folds.

    shared (n_rows,): first row of the problem that equals each row, see
        `shared_rows`; None if no row is in two lists.
    """

    data: RankingData  # the problem, without the scores of rows of weight 0
    metric: str  # name of the metric
    rows: Integers  # (n,): numbers of the rows that are left out once, ascending
    lists: Integers  # (n,): the list in which each row is evaluated: its query, or its fold if one query is judged
    folds: Integers  # (n,): the fold that leaves out each row
    shared: Integers | None = None

    @classmethod
    def of(cls, data: RankingData, metric: str | None, rng: np.random.Generator) -> ValidationFolds | None:
        """Deal judgements to folds."""
        result = cls._dealt(data, metric, rng)
        if result is None or result.shared is None:
            return result
        return result if all(part.n_pairs > 0 for part, _ in result.parts()) else None

    @classmethod
    def _dealt(cls, data: RankingData, metric: str | None, rng: np.random.Generator) -> ValidationFolds | None:
        if data.y is not None and data.weights is not None:
            data = keep_scores(data, data.weights > 0.0)
        units, query = judged_units(data)
        rows = units if data.pairs is None else np.unique(data.pairs[units])
        judged = np.intersect1d(query, np.flatnonzero(data.pairs_per_query > 0))
        rows = rows[np.isin(data.queries.codes[rows], judged)]
        metric = str(parse_metric(metric)) if metric else _default_metric(data)
        n_folds, n_used = schedule(len(judged), len(rows))
        if len(judged) > 1:
            dealt = rng.permutation(judged[np.argsort(_contents(data, rows, judged), kind="stable")])
            place = np.zeros(len(data.queries), dtype=np.int64)
            place[dealt] = np.arange(len(dealt))
            place = place[data.queries.codes[rows]]
            kept = place % n_folds < n_used
            lists = np.unique(place[kept], return_inverse=True)[1]
            shared = shared_rows(data.X, data.queries.codes, rows)
            return cls(data, metric, rows[kept], lists, place[kept] % n_folds, shared)
        if data.y is None or len(rows) < 2 * _FEWEST:
            return None
        folds = np.empty(len(rows), dtype=np.int64)
        folds[np.argsort(data.y[rows], kind="stable")] = np.arange(len(rows)) % min(5, len(rows) // _FEWEST)
        groups = np.full(data.n_rows, -1)
        groups[rows] = folds
        return cls(data, metric, rows, folds, folds, shared_rows(data.X, groups, rows))

    @property
    def metric_name(self) -> str:
        """Name of what `values` returns."""
        return self.metric if parse_metric(self.metric).measure.larger_is_better else f"1 − {self.metric}"

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    @property
    def n_lists(self) -> int:
        """Number of lists that are evaluated."""
        return int(self.lists.max()) + 1

    @property
    def is_by_query(self) -> bool:
        """Whether whole queries are left out."""
        return self.lists is not self.folds

    @property
    def list_kind(self) -> str:
        """What the lists are, in words."""
        if not self.is_by_query:
            return ONE_QUERY
        return "queries" if self.shared is None else SHARED_ROWS

    def parts(self, most: int | None = None) -> Iterator[tuple[RankingData, NDArray[np.bool_]]]:
        """Yield the problem without each fold, and which of `rows` the fold leaves out."""
        n_parts = self.n_folds if most is None else min(most, self.n_folds)
        for part in range(n_parts):
            out = self.folds % n_parts == part
            kept = np.ones(self.data.n_rows, dtype=bool)
            kept[self.rows[out]] = False
            if self.shared is not None:
                kept &= ~np.isin(self.shared, self.shared[self.rows[out]])
            pairs = self.data.pairs
            yield keep_judgements(self.data, kept if pairs is None else np.all(kept[pairs], axis=1)), out

    def values(self, scores: Floats) -> Floats:
        """Return the value of scores in each list, larger is better; NaN where the metric is not defined."""
        if self.data.pairs is not None:
            (winners, losers), w, lists = self._preferences
            gap = scores[winners] - scores[losers]
            right = ((gap > 0.0) + 0.5 * (gap == 0.0)).T * w
            sums = [np.bincount(lists, of_one, self.n_lists) for of_one in np.atleast_2d(right)]
            return np.asarray(np.array(sums) / np.bincount(lists, w)).T.reshape(-1, *scores.shape[1:])
        metric, m = parse_metric(self.metric), int(np.prod(scores.shape[1:]))
        # the lists of all models are evaluated together
        matches = metric.result(replace(self._judged(m), scores=scores[self._order].T.ravel())).values
        matches = matches.reshape(m, -1).T.reshape(-1, *scores.shape[1:])
        return matches if metric.measure.larger_is_better else 1.0 - matches

    def correlations(self, scores: Floats) -> Floats:
        """Return the correlation of scores (n, m) and grades in each list; of preferences, 2 share right − 1."""
        if self.data.pairs is not None:
            return 2.0 * self.values(scores) - 1.0
        Z, t, lists = self.standardised(scores)
        products, squares = (np.array([np.bincount(lists, column, self.n_lists) for column in part.T]).T
                             for part in (Z * t[:, None], Z * Z))  # fmt: skip
        result = np.divide(products, np.sqrt(squares), out=np.zeros_like(products), where=squares > 0.0)
        return np.where(np.bincount(lists, t * t, self.n_lists)[:, None] > 0.0, result, np.nan)

    def standardised(self, scores: Floats) -> tuple[Floats, Floats, Integers]:
        """
        Return Z, t and the list of each of their rows, such that |Z w − t|² is a sum over lists.

        Each list adds the mean of (scores w − grades)², both centred, with grades of variance 1; of preferences, the
        mean of (gap w − 1)². Lists of equal grades have zeros.
        """
        if self.data.pairs is not None:
            (winners, losers), w, lists = self._preferences
            share = np.sqrt(w / np.bincount(lists, w)[lists])
            return share[:, None] * (scores[winners] - scores[losers]), share, lists
        assert self.data.y is not None
        sizes = np.bincount(self.lists)
        columns = (self.data.y[self.rows], *scores.T)
        t, *centred = [f - (np.bincount(self.lists, f) / sizes)[self.lists] for f in columns]
        deviation = np.sqrt(np.bincount(self.lists, t * t) / sizes)
        share = np.where(deviation > 0.0, 1.0 / np.sqrt(sizes), 0.0)[self.lists]
        return (
            share[:, None] * np.column_stack(centred),
            share * t / np.where(deviation > 0.0, deviation, 1.0)[self.lists],
            self.lists,
        )

    def spread(self, scores: Floats) -> float:
        """Return the standard deviation of scores inside the lists, see `spread_inside`."""
        return _spread(scores, self.lists, self.data.weight_of(self.rows))

    @cached_property
    def _order(self) -> Integers:
        return np.argsort(self.lists, kind="stable")

    def _judged(self, m: int) -> Judgements:
        """Return the lists, m times."""
        if m not in self._tiled:
            assert self.data.y is not None
            begins = np.searchsorted(self.lists[self._order], np.arange(self.n_lists))
            n, grades = len(self.rows), np.tile(self.data.y[self.rows][self._order], m)
            starts = np.append((begins + n * np.arange(m)[:, None]).ravel(), m * n)
            ids = np.arange(m * self.n_lists)
            self._tiled[m] = Judgements(ids, starts, grades, grades, find_convention("corank"), None, 0, 1)
        return self._tiled[m]

    @cached_property
    def _tiled(self) -> dict[int, Judgements]:
        return {}

    @cached_property
    def _preferences(self) -> tuple[Integers, Floats, Integers]:
        assert self.data.pairs is not None
        kept = (self.data.pair_weight > 0.0) & np.isin(self.data.pairs[:, 0], self.rows)
        places = np.searchsorted(self.rows, self.data.pairs[kept].T)
        return places, self.data.pair_weight[kept], self.lists[places[0]]


def spread_inside(data: RankingData, scores: Floats) -> float:
    """Return the standard deviation of the scores of all rows inside queries, by their weights; 1 if it is 0."""
    return _spread(scores, data.queries.codes, data.weight_of(np.arange(data.n_rows)))


def is_constant_inside(data: RankingData, scores: Floats) -> bool:
    """Return whether all rows of each query have the same score."""
    first = scores[data.queries.order[data.queries.starts[:-1]]]
    return bool((scores == first[data.queries.codes]).all())


def inside_deviation(scores: Floats, lists: Integers) -> float:
    """Return the standard deviation of scores inside lists."""
    gaps = scores - (np.bincount(lists, scores) / np.bincount(lists))[lists]
    return float(np.sqrt(np.mean(gaps**2)))


def _spread(scores: Floats, lists: Integers, w: Floats) -> float:
    total = np.bincount(lists, w)
    mean = np.bincount(lists, w * scores) / np.where(total > 0.0, total, 1.0)
    return float(np.sqrt(w @ (scores - mean[lists]) ** 2 / w.sum())) or 1.0


def schedule(n_queries: int, n_rows: int) -> tuple[int, int]:
    """Return the number of folds, and how many of them are used."""
    if n_queries <= 40:
        return min(n_queries, 10), min(n_queries, 10)
    return 5, 5 if n_rows <= 20_000 else 2 if n_rows <= 100_000 else 1


def _default_metric(data: RankingData) -> str:
    if data.y is None:
        return "disagreement"
    y = data.y[data.is_scored]
    return "nDCG@10" if ((y >= 0) & (y <= _LARGEST_GRADE) & (y == np.round(y))).all() else "disagreement"


def _contents(data: RankingData, rows: Integers, judged: Integers) -> Floats:
    """Return a number for each judged query that depends on its rows only: a sum of random projections of them."""
    direction = np.random.default_rng(0).normal(size=data.n_features)
    scale = np.abs(data.X[rows]).max(axis=0)
    scale = np.asarray(scale.toarray() if hasattr(scale, "toarray") else scale, dtype=np.float64).ravel()
    projected = score_columns(data.X[rows], direction / np.where(scale > 0.0, scale, 1.0)) * data.weight_of(rows)
    sums = np.bincount(data.queries.codes[rows], projected, len(data.queries))[judged]
    # equal up to rounding, in whatever order the rows are added
    return np.asarray([float(f"{value:.9g}") for value in sums])
