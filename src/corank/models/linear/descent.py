"""Stochastic descent: independent runs, their states and steps, the averaged weights, and the training loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from corank.base.solvers.choice import EarlyStopping, run_training
from corank.core.pairs.coupled_descent import Columns, descend_coupled
from corank.core.pairs.steps import (
    ADAGRAD,
    BIAS,
    BIAS_SUM,
    MASS,
    N_ENTRIES,
    N_STREAMS,
    OWED,
    SCALE,
    SGDPlan,
    SGDState,
    descend,
)
from corank.core.random import seed_state
from corank.core.threads import parallel_map
from corank.errors import InputError
from corank.models.linear.objective import DescentProblem

Floats = NDArray[np.float64]


HeldOutError = Callable[[Floats, Floats], float]
"""Takes the weights and biases of the views and returns the error on held-out judgements."""

N_CHECKS = 20
"""Number of times that `train` estimates the objective and considers early stopping."""
# steps between two chances to handle Ctrl-C
_PIECE = 500_000


@dataclass(eq=False)
class ParallelDescent:
    """
    J runs of stochastic descent, each with its own random generators; their weights are averaged (Zinkevich et al.,
    2010).

    T steps are distributed evenly over the runs, so J threads take T steps in the time of T/J. The result depends on
    the seed and J only.

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
        """
        Begin with given weights and newly seeded generators.

        weights, biases (n_slots,): first values of every run; zero with AdaGrad.
        rng: seeds the generators.
        """
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
