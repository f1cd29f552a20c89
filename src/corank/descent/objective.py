"""What a descent minimises, and a sample of examples to estimate it by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.sgd_parts import RowIndex
from corank.data.ranking import RankingData
from corank.exact.solution import require_products
from corank.losses import Loss
from corank.sampling import PairSampler

Floats = NDArray[np.float64]

# pairs by which the first rate and the trace of the objective are measured, and the most numbers they may hold
_SAMPLE = 1000
_SAMPLE_NUMBERS = 2**23


@dataclass(frozen=True)
class Objective:
    """
    Σ_v [mix · mean_D ℓ + (1 − mix) · mean_P ℓ + alpha/2 ‖w_v‖² + l1 ‖w_v‖₁] + coupling · Σ_{v,u} mean_P̂ (m_v − m_u)².

    Attributes
    ----------
    loss : Loss
        ℓ.
    mix, alpha, l1, coupling : float
        As in the formula.
    fit_intercept : bool
        Whether the regression part has a bias.
    sampling : str
        The law of the pairs, see `PairSampler`.
    """

    loss: Loss
    mix: float
    alpha: float
    l1: float
    coupling: float
    fit_intercept: bool
    sampling: str


@dataclass(frozen=True, eq=False)
class Sample:
    """
    Examples drawn once, by which a model is judged while it learns.

    Attributes
    ----------
    pairs, rows, unscored : matrix of shape (n, n_features)
        Differences of scored pairs, single rows, differences of unscored pairs.
    pair_targets, row_targets : array of shape (n,)
        Targets of the first two.
    """

    pairs: Any
    pair_targets: Floats
    rows: Any
    row_targets: Floats
    unscored: Any

    @classmethod
    def of(
        cls,
        data: RankingData,
        objective: Objective,
        pairs: PairSampler | None,
        unscored: PairSampler | None,
        rows: RowIndex,
        rng: np.random.Generator,
    ) -> Sample:
        """Draw from the laws of a task; see `Task.of`."""
        n = int(np.clip(_SAMPLE_NUMBERS // data.n_features, 1, _SAMPLE))
        drawn = np.empty((0, 2), dtype=np.int64) if pairs is None else pairs.draw(n, rng)
        free = np.empty((0, 2), dtype=np.int64) if unscored is None else unscored.draw(n, rng)
        y = np.empty(0) if data.y is None else data.y
        gaps = np.ones(len(drawn)) if data.y is None else y[drawn[:, 0]] - y[drawn[:, 1]]
        single = _draw_rows(rows, n, rng) if len(rows.rows) else np.empty(0, dtype=np.int64)
        return cls(
            _differences(data.X, drawn), objective.loss.pair_target(gaps), data.X[single], y[single],
            _differences(data.X, free),
        )  # fmt: skip

    def objective(self, objective: Objective, W: Floats, biases: Floats) -> float:
        """
        Estimate the objective.

        Parameters
        ----------
        objective : Objective
            What is minimised.
        W : array of shape (n_views, n_features)
            Weights of each view in the columns of X.
        biases : array of shape (n_views,)
            Bias of each view.

        Returns
        -------
        float
            The estimate.
        """
        total = 0.5 * objective.alpha * float(np.sum(W * W)) + objective.l1 * float(np.abs(W).sum())
        for w, bias in zip(W, biases, strict=True):
            if objective.mix < 1.0:
                costs = objective.loss.value(self.pair_targets, self.pairs @ w)
                total += (1.0 - objective.mix) * float(costs.mean())
            if objective.mix > 0.0:
                total += objective.mix * float(objective.loss.value(self.row_targets, self.rows @ w + bias).mean())
        if objective.coupling > 0.0:
            margins = self.unscored @ W.T
            # Σ_{v,u} (m_v − m_u)² = 2 M Σ_v m_v² − 2 (Σ_v m_v)²
            gaps = 2.0 * len(W) * (margins**2).sum(axis=1) - 2.0 * margins.sum(axis=1) ** 2
            total += objective.coupling * float(gaps.mean())
        return total

    def curvature(self, objective: Objective, n_views: int) -> float:
        """
        Bound how fast a slope of the objective can turn along one sampled example: ℓ'' ‖p‖² + 4 coupling M ‖p̂‖².

        Parameters
        ----------
        objective : Objective
            What is minimised.
        n_views : int
            M.

        Returns
        -------
        float
            The bound, 1 where all examples are zero.
        """
        loss = objective.loss.curvature if np.isfinite(objective.loss.curvature) else 1.0
        single = _largest_square(self.rows) + (1.0 if objective.mix > 0.0 and objective.fit_intercept else 0.0)
        bound = loss * max(_largest_square(self.pairs), single)
        bound += 4.0 * objective.coupling * n_views * _largest_square(self.unscored)
        require_products(np.array(bound))
        return bound if bound > 0.0 else 1.0


def _draw_rows(law: RowIndex, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    faces = rng.integers(0, len(law.rows), n)
    keeps = rng.integers(0, 2**64, n, dtype=np.uint64) < law.table[faces, 0]
    return law.rows[np.where(keeps, faces, law.table[faces, 1].astype(np.int64))].astype(np.int64)


def _differences(X: Any, pairs: NDArray[np.int64]) -> Any:
    return X[pairs[:, 0]] - X[pairs[:, 1]]


def _largest_square(rows: Any) -> float:
    rows = rows.astype(np.float64)
    with np.errstate(over="ignore"):
        squares = rows.multiply(rows) if sparse.issparse(rows) else rows * rows
        return float(np.asarray(squares.sum(axis=1)).max(initial=0.0))
