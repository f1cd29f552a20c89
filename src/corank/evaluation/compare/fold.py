"""What a method is handed to learn from, and how its parameters may be tuned on that alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.estimator import ColumnMean, OnTop
from corank.estimator.search import QuerySearchCV
from corank.evaluation.compare.problem import comparable, deal, deal_rows
from corank.metrics import Convention, parse_metric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

INNER_FOLDS = 3
"""Folds inside the training part, by which a grid is searched."""

# scored rows of a single query that are enough to hold some of them out
_ENOUGH = 8


@dataclass(frozen=True, eq=False)
class Settings:
    """
    What all trials of a comparison share.

    metric: what parameters are chosen by.
    convention: how its name is read.
    seed: of every draw.
    prior: columns that are scores already, which rankers learn on top of; None where there are none.
    """

    metric: str
    convention: Convention
    seed: int
    prior: tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Trial:
    """
    A training part, and what a method needs to know to be made for it.

    X, y, qid: the rows; NaN marks unscored ones.
    settings: what all trials share.
    dice: seeds of this trial's draws.
    """

    X: Any
    y: Floats
    qid: Ints
    settings: Settings
    dice: tuple[int, ...]

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
        """Whether some query holds two unscored rows, for views to agree on."""
        queries = self.qid[np.isnan(self.y)]
        return len(np.unique(queries)) < len(queries)

    @cached_property
    def n_comparable(self) -> int:
        """Number of queries that hold a pair to learn from."""
        return len(comparable(self.y[self.scored], self.qid[self.scored]))

    @cached_property
    def splits(self) -> list[tuple[Ints, Ints]]:
        """
        Inner folds: rows to learn from, and rows of other queries to judge by.

        Where one query holds all pairs its rows are dealt; empty where there is too little to hold anything out.
        """
        rng, scored = np.random.default_rng(self.dice), self.scored
        holds = comparable(self.y[scored], self.qid[scored])
        fold = np.full(len(self.y), -1)
        if len(holds) > 1:
            among = scored[np.isin(self.qid[scored], holds)]
            dealt = deal(self.y[among], self.qid[among], min(INNER_FOLDS, len(holds)), rng)
            judged = np.isin(self.qid, holds)
            fold[judged] = dealt[np.searchsorted(holds, self.qid[judged])]
        elif len(scored) >= _ENOUGH:
            fold[scored] = deal_rows(self.y[scored], INNER_FOLDS, rng)
        return [(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(fold.max() + 1)]

    @property
    def left_out_by(self) -> str | None:
        """The metric of a path's leave-query-out; None where nothing can be left out."""
        if self.n_comparable > 1:
            return self.settings.metric
        return "disagreement" if len(self.scored) >= _ENOUGH else None

    def ratios(self, low: float, high: float, per_decade: int = 1) -> list[float]:
        """
        Return candidates for alpha of a linear model: powers of ten times the number of columns.

        Scaled columns have deviation 1, so that pairs are about as far apart as there are columns.
        """
        n = round((high - low) * per_decade) + 1
        return [float(f"{self.n_features * 10.0**power:.6g}") for power in np.linspace(low, high, n)]

    def on_prior(self, ranker: Any) -> Any:
        """Put a ranker on top of the columns that are scores already, where there are any."""
        prior = self.settings.prior
        return ranker if prior is None else OnTop(ColumnMean(list(prior)), ranker)

    def searched(self, ranker: Any, grid: Mapping[str, list[Any]]) -> Any:
        """Return a search over a grid of a ranker's parameters, or the ranker alone where nothing can be held out."""
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
    def forces(self) -> str:
        """The forces of LambdaRank that serve the metric."""
        served = {"nDCG": "ndcg", "AP": "map", "RR": "mrr", "ERR": "err", "WTA": "wta"}
        return served.get(parse_metric(self.settings.metric).measure.name, "ranknet")
