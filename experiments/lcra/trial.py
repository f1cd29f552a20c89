"""One trial of co-regularised ranking: every point of the grids fitted exactly, one chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from corank.base.pairs import Moments
from corank.base.pairs.factors import drawn_weight
from corank.base.solvers import squared_views
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.metrics import evaluate
from experiments.lcra.problems import ProblemSource, SplitRepeat

ALPHAS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
COUPLINGS = (0.01, 0.1, 1.0, 10.0)
N_FOLDS = 5
SMALLEST = 4
"""Scored rows that are kept at the least, however small the fraction."""

Floats = NDArray[np.float64]
GRIDS: dict[str, list[tuple[float, float]]] = {
    "SPD": [(alpha, 0.0) for alpha in ALPHAS],
    "SPD-MV": [(alpha, 0.0) for alpha in ALPHAS],
    "LCRA": [(alpha, coupling) for alpha in ALPHAS for coupling in COUPLINGS],
}
"""Points (alpha, coupling) of each method."""


class GridOutcome(TypedDict):
    """The point that cross-validation chose, and the test value of every point."""

    chosen: int
    values: list[float]


Outcomes = dict[str, GridOutcome]
"""Method to outcome."""


@dataclass(frozen=True, eq=False)
class GridSums:
    """
    Sums from which the squared loss of any views is solved, so that a grid reads the rows once.

    scored, unscored: sums over pairs of scored and of unscored rows.
    distinct: chance that two unscored rows drawn from one query are not the same row: LCRA's agreement is a mean over
        draws.
    """

    scored: Moments
    unscored: Moments
    distinct: float

    @classmethod
    def of(cls, data: RankingData) -> GridSums:
        """Sum over a problem."""
        unscored, drawn = Moments.of(data, rows="unscored"), drawn_weight(data, "pairs", "unscored")
        return cls(Moments.of(data), unscored, unscored.pair_weight / drawn if drawn > 0.0 else 0.0)

    def solve(self, views: Sequence[NDArray[np.int64]], alpha: float, coupling: float) -> Floats:
        """
        Find the weights that ``LCRA(scale=False, solver="exact")`` finds; with one view, those of SPD.

        views: columns of the views.
        alpha, coupling: weights of the penalty and of the agreement.
        Returns: the mean over views of each view's weights; 0 where no pair is scored.
        """
        if not self.scored.pair_weight > 0.0:
            return np.zeros(self.scored.n_features)
        sums = self.scored, self.unscored
        return squared_views(sums, views, alpha=alpha, coupling=coupling * self.distinct).coef


def draw_repeat(problem: ProblemSource, fraction: float, repeat: int, seed: int) -> tuple[SplitRepeat, Floats]:
    """
    SplitRepeat a repeat, and hide most of its training scores.

    problem: what is drawn from.
    fraction: share of the training rows that keep their score.
    repeat, seed: which repeat.
    Returns: the repeat, and the scores of its training rows, NaN where hidden.
    """
    draw = problem.draw(np.random.default_rng([seed, repeat]))
    y = draw.y[draw.train]
    hidden = min(1.0 - fraction, 1.0 - SMALLEST / len(y))
    return draw, mask_scores(y, fraction=hidden, random_state=repeat)


def try_grids(problem: ProblemSource, fraction: float, repeat: int, seed: int) -> Outcomes:
    """
    Fit and test every point of every grid, and choose one by cross-validation.

    problem: what is drawn from.
    fraction: share of the training rows that keep their score.
    repeat, seed: which repeat.
    Returns: method to outcome.
    """
    draw, y = draw_repeat(problem, fraction, repeat, seed)
    X, queries = draw.X[draw.train], Queries.of(draw.qid[draw.train], len(draw.train))
    fold = _folds(queries, seed)
    whole = GridSums.of(RankingData.of_checked(X, y, queries))
    parts = [
        GridSums.of(RankingData.of_checked(X, np.where(fold == number, np.nan, y), queries))
        for number in range(N_FOLDS)
    ]
    outcomes: Outcomes = {}
    for method, grid in GRIDS.items():
        views = [np.arange(X.shape[1])] if method == "SPD" else draw.views
        errors = []
        for point in grid:
            weights = np.array([part.solve(views, *point) for part in parts])
            errors.append(_error(y, np.einsum("ij,ij->i", X, weights[fold]), queries))
        values = [problem.measure(draw, draw.X[draw.test] @ whole.solve(views, *point)) for point in grid]
        outcomes[method] = {"chosen": int(np.argmin(errors)), "values": values}
    return outcomes


def _folds(queries: Queries, seed: int) -> NDArray[np.int64]:
    """Deal queries to folds; where there is only one, its rows."""
    groups = queries.codes if len(queries) > 1 else np.arange(len(queries.codes))
    return np.asarray((np.random.default_rng(seed).permutation(int(groups.max()) + 1) % N_FOLDS)[groups])


def _error(y: Floats, scores: Floats, queries: Queries) -> float:
    """Disagreement over all pairs of scored rows; one half where there is none."""
    error = evaluate(y, scores, queries.codes, "disagreement", n_jobs=1)["disagreement"].micro
    return 0.5 if error is None or np.isnan(error) else error
