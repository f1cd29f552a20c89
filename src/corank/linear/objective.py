"""What a descent minimises, and a sample of examples to estimate it by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.problem.ranking import RankingData
from corank.pairwise.losses import Loss
from corank.solvers.solution import require_products
from corank.solvers.targets import Range, in_unit, ordered

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Objective:
    """
    Σ_v [mix · mean_D ℓ + (1 − mix) · mean_P ℓ + alpha/2 ‖w_v‖² + l1 ‖w_v‖₁] + coupling · Σ_{v,u} mean_P̂ (m_v − m_u)².

    alpha: as in the formula.
    alpha_from: what alpha was chosen from.
    l1, mix, coupling: as in the formula.
    fit_intercept: whether the regression part has a bias.
    query_weight, draw: the law of the pairs, see `corank.PairSampler`.
    score_range: scores that stand for 0 and 1 where the loss learns shares.
    batch, unscored_batch: examples and unscored pairs whose means stand for those of the formula in a stochastic step.
    """

    loss: Loss
    alpha: float
    alpha_from: str = "given"
    l1: float = 0.0
    mix: float = 0.0
    coupling: float = 0.0
    fit_intercept: bool = False
    query_weight: str = "pairs"
    draw: str = "pairs"
    batch: int = 1
    unscored_batch: int = 1
    score_range: Range | None = None

    def targets(self, data: RankingData) -> RankingData:
        """Return a problem with its scores as this objective sees them."""
        if self.score_range is not None:
            return in_unit(data, self.score_range)
        return ordered(data) if self.loss.scores == "signs" and self.mix == 0.0 else data

    def require_scores(self, data: RankingData) -> None:
        """Raise one sentence where a problem's scores are not what this objective can learn from."""
        if data.y is not None:
            rows = data.scored_rows
            self.loss.require_scores(data.y[rows], data.queries.codes[rows], self.mix > 0.0)


@dataclass(frozen=True, eq=False)
class Sample:
    """
    Examples drawn once, by which a model is judged while it learns.

    pairs, rows, unscored (n, n_features): differences of scored pairs, single rows, differences of unscored pairs.
    pair_targets, row_targets (n,): targets of the first two.
    pair_priors, row_priors (n,): their margins before learning.
    """

    pairs: Any
    pair_targets: Floats
    pair_priors: Floats
    rows: Any
    row_targets: Floats
    row_priors: Floats
    unscored: Any

    @np.errstate(over="ignore", invalid="ignore")
    def objective(self, objective: Objective, W: Floats, biases: Floats) -> float:
        """
        Estimate the objective; of weights beyond all measure it is infinite, or NaN.

        objective: what is minimised.
        W (n_views, n_features): weights of each view.
        biases (n_views,): bias of each view.
        """
        total = 0.5 * objective.alpha * float(np.sum(W * W)) + objective.l1 * float(np.abs(W).sum())
        for w, bias in zip(W, biases, strict=True):
            if objective.mix < 1.0:
                costs = objective.loss.value(self.pair_targets, self.pairs @ w + self.pair_priors)
                total += (1.0 - objective.mix) * float(costs.mean())
            if objective.mix > 0.0:
                costs = objective.loss.value(self.row_targets, self.rows @ w + bias + self.row_priors)
                total += objective.mix * float(costs.mean())
        if objective.coupling > 0.0 and len(W) > 1:
            total += objective.coupling * len(W) * (len(W) - 1) * self.view_gap(W)
        return total

    def view_gap(self, W: Floats) -> float:
        """
        Estimate how far views are apart.

        W (n_views, n_features): weights of each view.
        Returns: mean over unscored pairs and pairs of views of (m_v − m_u)²; NaN where nothing was sampled, or of one
            view.
        """
        if len(W) < 2 or not self.unscored.shape[0]:
            return float("nan")
        # Σ_{v<u} (m_v − m_u)² = M Σ_v (m_v − their mean)²
        apart = self.unscored @ (W - W.mean(axis=0)).T
        return 2.0 / (len(W) - 1) * float(np.mean(np.sum(apart**2, axis=1)))

    def curvature(self, objective: Objective, n_views: int) -> float:
        """
        Bound how fast a slope of the objective can turn along one sampled example: ℓ'' ‖p‖² + 4 coupling M ‖p̂‖².

        objective: what is minimised.
        Returns: the bound, 1 where all examples are zero.
        """
        loss = objective.loss.curvature if np.isfinite(objective.loss.curvature) else 1.0
        single = _largest_square(self.rows) + (1.0 if objective.mix > 0.0 and objective.fit_intercept else 0.0)
        bound = loss * max(_largest_square(self.pairs), single)
        bound += 4.0 * objective.coupling * n_views * _largest_square(self.unscored)
        require_products(np.array(bound))
        return bound if bound > 0.0 else 1.0


def _largest_square(rows: Any) -> float:
    rows = rows.astype(np.float64)
    with np.errstate(over="ignore"):
        squares = rows.multiply(rows) if sparse.issparse(rows) else rows * rows
        return float(np.asarray(squares.sum(axis=1)).max(initial=0.0))
