"""A minimal ranker for tests of the contract: least squares on differences within queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.base.base import Ranker
from corank.data.scoring import score_columns
from corank.parameters import Rules, number


@dataclass(frozen=True, eq=False)
class Weights:
    coef: NDArray[np.float64]


class PlainRanker(Ranker):
    """Minimise Σ over pairs (a, b) of w_ab ((t_a − t_b) − w·(a − b))² + alpha ‖w‖², by forming each pair's rows."""

    _rules: ClassVar[Rules] = {"alpha": number(0)}

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def _fit(self, data: Any, held: Any, rng: Any) -> Weights:
        X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X, dtype=np.float64)
        A, b = self.alpha * np.eye(data.n_features), np.zeros(data.n_features)
        for i, j, weight, gap in _pairs(data):
            p = X[i] - X[j]
            A += weight * np.outer(p, p)
            b += weight * gap * p
        return Weights(np.linalg.solve(A, b))

    def _score_rows(self, X: Any) -> NDArray[np.float64]:
        return score_columns(self._checked_rows(X), self.coef_)


def _pairs(data: Any) -> Any:
    if data.pairs is not None:
        for (i, j), weight, gap in zip(data.pairs, data.pair_weight, data.pair_targets, strict=True):
            yield i, j, weight, gap
        return
    w = data.weight_of(np.arange(data.n_rows))
    for q in range(len(data.queries)):
        rows = np.sort(data.order[data.starts[q] : data.scored_stops[q]])
        for k, i in enumerate(rows):
            for j in rows[:k]:
                yield i, j, w[i] * w[j], data.targets[i] - data.targets[j]
