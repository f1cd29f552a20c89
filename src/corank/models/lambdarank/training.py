"""
Training by gradients of a linear scorer and a perceptron: Adam over batches of queries, with averaged parameters.

Parameters are a list of arrays. `GradientScorer.gradient` is Σ_i λ_i ∂f(x_i)/∂θ: one forward and one backward pass for
a batch of queries, as in the paper, not one for each pair.

A step scores a batch, evaluates λ, and moves θ by Adam along mean_i λ_i ∂f(x_i)/∂θ, with λ scaled to mean size 1 at the
start and decoupled weight decay (Loshchilov and Hutter, 2019). The model is a weighted mean of the parameters, later
ones counting more: θ̄ ← θ̄ + 9/(t + 8) (θ − θ̄) (Shamir and Zhang, 2013).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corank.base.held_out import HeldOut
from corank.base.solvers.choice import Adam, EarlyStopping, run_training
from corank.core.rows.access import ScaledRows, as_core_rows, factors_of, plain
from corank.core.rows.products import gather_rows, score_rows
from corank.data.ranking import RankingData
from corank.data.rows import encode_like
from corank.errors import InputError
from corank.metrics import evaluate, parse_metric
from corank.models.lambdarank.lambdas import Lambda
from corank.models.lambdarank.terms import Lists
from corank.parameters import is_integer, number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# rows per block of prediction
_BLOCK = 1 << 16


class GradientScorer(Protocol):
    """Interface of a scorer of the rows of a problem that is trained by gradients."""

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Return initial parameters."""

    def score(self, parameters: list[Floats], rows: Integers) -> tuple[Floats, Any]:
        """Return scores of rows by number, and intermediate results for `gradient`."""

    def gradient(self, parameters: list[Floats], passed: Any, lambdas: Floats) -> list[Floats]:
        """Return Σ_i λ_i ∂f(x_i)/∂θ for each array of parameters."""


class Linear:
    """
    f(x) = w·x + b, over dense or sparse rows, which are not copied; parameters w and b.

    X: the rows; they are prepared for kernels once.
    """

    def __init__(self, X: Any) -> None:
        self.n_features = X.shape[1]
        self._rows, self._factors = as_core_rows(plain(X)), factors_of(X)

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Return zeros."""
        return [np.zeros(self.n_features), np.zeros(1)]

    def score(self, parameters: list[Floats], rows: Integers) -> tuple[Floats, Any]:
        """Return scores; every row is summed separately, so that equal rows have equal scores."""
        scores, w = np.empty(len(rows)), parameters[0]
        score_rows(self._rows, rows, w if self._factors is None else self._factors * w, scores, 0, len(rows))
        return scores + parameters[1], rows

    def gradient(self, parameters: list[Floats], passed: Any, lambdas: Floats) -> list[Floats]:
        """Return Σ λ_i x_i and Σ λ_i."""
        total = np.zeros(self.n_features)
        gather_rows(self._rows, passed, lambdas, total, 0, len(lambdas))
        if self._factors is not None:
            total *= self._factors
        return [total, np.array([lambdas.sum()])]


@dataclass(frozen=True, eq=False)
class Perceptron:
    """
    f(x) = w·tanh(... tanh(W₁ᵀz + b₁) ...) + b over z = symlog(x − mean); parameters W₁, b₁, ..., w, b.

    symlog(x) = sign(x) log(1 + |x|) is the identity near the mean and shortens long tails.
    """

    Z: Floats  # the inputs of the first layer, see `network_inputs`
    hidden: tuple[int, ...]  # width of each hidden layer

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Draw weights of variance 1/(inputs of a layer); biases are zero."""
        sizes = [self.Z.shape[1], *self.hidden, 1]
        parameters: list[Floats] = []
        for n_in, n_out in pairwise(sizes):
            parameters += [rng.normal(scale=n_in**-0.5, size=(n_in, n_out)), np.zeros(n_out)]
        return parameters

    def score(self, parameters: list[Floats], rows: Integers) -> tuple[Floats, Any]:
        """Return scores, and the outputs of every layer."""
        outputs = [self.Z[rows]]
        for W, b in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
            outputs.append(np.tanh(outputs[-1] @ W + b))
        return (outputs[-1] @ parameters[-2])[:, 0] + parameters[-1], outputs

    def gradient(self, parameters: list[Floats], passed: Any, lambdas: Floats) -> list[Floats]:
        """Propagate λ back through the layers."""
        gradients: list[Floats] = []
        back = lambdas[:, None]
        for layer in range(len(passed) - 1, -1, -1):
            gradients = [passed[layer].T @ back, back.sum(axis=0), *gradients]
            if layer:
                back = (back @ parameters[2 * layer].T) * (1.0 - passed[layer] ** 2)
        return gradients


def network_inputs(X: Any, mean: Floats) -> Floats:
    """Return symlog(x − mean) of dense rows, the inputs of the first layer."""
    x = np.asarray(X[:], dtype=np.float64) - mean
    inputs: Floats = np.sign(x) * np.log1p(np.abs(x))
    return inputs


def score_network(X: Any, mean: Floats, parameters: list[Floats]) -> Floats:
    """Score dense rows by the parameters of a perceptron, block by block."""
    scores = np.empty(X.shape[0])
    for begin in range(0, len(scores), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        Z = network_inputs(X[block], mean)
        scores[block] = Perceptron(Z, ()).score(parameters, np.arange(len(Z)))[0]
    return scores


def column_mean(data: RankingData) -> Floats:
    """Return the weighted means of the columns of dense rows, scored or not."""
    weights = data.weight_of(np.arange(data.n_rows))
    total = np.zeros(data.n_features)
    for begin in range(0, data.n_rows, _BLOCK):
        block = slice(begin, begin + _BLOCK)
        total += weights[block] @ data.X[block]
    return np.asarray(total / weights.sum())


N_CHECKS = 40
"""Number of times that the validation rows are scored during a fit."""

_LATER = 8.0


@dataclass(frozen=True, eq=False)
class LambdaProblem:
    """The rows to learn from, and λ."""

    lambdas: Lambda  # λ
    lists: Lists  # the judged rows, query by query
    offset: Floats  # (n,): their prior scores

    def evaluate(self, scores: Floats, n_jobs: int | None = None) -> Floats:
        """Return λ and curvatures of all rows."""
        return self.lambdas.of_lists(self.lists, self.offset + scores, n_jobs)

    def evaluate_first(self, scores: Floats, n_jobs: int | None = None) -> Floats:
        """Return λ and curvatures of all rows at the start; raise if all λ are zero."""
        values = self.evaluate(scores, n_jobs)
        if not values[0].any():
            raise InputError(f"'{self.lambdas}' is zero for all {len(scores)} judged rows; check the grades of y.")
        return values


@dataclass(frozen=True)
class StepSettings:
    """Settings of training."""

    n_steps: int  # number of steps, or of trees
    batch: int  # queries per step
    rate: float  # learning rate
    weight_decay: float  # decoupled weight decay, per unit of the learning rate
    patience: int | None  # checks without a lower error after which to stop; None never stops
    verbose: bool  # whether to show a progress bar

    @property
    def checks(self) -> list[int]:
        """Numbers of steps after which the validation rows are scored."""
        ends: list[int] = np.linspace(0, self.n_steps, min(self.n_steps, N_CHECKS) + 1)[1:].astype(int).tolist()
        return ends


@dataclass(frozen=True, eq=False)
class TrainingState:
    """State of training: everything that is needed to continue bit for bit."""

    steps: int  # taken so far
    words: NDArray[np.uint32]  # (4,): random seed of the order of queries
    unit: float  # mean size of λ at the start
    parameters: list[Floats]  # parameters, first, second, mean: θ, Adam's two moments, θ̄
    first: list[Floats]
    second: list[Floats]
    mean: list[Floats]

    @classmethod
    def start(cls, scorer: GradientScorer, problem: LambdaProblem, rng: np.random.Generator) -> TrainingState:
        """Begin with a scorer's initial parameters."""
        for_parameters, for_order = rng.spawn(2)
        parameters = scorer.start(for_parameters)
        scores = scorer.score(parameters, problem.lists.rows)[0]
        unit = float(np.abs(problem.evaluate_first(scores)[0]).mean())
        words = for_order.integers(0, 1 << 32, size=4, dtype=np.uint32)
        adam = Adam.start(parameters)
        return cls(0, words, unit, parameters, adam.first, adam.second, parameters)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Result of training."""

    state: TrainingState  # the final state, or that of the best check with early stopping
    errors: Floats  # (n_checks,): on the validation rows; empty without them
    interrupted: bool  # whether Ctrl-C ended training


def train(
    state: TrainingState,
    scorer: GradientScorer,
    problem: LambdaProblem,
    settings: StepSettings,
    error: Callable[[list[Floats]], float] | None,
) -> TrainingResult:
    """Take steps, and check the validation error."""
    best = state
    stopping = EarlyStopping(settings.patience)
    order = QueryOrder(problem.lists.n_queries, settings.batch, state.words)

    def step(_: int) -> None:
        nonlocal state
        state = _step(state, scorer, problem, settings, order.queries(state.steps))

    def check() -> bool:
        nonlocal best
        if error is None:
            return False
        stopping.record(error(state.mean))
        # of equal errors the last one is kept
        if stopping.errors[-1] <= stopping.best_error:
            best = state
        return stopping.is_over

    interrupted = run_training(step, settings.checks, check, verbose=settings.verbose)
    stops_early = settings.patience is not None and bool(stopping.errors)
    return TrainingResult(best if stops_early else state, np.array(stopping.errors), interrupted)


class QueryOrder:
    """
    The queries of each step: all queries in random order, batch by batch, then again.

    n_queries, batch: number of queries, and largest number per step.
    words: random seed.
    """

    def __init__(self, n_queries: int, batch: int, words: NDArray[np.uint32]) -> None:
        self.n_queries, self.words = n_queries, words.tolist()
        self.n_batches = -(-n_queries // batch)
        self._pass, self._batches = -1, [np.arange(n_queries)]

    def queries(self, step: int) -> NDArray[np.int64]:
        """Return the numbers of the queries of a step, which depend on the seed only."""
        if self.n_batches == 1:
            return self._batches[0]
        n_passes, batch = divmod(step, self.n_batches)
        if n_passes != self._pass:
            shuffled = np.random.default_rng([*self.words, n_passes]).permutation(self.n_queries)
            self._pass, self._batches = n_passes, np.array_split(shuffled, self.n_batches)
        return self._batches[batch]


def _step(
    state: TrainingState,
    scorer: GradientScorer,
    problem: LambdaProblem,
    settings: StepSettings,
    queries: NDArray[np.int64],
) -> TrainingState:
    lists, positions = problem.lists.select(queries)
    scores, passed = scorer.score(state.parameters, lists.rows)
    lambdas = problem.lambdas.of_lists(lists, problem.offset[positions] + scores)[0] / (state.unit * len(positions))
    adam = Adam(state.steps, state.first, state.second).update(scorer.gradient(state.parameters, passed, lambdas))
    parameters: list[Floats] = []
    means: list[Floats] = []
    for i, (theta, mean, direction) in enumerate(zip(state.parameters, state.mean, adam.directions(), strict=True)):
        # weights and intercepts alternate; intercepts do not decay
        decay = settings.weight_decay if i % 2 == 0 else 0.0
        moved = theta + settings.rate * (direction - decay * theta)
        parameters.append(moved)
        means.append(mean + (_LATER + 1.0) / (adam.n_steps + _LATER) * (moved - mean))
    return replace(state, steps=adam.n_steps, parameters=parameters, first=adam.first, second=adam.second, mean=means)


def check_stored(stored: Any, shapes: Sequence[tuple[int, ...]]) -> None:
    """Raise if a file's values are not those of a `TrainingState`."""
    state = TrainingState(**stored)
    words = np.asarray(state.words)
    if not is_integer(state.steps) or state.steps < 0 or not number(0, inside="()").allows(state.unit):
        raise InputError("run_ has an invalid number of steps or size of lambdas")
    if words.shape != (4,) or words.dtype != np.uint32:
        raise InputError("run_ has no random seed")
    for arrays in (state.parameters, state.first, state.second, state.mean):
        if [np.shape(array) for array in arrays] != list(shapes) or not all(
            np.isfinite(array).all() for array in arrays
        ):
            raise InputError("run_ has parameters of another model")
    if any((array < 0.0).any() for array in state.second):
        raise InputError("run_ has moving averages of squares below 0")


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Rows to measure the error on during training: an `eval_set`, or judgements that were held out."""

    X: Any  # the rows
    error: Callable[[Floats], float]  # takes their scores
    metric: str  # 1 − error if larger is better

    def result(self, errors: list[float]) -> tuple[str, str, float, bool]:
        """Return the last value for LightGBM's callbacks: name of the rows, metric, value, whether larger is better."""
        is_larger = parse_metric(self.metric).measure.larger_is_better
        return "valid_0", self.metric, 1.0 - errors[-1] if is_larger else errors[-1], is_larger

    @classmethod
    def of_eval_set(cls, eval_set: Any, data: RankingData, metric: str, *, keeps_missing: bool) -> ValidationRows:
        """Check an `eval_set`."""
        if not isinstance(eval_set, RankingData):
            if not isinstance(eval_set, tuple | list) or len(eval_set) not in (3, 4):
                raise InputError(
                    "eval_set must be one tuple (X, y, qid) or (X, y, qid, prior); pass rows, grades and query ids of "
                    "one validation set."
                )
            rows = encode_like(eval_set[0], data.names)
            eval_set = RankingData.of(rows, *eval_set[1:3]).with_prior(*eval_set[3:] or (None,))
        filling = None if keeps_missing else data.filling
        n_features = data.n_features - (0 if filling is None else len(filling.columns))
        if eval_set.y is None or eval_set.n_features != n_features:
            raise InputError(
                f"eval_set has {eval_set.n_features} features"
                + (" and no grades" if eval_set.y is None else "")
                + f", but X has {n_features}; pass graded rows of the same columns."
            )
        if filling is not None:
            eval_set = replace(eval_set, X=filling.fill(eval_set.X))
        elif eval_set.has_missing and not keeps_missing:
            raise InputError("eval_set contains NaN, but X does not; fill its missing values.")
        if (eval_set.prior is None) != (data.prior is None):
            raise InputError(
                "prior was given for only one of X and eval_set; pass eval_set=(X, y, qid, prior), or no prior."
            )
        factors = factors_of(data.X)
        rows = eval_set.scored_rows
        X = eval_set.X[rows] if factors is None else ScaledRows(eval_set.X[rows], factors)
        return cls(X, _error(eval_set, rows, metric), metric)

    @classmethod
    def of_held_out(cls, held: HeldOut, metric: str) -> ValidationRows:
        """Return the judgements that were held out."""
        X, rows, test = held.test.X, held.rows, held.test
        factors = factors_of(X)
        X = X[rows] if factors is None else ScaledRows(X.X[rows], factors)
        if test.y is None:
            return cls(X, held.error, "disagreement")
        return cls(X, _error(test, rows, metric), metric)


def _error(data: RankingData, rows: NDArray[np.int64], metric: str) -> Callable[[Floats], float]:
    assert data.y is not None
    y, qid, prior = data.y[rows], data.queries.codes[rows], data.prior_of(rows)
    larger_is_better = parse_metric(metric).measure.larger_is_better

    def error(scores: Floats) -> float:
        mean = evaluate(y, prior + scores, qid, metric)[metric].mean
        if np.isnan(mean):
            raise InputError(
                f"{metric} is not defined for any validation query; choose another metric, or pass more queries."
            )
        return 1.0 - mean if larger_is_better else mean

    return error
