"""
Stochastic descent of SPD, CRR and LCRA: the objective and a sample that estimates it, the problem indexed for kernels,
independent runs with their states and averaged weights, and the training loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray
from scipy import sparse

from corank.base.pairs.losses import Loss
from corank.base.pairs.sampling import NO_PAIRS, PairSampler
from corank.base.solvers.choice import EarlyStopping, run_training
from corank.base.solvers.solution import Range, in_unit, ordered, require_products
from corank.core.pairs.coupled_descent import Columns, descend_coupled
from corank.core.pairs.steps import (
    ADAGRAD,
    BIAS,
    BIAS_SUM,
    CONSTANT,
    MASS,
    N_ENTRIES,
    N_STREAMS,
    OWED,
    PEGASOS,
    SCALE,
    SQRT,
    Examples,
    RowIndex,
    SGDPlan,
    SGDState,
    descend,
)  # fmt: skip
from corank.core.random import alias_table, seed_state
from corank.core.rows.access import as_core_rows, plain
from corank.core.threads import parallel_map
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


RATES = {"pegasos": PEGASOS, "constant": CONSTANT, "sqrt": SQRT, "adagrad": ADAGRAD}

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

    def first_rates(self, rate: str, eta0: Any) -> float | Floats:
        """Return the first learning rate, or that of each view if alpha or `eta0` has a value for each."""
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


HeldOutError = Callable[[Floats, Floats], float]
"""Takes the weights and biases of the views and returns the error on held-out judgements."""

N_CHECKS = 20
"""Number of times that `train` estimates the objective and considers early stopping."""
# steps between two chances to handle Ctrl-C
_PIECE = 500_000


@dataclass(eq=False)
class ParallelDescent:
    """
    J runs of T/J steps, with their own generators; their weights are averaged (Zinkevich et al., 2010).

    n_steps: steps done by all runs together.
    """

    states: list[SGDState]  # one per run
    plan: SGDPlan  # settings of all runs

    def __post_init__(self) -> None:
        self.n_steps = self._count_steps()

    @classmethod
    def start(
        cls, plan: SGDPlan, n_runs: int, weights: Floats, biases: Floats, rng: np.random.Generator
    ) -> ParallelDescent:
        """Begin with given weights (n_slots,), which are zero with AdaGrad, and newly seeded generators."""
        ledger = np.zeros((len(biases), N_ENTRIES))
        ledger[:, SCALE], ledger[:, BIAS] = 1.0, biases
        return cls(
            [
                SGDState(
                    weights.copy(), np.zeros(len(weights)), ledger.copy(),
                    np.stack([seed_state(rng) for _ in range(N_STREAMS)]), np.zeros(1, dtype=np.int64),
                )
                for _ in range(n_runs)
            ],
            plan,
        )  # fmt: skip

    @classmethod
    def resume(cls, plan: SGDPlan, stored: dict[str, Any]) -> ParallelDescent:
        """Continue from the dictionary that `stored` returned; its arrays are copied."""
        names, n_runs = SGDState._fields, len(stored["steps"])
        return cls([SGDState(*(np.array(stored[name][j]) for name in names)) for j in range(n_runs)], plan)

    def require_room(self, columns: Columns) -> None:
        """Raise if the states, which may come from a file, do not have the shapes of these columns."""
        weights, biases = np.zeros(len(columns.views)), np.zeros(len(columns.of_views))
        like = ParallelDescent.start(self.plan, 1, weights, biases, default_rng(0))
        wanted = [(part.shape, part.dtype) for part in like.states[0]]
        for state in self.states:
            if [(part.shape, part.dtype) for part in state] != wanted or not state.rng_state.any(axis=1).all():
                raise InputError("run_ does not hold the state of a descent over these columns; fit the model again.")

    def stored(self) -> dict[str, Any]:
        """Return copies of the fields of the states, stacked over the runs, and the kind of the plan."""
        fields = {name: np.stack([getattr(state, name) for state in self.states]) for name in SGDState._fields}
        return {"kind": self.plan.kind, **fields}

    def copy(self) -> ParallelDescent:
        """Return an independent copy."""
        return ParallelDescent.resume(self.plan, self.stored())

    def _count_steps(self) -> int:
        return int(sum(state.steps.sum() for state in self.states))  # a file may hold another shape

    def advance(self, problem: DescentProblem, n: int) -> None:
        """Take n more steps, distributed over the runs."""
        n_runs, total = len(self.states), self.n_steps + n
        plan = self.plan
        simple = plan.l1 == 0.0 and plan.rate != ADAGRAD and not plan.project
        # the faster kernel does not support a prior: the check would cost a third of its speed
        simple = simple and len(self.states[0].ledger) == 1 and plan.batch == 1 and problem.examples.prior is None

        def run(j: int, _: int) -> None:
            state = self.states[j]
            # after Ctrl-C, a run may be ahead of the others and waits for them
            share = max(0, total // n_runs + (j < total % n_runs) - int(state.steps[0]))
            if simple:
                descend(state, plan, problem.examples, problem.rows, share)
            else:
                descend_coupled(state, plan, problem.columns, problem.examples, problem.rows, share)

        try:
            parallel_map(run, [(j, j + 1) for j in range(n_runs)], n_runs)
        finally:
            self.n_steps = self._count_steps()

    def weights(self, columns: Columns) -> tuple[Floats, Floats]:
        """Return the weights (n_views, n_features) and biases of the views, averaged over the runs by their steps."""
        shares = np.array([float(state.steps[0]) for state in self.states])
        shares = shares / shares.sum() if shares.any() else np.full(len(shares), 1.0 / len(shares))
        parts = [_weights(state, self.plan, columns.views) for state in self.states]
        biases = np.asarray(sum(share * part[1] for share, part in zip(shares, parts, strict=True)))
        W = np.zeros((len(biases), len(columns.starts) - 1))
        W[columns.views, columns.of_slots] = sum(share * part[0] for share, part in zip(shares, parts, strict=True))
        if not np.isfinite(W).all():
            raise InputError(
                f"the weights overflowed with a first learning rate of {self.plan.first_rate:g}; "
                "scale the columns of X, or pass a smaller eta0."
            )
        return W, biases


def _weights(state: SGDState, plan: SGDPlan, views: NDArray[np.uint64]) -> tuple[Floats, Floats]:
    v, sums, ledger, steps = state.weights, state.sums, state.ledger, int(state.steps[0])
    of_slot = ledger[views]
    if plan.rate == ADAGRAD:
        excess = np.maximum(np.abs(v) - steps * plan.l1, 0.0)
        eta0 = plan.eta0 * plan.view_rates[views] if len(plan.view_rates) else plan.eta0
        alpha = plan.alpha * plan.view_alphas[views] if len(plan.view_alphas) else plan.alpha
        below = np.sqrt(sums) + eta0 * steps * alpha
        w = np.copysign(np.divide(eta0 * excess, below, out=np.zeros_like(v), where=excess > 0), v)
        return w, ledger[:, BIAS].copy()
    if plan.average and steps:
        return (of_slot[:, MASS] * v + sums) / steps, ledger[:, BIAS_SUM] / steps
    if plan.l1 > 0.0:
        v = np.copysign(np.maximum(np.abs(v) - (of_slot[:, OWED] - sums), 0.0), v)
    return of_slot[:, SCALE] * v, ledger[:, BIAS].copy()


def require_stored(stored: dict[str, Any], trace: Floats) -> None:
    """Raise if run_ or the trace of a loaded model is not what `ParallelDescent.stored` returns, for any columns."""
    parts = [stored[name] for name in SGDState._fields]
    alike = all(isinstance(part, np.ndarray) and part.shape[:1] == stored["steps"].shape[:1] for part in parts)
    if not alike or not len(stored["steps"]) or not isinstance(stored["kind"], str) or np.shape(trace)[1:] != (2,):
        raise InputError("run_ or objective_trace_ does not describe a descent")


@dataclass(frozen=True, eq=False)
class DescentResult:
    """The result of training."""

    runs: ParallelDescent  # the final runs; those of the best check with early stopping
    trace: Floats  # (n_checks + 1, 2): rows of (step, estimated objective)
    errors: Floats  # (n_checks,): held-out errors; empty without early stopping
    interrupted: bool  # whether Ctrl-C ended training. A kernel always completes its piece, so the runs are valid.


def train(
    runs: ParallelDescent,
    problem: DescentProblem,
    n_steps: int,
    held_out_error: HeldOutError | None,
    patience: int,
    verbose: bool,
) -> DescentResult:
    """Take steps, with early stopping if `held_out_error` is given."""
    trace = [(runs.n_steps, _estimate(runs, problem))]
    stopping, best = EarlyStopping(patience), runs
    ends = np.unique(np.linspace(0, n_steps, min(n_steps, N_CHECKS) + 1).astype(np.int64)[1:])

    def check() -> bool:
        nonlocal best
        trace.append((runs.n_steps, _estimate(runs, problem)))
        if held_out_error is None:
            return False
        if stopping.record(held_out_error(*runs.weights(problem.columns))):
            best = runs.copy()
        return stopping.is_over

    interrupted = run_training(partial(runs.advance, problem), ends, check, _PIECE * len(runs.states), verbose)
    kept = runs if held_out_error is None else best
    return DescentResult(kept, np.array(trace, dtype=np.float64), np.array(stopping.errors), interrupted)


def _estimate(runs: ParallelDescent, problem: DescentProblem) -> float:
    return problem.sample.objective(problem.objective, *runs.weights(problem.columns))
