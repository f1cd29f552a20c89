"""
Steps along the forces: Adam over batches of queries, with averaged parameters, and stopping early.

A step scores a batch, asks λ for forces, and moves θ by Adam (Kingma and Ba, 2015) along mean_i λ_i ∂f(x_i)/∂θ, forces
brought to mean size 1 at the start; weights shrink by rate · weight_decay beside it (Loshchilov and Hutter, 2019). What
predicts is the mean of the parameters, later ones counting more: θ̄ ← θ̄ + 9/(t + 8) (θ − θ̄) (Shamir and Zhang, 2013).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.lambdarank.lambdas import Lambda
from corank.lambdarank.lists import Lists
from corank.lambdarank.scorers import Scorer
from corank.parameters import is_whole, number
from corank.progress import progress

Floats = NDArray[np.float64]
Judge = Callable[[list[Floats]], float]

N_CHECKS = 40
"""Times that the watched rows are scored during a call of fit."""

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8
_LATER = 8.0


@dataclass(frozen=True, eq=False)
class Task:
    """
    What is learnt from, and what pulls.

    forces: λ.
    lists: the judged rows, query by query.
    offset (n,): what their scores are before anything was learnt.
    """

    forces: Lambda
    lists: Lists
    offset: Floats

    def pulls(self, scores: Floats, n_jobs: int | None = None) -> Floats:
        """Forces and curvatures of all rows."""
        return self.forces.total(self.lists, self.offset + scores, n_jobs)

    def first_pulls(self, scores: Floats, n_jobs: int | None = None) -> Floats:
        """Forces and curvatures of all rows at the start, where they must not all be zero."""
        found = self.pulls(scores, n_jobs)
        if not found[0].any():
            raise InputError(f"'{self.forces}' pulls at none of the {len(scores)} scored rows; check the grades of y.")
        return found


@dataclass(frozen=True)
class Plan:
    """
    How steps are taken.

    n_steps: how many.
    batch: queries of one.
    rate: Adam's.
    weight_decay: share of the weights that a step of rate 1 takes away.
    patience: checks without a lower error after which to stop; None never stops.
    verbose: whether to show a progress bar.
    """

    n_steps: int
    batch: int
    rate: float
    weight_decay: float
    patience: int | None
    verbose: bool


@dataclass(frozen=True, eq=False)
class State:
    """
    Where steps have come to: all that is needed to go on bit for bit.

    steps: taken so far.
    words (4,): seed of the order of queries.
    unit: mean size of the forces at the start.
    parameters, first, second, mean: θ, Adam's two moments, θ̄.
    """

    steps: int
    words: NDArray[np.uint32]
    unit: float
    parameters: list[Floats]
    first: list[Floats]
    second: list[Floats]
    mean: list[Floats]

    @classmethod
    def start(cls, scorer: Scorer, task: Task, rng: np.random.Generator) -> State:
        """Begin with a scorer's first parameters."""
        for_parameters, for_order = rng.spawn(2)
        parameters = scorer.start(for_parameters)
        unit = float(np.abs(task.first_pulls(scorer.score(parameters, task.lists.rows)[0])[0]).mean())
        words = for_order.integers(0, 1 << 32, size=4, dtype=np.uint32)
        zeros = [np.zeros_like(array) for array in parameters]
        return cls(0, words, unit, parameters, zeros, zeros, parameters)

    def stored(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return dict(vars(self))

    @classmethod
    def resume(cls, stored: dict[str, Any]) -> State:
        """Take what `stored` gave."""
        return cls(**stored)


@dataclass(frozen=True, eq=False)
class Trained:
    """
    What training leaves.

    state: of the best check when stopping early.
    errors (n_checks,): on the watched rows; empty without them.
    interrupted: whether Ctrl-C broke it off.
    """

    state: State
    errors: Floats
    interrupted: bool


def train(state: State, scorer: Scorer, task: Task, plan: Plan, judge: Judge | None) -> Trained:
    """
    Take steps, and watch.

    judge: takes parameters and returns the error on the watched rows.
    """
    errors: list[float] = []
    best, interrupted = state, False
    checks = set((state.steps + np.linspace(0, plan.n_steps, min(plan.n_steps, N_CHECKS) + 1)[1:]).astype(int).tolist())
    order = Order(task.lists.n_queries, plan.batch, state.words)
    end = state.steps + plan.n_steps
    try:
        with progress(plan.n_steps, "steps", plan.verbose) as advance:
            while state.steps < end:
                state = _step(state, scorer, task, plan, order.queries(state.steps))
                advance(1)
                if judge is None or state.steps not in checks:
                    continue
                errors.append(judge(state.mean))
                if errors[-1] <= min(errors):
                    best = state
                if plan.patience is not None and len(errors) - 1 - int(np.argmin(errors)) >= plan.patience:
                    break
    except KeyboardInterrupt:
        interrupted = True
    stops_early = plan.patience is not None and bool(errors)
    return Trained(best if stops_early else state, np.array(errors), interrupted)


class Order:
    """
    Which queries a step sees: all of them in random order, batch by batch, then again.

    n_queries, batch: how many there are, and how many a step sees at most.
    words: seed.
    """

    def __init__(self, n_queries: int, batch: int, words: NDArray[np.uint32]) -> None:
        self.n_queries, self.words = n_queries, words.tolist()
        self.n_batches = -(-n_queries // batch)
        self._pass, self._batches = -1, [np.arange(n_queries)]

    def queries(self, step: int) -> NDArray[np.int64]:
        """Return the numbers of the queries of a step, which depend on nothing but the seed."""
        if self.n_batches == 1:
            return self._batches[0]
        n_passes, at = divmod(step, self.n_batches)
        if n_passes != self._pass:
            shuffled = np.random.default_rng([*self.words, n_passes]).permutation(self.n_queries)
            self._pass, self._batches = n_passes, np.array_split(shuffled, self.n_batches)
        return self._batches[at]


def _step(state: State, scorer: Scorer, task: Task, plan: Plan, queries: NDArray[np.int64]) -> State:
    lists, positions = task.lists.select(queries)
    scores, passed = scorer.score(state.parameters, lists.rows)
    forces = task.forces.total(lists, task.offset[positions] + scores)[0] / (state.unit * len(positions))
    t = state.steps + 1
    parameters: list[Floats] = []
    firsts: list[Floats] = []
    seconds: list[Floats] = []
    means: list[Floats] = []
    for theta, m, v, mean, g in zip(
        state.parameters,
        state.first,
        state.second,
        state.mean,
        scorer.pull(state.parameters, passed, forces),
        strict=True,
    ):
        m = _FIRST * m + (1.0 - _FIRST) * g
        v = _SECOND * v + (1.0 - _SECOND) * g * g
        move = (m / (1.0 - _FIRST**t)) / (np.sqrt(v / (1.0 - _SECOND**t)) + _EPSILON)
        # levels stand beside weights, one after the other, and do not shrink
        decay = plan.weight_decay if len(parameters) % 2 == 0 else 0.0
        theta = theta + plan.rate * (move - decay * theta)
        parameters.append(theta)
        firsts.append(m)
        seconds.append(v)
        means.append(mean + (_LATER + 1.0) / (t + _LATER) * (theta - mean))
    return replace(state, steps=t, parameters=parameters, first=firsts, second=seconds, mean=means)


def require_stored(stored: Any, shapes: Sequence[tuple[int, ...]]) -> None:
    """
    Raise where what a file holds of a run is not what `State.stored` gives.

    shapes: of the parameters.
    """
    state = State.resume(stored)
    words = np.asarray(state.words)
    if not is_whole(state.steps) or state.steps < 0 or not number(0, inside="()").allows(state.unit):
        raise InputError("run_ counts steps or forces wrongly")
    if words.shape != (4,) or words.dtype != np.uint32:
        raise InputError("run_ has no seed")
    for arrays in (state.parameters, state.first, state.second, state.mean):
        if [np.shape(array) for array in arrays] != list(shapes) or not all(
            np.isfinite(array).all() for array in arrays
        ):
            raise InputError("run_ holds parameters of another model")
