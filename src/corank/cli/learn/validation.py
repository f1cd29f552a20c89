"""A validation file of `corank fit`: what it chooses, and how good the model is on it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import clone

from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.metrics import scorer
from corank.metrics.scorer import MetricScorer

ALPHAS = tuple(10.0**power for power in range(-5, 2))
"""Weights of the penalty that are tried beside the model's own choice."""


@dataclass(frozen=True)
class Validation:
    """
    Judged rows that the model does not learn from.

    path, rows: the file, and what it holds.
    metric, convention: what models are compared by.
    """

    path: Path
    rows: RankingData
    metric: str
    convention: str

    def require_features(self, n_features: int) -> None:
        """Refuse rows of other features than the model learns from."""
        if self.rows.n_features != n_features:
            raise InputError(
                f"{self.path} has {self.rows.n_features} features, but the data has {n_features}; validate on rows of "
                "the same features."
            )

    def value(self, fitted: Any) -> float:
        """Return how good a model is: larger is better."""
        y: Any = self.rows.y
        return float(self._judge(fitted, self.rows.X, y, qid=self.rows.queries.codes))

    def mean(self, fitted: Any) -> float:
        """Return the mean of the metric."""
        value = self.value(fitted)
        return value if self._judge.metric.measure.larger_is_better else -value

    @property
    def _judge(self) -> MetricScorer:
        return scorer(self.metric, convention=self.convention)

    def choose(self, ranker: Any, whole: Callable[[Any], Any], fit: Callable[[Any], None]) -> str:
        """
        Choose the weight of the penalty, where the model has one that was not given, and set it.

        ranker: not fitted yet.
        whole: puts a ranker into its pipeline.
        fit: fits a pipeline.
        Returns: what was chosen, in words.
        """
        if not can_choose(ranker):
            return ""
        best: tuple[float, float | None] = (-float("inf"), None)
        for alpha in (None, *ALPHAS):
            candidate = clone(ranker) if alpha is None else clone(ranker).set_params(alpha=alpha)
            model = whole(candidate)
            fit(model)
            found = self.value(model)
            if found > best[0]:
                best = (found, alpha)
        if best[1] is None:
            return f"its own alpha, the best of {len(ALPHAS) + 1}"
        ranker.set_params(alpha=best[1])
        return f"alpha {best[1]:g}, the best of {len(ALPHAS) + 1}"


def can_choose(ranker: Any) -> bool:
    """Whether there is a weight of the penalty, and it was left open."""
    default = inspect.signature(type(ranker)).parameters.get("alpha")
    return default is not None and ranker.alpha == default.default


def watches(ranker: Any) -> bool:
    """Whether a ranker looks at other rows while it learns."""
    return "eval_set" in inspect.signature(ranker.fit).parameters
