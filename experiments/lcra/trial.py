"""Trials of co-regularised ranking: every point of a grid, fitted exactly, by descent or by pursuit, and tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.pairs import Moments
from corank.base.pairs.losses import drawn_weight
from corank.base.solvers.penalty import default_alpha
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.models.linear import LCRA, SPD
from corank.models.pursuit import CoRankingPursuit, RankingPursuit
from experiments.lcra.problems import ProblemSource, SplitRepeat

ALPHAS = tuple(float(f"{10.0 ** (power / 2):.2g}") for power in range(-12, 7))
COUPLINGS = (0.0, 0.01, 0.1, 1.0, 10.0)
DEFAULT_COUPLING = 0.1
DESCENT_ALPHAS = (1e-3, 1e-1, 1.0, 10.0)
DESCENT_COUPLINGS = (0.0, 0.1, 1.0)
N_STEPS = 10_000
N_TERMS = 10
PURSUIT_COUPLINGS = (0.0, 0.1, 1.0, 10.0)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ViewSums:
    """
    Sums from which squared losses of any views are solved for all alphas, so that a grid reads the rows once.

    scored, unscored: sums over pairs of scored and of unscored rows.
    distinct: chance that two unscored rows drawn from one query are not the same row: LCRA's agreement is a mean over
        draws.
    """

    scored: Moments
    unscored: Moments
    distinct: float

    @classmethod
    def of(cls, data: RankingData) -> ViewSums:
        """Sum over a problem."""
        unscored, drawn = Moments.of(data, rows="unscored"), drawn_weight(data, "pairs", "unscored")
        return cls(Moments.of(data), unscored, unscored.pair_weight / drawn if drawn > 0.0 else 0.0)

    def path(self, views: Sequence[NDArray[np.int64]], alphas: Sequence[float], coupling: float) -> Floats:
        """
        Return the weights that ``LCRA(scale=False, solver="exact")`` finds, a row for each alpha; SPD's with one view.

        Block (v, u) of the system is δ_vu A_vv + 4 coupling (M δ_vu − 1) U_vu. All alphas share one eigendecomposition.
        """
        d, slots = self.scored.n_features, np.concatenate(views)
        if not self.scored.pair_weight > 0.0:
            return np.zeros((len(alphas), d))
        view = np.repeat(np.arange(len(views)), [len(columns) for columns in views])
        same = (view[:, None] == view[None, :]).astype(np.float64)
        A = self.scored.pair[np.ix_(slots, slots)] / self.scored.pair_weight * same
        if coupling > 0.0 and self.unscored.pair_weight > 0.0:
            U = self.unscored.pair[np.ix_(slots, slots)] / self.unscored.pair_weight
            A = A + 4.0 * coupling * self.distinct * (len(views) * same - 1.0) * U
        values, vectors = np.linalg.eigh(A)
        b = vectors.T @ (self.scored.pair[slots, -1] / self.scored.pair_weight)
        theta = (b / (np.maximum(values, 0.0) + np.asarray(alphas)[:, None])) @ vectors.T
        coefs = np.zeros((len(alphas), d))
        for column, weights in zip(slots, theta.T, strict=True):
            coefs[:, column] += weights / len(views)
        return coefs


def draw_repeat(problem: ProblemSource, judged: float, repeat: int, seed: int) -> tuple[SplitRepeat, Floats]:
    """
    Draw a repeat and hide most of its training scores; odd repeats are of the other half of the tasks than even ones.

    Returns: the repeat, and the scores of its training rows, NaN where hidden.
    """
    draw = problem.draw(np.random.default_rng([seed, repeat]), repeat % 2)
    return draw, draw.hidden(judged, repeat)


def exact_values(problem: ProblemSource, judged: float, repeat: int, seed: int) -> dict[str, Any]:
    """
    Test every point of the grids with the squared loss.

    Returns: "SPD", a value for each alpha; "views", a list of these for each coupling; and "default", the values of
        SPD, SPD-MV and LCRA with the default alpha and coupling.
    """
    draw, y = draw_repeat(problem, judged, repeat, seed)
    data = RankingData.of_checked(draw.X[draw.train], y, Queries.of(draw.qid[draw.train], len(draw.train)))
    sums, whole, X = ViewSums.of(data), [np.arange(data.n_features)], draw.X[draw.test]

    def values(views: list[NDArray[np.int64]], alphas: Sequence[float], coupling: float) -> list[float]:
        return [*map(float, draw.measure(problem.metric, X @ sums.path(views, alphas, coupling).T))]

    alpha = (default_alpha(data),)
    return {
        "SPD": values(whole, ALPHAS, 0.0),
        "views": [values(draw.views, ALPHAS, coupling) for coupling in COUPLINGS],
        "default": [
            *values(whole, alpha, 0.0), *values(draw.views, alpha, 0.0), *values(draw.views, alpha, DEFAULT_COUPLING)
        ],
    }  # fmt: skip


def descent_values(problem: ProblemSource, judged: float, repeat: int, seed: int, *, loss: str) -> dict[str, Any]:
    """Test every point of smaller grids with another loss, by stochastic steps; see `exact_values`."""
    draw, y = draw_repeat(problem, judged, repeat, seed)
    X, qid = draw.X[draw.train], draw.qid[draw.train]

    def value(alpha: float, coupling: float | None) -> float:
        how: dict[str, Any] = {
            "loss": loss, "alpha": alpha, "scale": False, "solver": "sgd", "n_steps": N_STEPS, "random_state": repeat,
        }  # fmt: skip
        model = SPD(**how) if coupling is None else LCRA(views=draw.views, coupling=coupling, **how)
        return float(draw.measure(problem.metric, model.fit(X, y, qid=qid).predict(draw.X[draw.test])[:, None])[0])

    return {
        "SPD": [value(alpha, None) for alpha in DESCENT_ALPHAS],
        "views": [[value(alpha, coupling) for alpha in DESCENT_ALPHAS] for coupling in DESCENT_COUPLINGS],
    }


def pursuit_values(problem: ProblemSource, judged: float, repeat: int, seed: int) -> dict[str, Any]:
    """Test pursuits, which have no ridge, after 1 to `N_TERMS` terms; see `exact_values`."""
    draw, y = draw_repeat(problem, judged, repeat, seed)
    X, qid = draw.X[draw.train], draw.qid[draw.train]
    how: dict[str, Any] = {"n_basis": N_TERMS, "kernel": "linear", "dictionary": 200, "random_state": repeat}

    def path(model: RankingPursuit | CoRankingPursuit) -> list[float]:
        model.fit(X, y, qid=qid)
        lengths = [min(n, len(model.term_coefs_)) for n in range(1, N_TERMS + 1)]
        scores = {n: model.predict(draw.X[draw.test], n) for n in set(lengths)}
        return [*map(float, draw.measure(problem.metric, np.column_stack([scores[n] for n in lengths])))]

    return {
        "SPD": path(RankingPursuit(**how)),
        "views": [
            path(CoRankingPursuit(views=draw.views, coupling=coupling, residual="separate", **how))
            for coupling in PURSUIT_COUPLINGS
        ],
    }
