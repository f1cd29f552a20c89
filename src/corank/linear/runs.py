"""Runs: the states of one or more independent descents, their steps, and the weights they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from corank.core.pairs.coupled_descent import Columns, descend_coupled
from corank.core.pairs.descent import descend
from corank.core.pairs.steps import (
    ADAGRAD,
    BIAS,
    BIAS_SUM,
    MASS,
    N_ENTRIES,
    N_STREAMS,
    OWED,
    SCALE,
    DescentPlan,
    DescentState,
)
from corank.core.random import seed_state
from corank.core.threads import spread
from corank.errors import InputError
from corank.linear.task import Task

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Runs:
    """
    J descents of one plan, each with its own random generators, whose weights are averaged (Zinkevich et al., 2010).

    T steps are dealt to the runs as evenly as can be, so J threads take T steps in the time of T/J, and the result is a
    function of the seed and J alone.

    states: one per run.
    plan: what all runs do.
    """

    states: list[DescentState]
    plan: DescentPlan

    @classmethod
    def start(cls, plan: DescentPlan, n_runs: int, weights: Floats, biases: Floats, rng: np.random.Generator) -> Runs:
        """
        Begin with given weights and newly seeded generators.

        plan: what the runs do.
        weights, biases (n_slots,): where every run begins; with AdaGrad, which has no use for them, zero.
        rng: seeds the generators.
        Returns: no step done.
        """
        ledger = np.zeros((len(biases), N_ENTRIES))
        ledger[:, SCALE], ledger[:, BIAS] = 1.0, biases
        return cls(
            [
                DescentState(
                    weights.copy(), np.zeros(len(weights)), ledger.copy(),
                    np.stack([seed_state(rng) for _ in range(N_STREAMS)]), np.zeros(1, dtype=np.int64),
                )
                for _ in range(n_runs)
            ],
            plan,
        )  # fmt: skip

    @classmethod
    def resume(cls, plan: DescentPlan, stored: dict[str, Any]) -> Runs:
        """
        Continue from what `stored` returned; its arrays are copied.

        plan: what the runs do.
        stored: fields of `DescentState`, stacked over the runs.
        Returns: the runs as they were.
        """
        n_runs = len(stored["steps"])
        return cls(
            [DescentState(*(np.array(stored[name][j]) for name in DescentState._fields)) for j in range(n_runs)], plan
        )

    def require_room(self, columns: Columns) -> None:
        """Raise one sentence where the states, which may come from a file, are not those of so many columns."""
        weights, biases = np.zeros(len(columns.views)), np.zeros(len(columns.of_views))
        like = Runs.start(self.plan, 1, weights, biases, default_rng(0))
        wanted = [(part.shape, part.dtype) for part in like.states[0]]
        for state in self.states:
            if [(part.shape, part.dtype) for part in state] != wanted or not state.rng_state.any(axis=1).all():
                raise InputError("run_ does not hold the state of a descent over these columns; fit the model anew.")

    def stored(self) -> dict[str, Any]:
        """Return the fields of the states, stacked over the runs (copies), and the kind of the plan."""
        fields = {name: np.stack([getattr(state, name) for state in self.states]) for name in DescentState._fields}
        return {"kind": self.plan.kind, **fields}

    def copy(self) -> Runs:
        """Return runs that go on from here by themselves."""
        return Runs.resume(self.plan, self.stored())

    @property
    def n_steps(self) -> int:
        """Steps done by all runs together."""
        return int(sum(state.steps[0] for state in self.states))

    def advance(self, task: Task, n: int) -> None:
        """
        Take n more steps, shared by the runs.

        task: what to learn from.
        n: number of steps.
        """
        n_runs, total = len(self.states), self.n_steps + n
        plan = self.plan
        simple = plan.l1 == 0.0 and plan.rate != ADAGRAD and not plan.project
        # the faster kernel knows of no prior: looking for one would cost it a third of its speed
        simple = simple and len(self.states[0].ledger) == 1 and plan.batch == 1 and task.examples.prior is None

        def work(j: int, _: int) -> None:
            state = self.states[j]
            # a run that an interrupt left ahead of the others waits for them
            share = max(0, total // n_runs + (j < total % n_runs) - int(state.steps[0]))
            if simple:
                descend(state, plan, task.examples, task.rows, share)
            else:
                descend_coupled(state, plan, task.columns, task.examples, task.rows, share)

        spread(work, [(j, j + 1) for j in range(n_runs)], n_runs)

    def weights(self, columns: Columns) -> tuple[Floats, Floats]:
        """
        Weights and biases of the views, averaged over the runs by their steps.

        columns: which views see which columns.
        Returns: weights, zero where a view does not see a column, and biases.
        """
        shares = np.array([float(state.steps[0]) for state in self.states])
        shares = shares / shares.sum() if shares.any() else np.full(len(shares), 1.0 / len(shares))
        parts = [_weights(state, self.plan, columns.views) for state in self.states]
        biases = np.asarray(sum(share * part[1] for share, part in zip(shares, parts, strict=True)))
        W = np.zeros((len(biases), len(columns.starts) - 1))
        W[columns.views, columns.of_slots] = sum(share * part[0] for share, part in zip(shares, parts, strict=True))
        if not np.isfinite(W).all():
            raise InputError(
                f"the weights overflowed with a first rate of {self.plan.eta0:g}; "
                "scale the columns of X, or pass a smaller eta0."
            )
        return W, biases


def _weights(state: DescentState, plan: DescentPlan, views: NDArray[np.uint64]) -> tuple[Floats, Floats]:
    v, sums, ledger, steps = state.weights, state.sums, state.ledger, int(state.steps[0])
    of_slot = ledger[views]
    if plan.rate == ADAGRAD:
        excess = np.maximum(np.abs(v) - steps * plan.l1, 0.0)
        below = np.sqrt(sums) + plan.eta0 * steps * plan.alpha
        w = np.copysign(np.divide(plan.eta0 * excess, below, out=np.zeros_like(v), where=excess > 0), v)
        return w, ledger[:, BIAS].copy()
    if plan.average and steps:
        return (of_slot[:, MASS] * v + sums) / steps, ledger[:, BIAS_SUM] / steps
    if plan.l1 > 0.0:
        v = np.copysign(np.maximum(np.abs(v) - (of_slot[:, OWED] - sums), 0.0), v)
    return of_slot[:, SCALE] * v, ledger[:, BIAS].copy()


def require_stored(stored: dict[str, Any], trace: Floats) -> None:
    """
    Raise where what a file says of runs is not what `Runs.stored` returns, whatever the columns.

    trace: objectives after steps, that of the runs.
    """
    parts = [stored[name] for name in DescentState._fields]
    alike = all(isinstance(part, np.ndarray) and part.shape[:1] == stored["steps"].shape[:1] for part in parts)
    if not alike or not len(stored["steps"]) or not isinstance(stored["kind"], str) or np.shape(trace)[1:] != (2,):
        raise InputError("run_ or objective_trace_ is none of a descent")
