"""The grid of the MQ2008 experiment: squared loss at every share of regression and every penalty, fold by fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.metrics import evaluate
from corank.models.linear import CRR
from experiments.datasets.mq2008 import folds, read_parts
from experiments.options import ExperimentOptions

METRICS = ("AP", "MeanNDCG")
Floats = NDArray[np.float64]
TARGETS: dict[str, Callable[[Floats], Floats]] = {
    "grades": lambda y: y,
    "relevance": lambda y: (y > 0).astype(np.float64),
}
"""What is learnt of grades 0, 1, 2: the grades themselves, or 1 where they are above 0."""


class Point(NamedTuple):
    """One point of the grid."""

    query_weight: str
    mix: float
    alpha: float


@dataclass(frozen=True)
class Grid:
    """
    All results for one target.

    points: what was tried.
    values (n_points, 5 folds, 2 parts, 3 metrics): MAP, MeanNDCG and MSE on the validation and on the test part.
    """

    points: list[Point]
    values: Floats

    def of(self, keep: Callable[[Point], bool]) -> Grid:
        """
        Return a part of the grid.

        keep: whether a point belongs to it.
        """
        chosen = [at for at, point in enumerate(self.points) if keep(point)]
        return Grid([self.points[at] for at in chosen], self.values[chosen])

    def tuned(self, metric: int = 0) -> list[int]:
        """
        Choose for each fold the point with the highest validation value.

        metric: 0 for MAP, 1 for MeanNDCG.
        Returns: A point per fold.
        """
        return [int(at) for at in self.values[:, :, 0, metric].argmax(axis=0)]

    def test(self, choice: list[int]) -> Floats:
        """
        Return test MAP, MeanNDCG and MSE of a choice, averaged over the folds.

        choice: A point per fold.
        """
        return np.asarray(self.values[choice, np.arange(self.values.shape[1]), 1].mean(axis=0))


def measure_grid(options: ExperimentOptions, target: str, alphas: list[float], mixes: tuple[float, ...]) -> Grid:
    """
    Fit and measure every point that is not known yet.

    options: keeps the results.
    target: what is learnt, one of `TARGETS`.
    alphas, mixes: the sides of the grid.
    """
    points = [Point(weight, mix, alpha) for weight in ("pairs", "equal") for mix in mixes for alpha in alphas]
    options.expect(len(points))
    values = [
        options.result(
            {"experiment": "crr-letor", "target": target, **point._asdict()},
            lambda point=point: [_measure(target, point, fold) for fold in range(len(folds()))],  # type: ignore[misc]
        )
        for point in points
    ]
    return Grid(points, np.array(values))


def _measure(target: str, point: Point, number: int) -> list[list[float]]:
    fold = folds()[number]
    w, b = learn(target, point, fold.train)
    found = []
    for part in (fold.validation, fold.test):
        rows = read_parts((part,))
        scores = np.asarray(rows.X @ w + b)
        evaluation = evaluate(rows.y, scores, rows.qid, METRICS, convention="letor4", n_jobs=1)
        error = float(np.mean((TARGETS[target](rows.y) - scores) ** 2))
        found.append([*(evaluation[metric].mean for metric in METRICS), error])
    return found


def learn(target: str, point: Point, parts: tuple[int, ...]) -> tuple[Floats, float]:
    """
    Learn from parts of the collection.

    target: what is learnt, one of `TARGETS`.
    parts: training parts.
    Returns: weights and intercept.
    """
    model = CRR(scale=False, solver="exact", **point._asdict()).fit(_data(target, parts))
    return model.coef_, model.intercept_


@cache
def _data(target: str, parts: tuple[int, ...]) -> RankingData:
    rows = read_parts(parts)
    return RankingData.of(rows.X, TARGETS[target](rows.y), rows.qid)
