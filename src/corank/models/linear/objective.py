"""The objective of SPD, CRR and LCRA, a sample that estimates it, and the problem indexed for compiled descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.pairs.losses import Loss
from corank.base.pairs.sampling import NO_PAIRS, PairSampler
from corank.base.solvers.solution import Range, in_unit, ordered, require_products
from corank.core.pairs import steps as sgd_parts
from corank.core.pairs.coupled_descent import Columns
from corank.core.pairs.steps import Examples, RowIndex
from corank.core.random import alias_table
from corank.core.rows.access import as_core_rows, plain
from corank.data.ranking import RankingData
from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Objective:
    """
    Σ_v [mix · mean_D ℓ + (1 − mix) · mean_P ℓ + alpha/2 ‖w_v‖² + l1 ‖w_v‖₁] + coupling · Σ_{v,u} mean_P̂ (m_v − m_u)².

    alpha, l1, mix, coupling: as in the formula; alpha may be an array with a value for each view.
    """

    loss: Loss
    alpha: float | Floats
    alpha_from: str = "given"  # how alpha was chosen
    l1: float = 0.0
    mix: float = 0.0
    coupling: float = 0.0
    fit_intercept: bool = False  # whether the regression part has a bias
    query_weight: str = "pairs"  # query_weight, draw: distribution of the pairs, see `corank.base.PairSampler`
    draw: str = "pairs"
    batch: int = 1  # batch, unscored_batch: number of examples and of unjudged pairs of a stochastic step
    unscored_batch: int = 1
    score_range: Range | None = None  # scores that are mapped to 0 and 1, for a loss that learns shares

    def targets(self, data: RankingData) -> RankingData:
        """Return the problem with scores transformed to the targets of this objective."""
        if self.score_range is not None:
            return in_unit(data, self.score_range)
        return ordered(data) if self.loss.scores == "signs" and self.mix == 0.0 else data

    def require_scores(self, data: RankingData) -> None:
        """Raise if the loss cannot learn from the scores of the problem."""
        if data.y is not None:
            rows = data.scored_rows
            self.loss.require_scores(data.y[rows], data.queries.codes[rows], self.mix > 0.0)


@dataclass(frozen=True, eq=False)
class ObjectiveSample:
    """
    Examples, drawn once, on which the objective is estimated.

    pairs, rows, unscored (n, n_features): differences of scored pairs, single rows, differences of unjudged pairs.
    """

    pairs: Any
    pair_targets: Floats  # pair_targets, row_targets (n,): targets of the first two
    pair_priors: Floats  # pair_priors, row_priors (n,): their margins at zero weights
    rows: Any
    row_targets: Floats
    row_priors: Floats
    unscored: Any

    @np.errstate(over="ignore", invalid="ignore")
    def objective(self, objective: Objective, W: Floats, biases: Floats) -> float:
        """Estimate the objective; infinite or NaN if the weights are too large."""
        total = 0.5 * float(np.sum(objective.alpha * np.sum(W * W, axis=1))) + objective.l1 * float(np.abs(W).sum())
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
        """Estimate the mean over unjudged pairs and pairs of views of (m_v − m_u)²."""
        if len(W) < 2 or not self.unscored.shape[0]:
            return float("nan")
        # Σ_{v<u} (m_v − m_u)² = M Σ_v (m_v − their mean)²
        deviations = self.unscored @ (W - W.mean(axis=0)).T
        return 2.0 / (len(W) - 1) * float(np.mean(np.sum(deviations**2, axis=1)))

    def curvature(self, objective: Objective, n_views: int) -> float:
        """Bound the curvature of the objective along one sampled example: ℓ'' ‖p‖² + 4 coupling M ‖p̂‖²."""
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


RATES = {
    "pegasos": sgd_parts.PEGASOS,
    "constant": sgd_parts.CONSTANT,
    "sqrt": sgd_parts.SQRT,
    "adagrad": sgd_parts.ADAGRAD,
}

# size of the sample for the first rate and the trace of the objective, and the most numbers it may hold
_SAMPLE = 1000
_SAMPLE_NUMBERS = 2**23


@dataclass(frozen=True, eq=False)
class DescentProblem:
    """A problem indexed for compiled descent; X is neither copied nor read as a whole."""

    objective: Objective
    rows: Any  # the rows of X
    examples: Examples
    columns: Columns  # the columns of each view
    sample: ObjectiveSample  # examples on which the objective is estimated

    @classmethod
    def of(cls, data: RankingData, objective: Objective, columns: Columns, rng: np.random.Generator) -> DescentProblem:
        """Index a problem; `rng` draws the sample."""
        n = int(np.clip(_SAMPLE_NUMBERS // data.n_features, 1, _SAMPLE))
        y = np.empty(0) if data.y is None else data.y
        pairs = free = NO_PAIRS
        drawn = unscored = np.empty((0, 2), dtype=np.int64)
        rows = single = np.empty(0, dtype=np.int64)
        if objective.mix < 1.0:
            sampler = PairSampler.of(data, objective.query_weight, objective.draw)
            pairs, drawn = sampler.index, sampler.draw(n, rng)
        if objective.coupling > 0.0:
            sampler = PairSampler.of(data, objective.query_weight, unscored=True)
            free, unscored = sampler.index, sampler.draw(n, rng)
        if objective.mix > 0.0:
            rows = data.scored_rows
            w = data.weight_of(rows)
            single = rng.choice(rows, n, p=w / w.sum())
        table = alias_table(data.weight_of(rows)) if len(rows) else np.empty((0, 2), dtype=np.uint64)
        gaps = y[drawn[:, 0]] - y[drawn[:, 1]] if len(y) else np.ones(len(drawn))
        sample = ObjectiveSample(
            _differences(data.X, drawn), objective.loss.pair_target(gaps), data.prior_gap(drawn),
            data.X[single], y[single], data.prior_of(single), _differences(data.X, unscored),
        )  # fmt: skip
        examples = Examples(y, data.prior, pairs, free, RowIndex(table, rows.astype(np.uint32)))
        return cls(objective, as_core_rows(data.X), examples, columns, sample)

    def first_rates(self, rate: str, eta0: float | Floats | None) -> float | Floats:
        """
        Return the first learning rate, or an array with that of each view if alpha or `eta0` has a value for each.
        """
        alpha = self.objective.alpha
        if np.ndim(alpha) == 0 and (eta0 is None or np.ndim(eta0) == 0):
            return self._first_rate(rate, float(alpha), eta0)
        M = len(self.columns.of_views)
        alphas, rates = np.broadcast_to(alpha, M), [None] * M if eta0 is None else np.broadcast_to(eta0, M)
        return np.array([self._first_rate(rate, float(a), r) for a, r in zip(alphas, rates, strict=True)])

    def _first_rate(self, rate: str, alpha: float, eta0: Any) -> float:
        chosen = eta0
        if chosen is None:
            curvature = self.sample.curvature(self.objective, len(self.columns.of_views))
            # AdaGrad divides by the size of the gradients, so its rate has the unit of a weight
            chosen = curvature**-0.5 if rate == "adagrad" else 1.0 / curvature
        if rate == "pegasos" and alpha > 0.0:
            return min(float(chosen), 1.0 / alpha)
        if rate != "adagrad" and chosen * alpha >= 1.0:
            if eta0 is None:
                return 0.5 / alpha
            raise InputError(
                f"eta0 · alpha is {eta0 * alpha:g}, so one step would shrink the weights to zero; keep the product "
                "below 1."
            )
        return float(chosen)


def columns_of_views(X: Any, views: list[NDArray[np.int64]]) -> Columns:
    """Index the columns of each view."""
    rows, d = plain(X), X.shape[1]
    width = int(min(d, 2 * np.diff(rows.indptr).max(initial=0))) if sparse.issparse(rows) else d
    columns = np.concatenate(views)
    slots = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[slots], np.arange(d + 1))
    view = np.repeat(np.arange(len(views)), [len(v) for v in views])[slots]
    return Columns(starts.astype(np.uint64), view.astype(np.uint64), width)


def _differences(X: Any, pairs: NDArray[np.int64]) -> Any:
    return X[pairs[:, 0]] - X[pairs[:, 1]]
