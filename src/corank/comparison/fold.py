"""The training part of a fold, and how methods tune their parameters within it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base import ColumnMean, ResidualRanker
from corank.base.search import QuerySearchCV
from corank.comparison.problem import assign_folds, assign_groups, comparable
from corank.metrics import Convention, parse_metric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

INNER_FOLDS = 3
"""Inner folds of a grid search."""

# scored rows of a single query from which some can be held out
_ENOUGH = 8


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings shared by all fits of a comparison."""

    metric: str  # metric that tuning optimises
    convention: Convention
    seed: int  # random seed
    prior: tuple[int, ...] | None  # columns that hold prior scores, or None


@dataclass(frozen=True, eq=False)
class TrainingPart:
    """The training part of a fold."""

    X: Any  # X, y, qid: rows; NaN in y marks unjudged ones
    y: Floats
    qid: Ints
    settings: Settings
    seeds: tuple[int, ...]  # random seeds of this part

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @cached_property
    def scored(self) -> Ints:
        """Scored rows."""
        return np.flatnonzero(~np.isnan(self.y))

    @cached_property
    def has_unscored_pairs(self) -> bool:
        """Whether some query has two unjudged rows, on which views can agree."""
        queries = self.qid[np.isnan(self.y)]
        return len(np.unique(queries)) < len(queries)

    @cached_property
    def n_comparable(self) -> int:
        """Number of queries with two different scores."""
        return len(comparable(self.y[self.scored], self.qid[self.scored]))

    @cached_property
    def splits(self) -> list[tuple[Ints, Ints]]:
        """
        Inner folds: training rows, and test rows of other queries.

        If one query has all pairs, its rows are split; empty if there are too few rows.
        """
        rng, scored = np.random.default_rng(self.seeds), self.scored
        holds = comparable(self.y[scored], self.qid[scored])
        fold = np.full(len(self.y), -1)
        if len(holds) > 1:
            among = scored[np.isin(self.qid[scored], holds)]
            fold_of_query = assign_folds(self.y[among], self.qid[among], min(INNER_FOLDS, len(holds)), rng)
            judged = np.isin(self.qid, holds)
            fold[judged] = fold_of_query[np.searchsorted(holds, self.qid[judged])]
        elif len(scored) >= _ENOUGH:
            fold[scored] = assign_groups(self.y[scored], INNER_FOLDS, rng)
        return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(fold.max() + 1)]

    @property
    def left_out_by(self) -> str | None:
        """Metric of leave-query-out tuning; None if nothing can be left out."""
        if self.n_comparable > 1:
            return self.settings.metric
        return "disagreement" if len(self.scored) >= _ENOUGH else None

    def ratios(self, low: float, high: float, per_decade: int = 1) -> list[float]:
        """
        Return candidates for alpha of a linear model: powers of ten times the number of columns.

        Scaled columns have deviation 1, so the squared distance of a pair grows with the number of columns.
        """
        n = round((high - low) * per_decade) + 1
        return [float(f"{self.n_features * 10.0**power:.6g}") for power in np.linspace(low, high, n)]

    def on_prior(self, ranker: Any) -> Any:
        """Combine a ranker with the prior columns, if there are any."""
        prior = self.settings.prior
        return ranker if prior is None else ResidualRanker(ColumnMean(list(prior)), ranker)

    def searched(self, ranker: Any, grid: Mapping[str, list[Any]]) -> Any:
        """Return a grid search for a ranker, or the ranker itself if nothing can be held out."""
        ranked = self.on_prior(ranker)
        if not self.splits:
            return ranked
        under = "" if self.settings.prior is None else "ranker__"
        return QuerySearchCV(
            ranked,
            {under + name: values for name, values in grid.items()},
            metric=self.settings.metric,
            convention=self.settings.convention,
            cv=self.splits,
        )

    @property
    def lambdas(self) -> str:
        """Name of the LambdaRank gradient for the metric."""
        served = {"nDCG": "ndcg", "AP": "map", "RR": "mrr", "ERR": "err", "WTA": "wta"}
        return served.get(parse_metric(self.settings.metric).measure.name, "ranknet")
