"""LinearDescent, the common base of SPD, CRR and LCRA, and the choice between exact solvers and descent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.base import solvers as exact
from corank.base.base import Interrupted, Ranker
from corank.base.held_out import HeldOut
from corank.base.pairs.losses import Loss
from corank.base.solvers.least_squares import MAX_DENSE, MAX_SUMS
from corank.base.solvers.penalty import default_alpha
from corank.base.solvers.solution import Range, unit_range
from corank.core.pairs.coupled_descent import Columns
from corank.core.pairs.steps import SGDPlan
from corank.core.rows.access import factors_of, plain
from corank.core.threads import n_threads
from corank.data.ranking import RankingData
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Relations
from corank.models.linear.descent import (
    RATES,
    DescentProblem,
    HeldOutError,
    Objective,
    ObjectiveSample,
    ParallelDescent,
    columns_of_views,
    require_stored,
    train,
)
from corank.parameters import Missing, QueryWeight, Rules, boolean, integer, n_jobs, none, number, seed

Draw = Literal["pairs", "rows"]
Rate = Literal["pegasos", "constant", "sqrt", "adagrad"]
Solver = Literal["auto", "sgd", "exact"]
Floats = NDArray[np.float64]

# limits of `can_solve`: numbers stored in X, and pairs that are visited one by one
MAX_NUMBERS = 10**9
MAX_PAIRS = 2 * 10**6


class ViewWeights(NamedTuple):
    """Weights of the views, by an exact solver or by descent."""

    W: Floats  # (n_views, n_features): weights of each view
    biases: Floats  # (n,): biases of the views, or their mean
    objective: float  # value of the objective
    n_iter: int  # number of steps


def can_solve(data: RankingData, loss: Loss) -> bool:
    """
    Return whether ``solver="auto"`` uses an exact solver, because it is cheaper than stochastic steps.

    It does so for alpha > 0 and without l1, early stopping, warm starts or ``draw="rows"``:

    * squared loss: at most 4000 columns and n d² ≤ 10¹² (one scan of the rows);
    * squared hinge: at most 10⁹ numbers stored in X (some tens of passes);
    * logistic loss, and others that visit every pair: at most 2·10⁶ pairs, and 10⁹ numbers stored in X;
    * hinge: never.
    """
    n, d, X = data.n_rows, data.n_features, plain(data.X)
    if loss.exact == "system":
        return d <= MAX_DENSE and n * d * d <= MAX_SUMS
    is_small = bool((X.nnz if sparse.issparse(X) else n * d) <= MAX_NUMBERS)
    return is_small and (loss.exact == "sorted" or (loss.exact == "pairs" and data.n_pairs <= MAX_PAIRS))


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A fitted linear model, see the attributes of `corank.SPD`."""

    coef: Floats
    intercept: float
    alpha: float | Floats
    alpha_from: str
    objective: float
    n_iter: int
    n_skipped_queries: int
    score_range: Floats | None = None  # (2,): only of a model that learns shares
    eta0: float | Floats | None = None  # eta0, objective_trace, validation_errors, run: only after stochastic descent
    objective_trace: Floats | None = None
    validation_errors: Floats | None = None
    run: dict[str, Any] | None = None


def factors(data: RankingData) -> Floats | float:
    """Return the factors that turn weights of scaled columns into weights of the columns as given."""
    scaled = factors_of(data.X)
    return 1.0 if scaled is None else scaled


def error_on(held: HeldOut, loss: str) -> HeldOutError:
    """Return the held-out error as a function of weights and biases."""
    rows = held.test.X[held.rows]

    def error(W: Floats, biases: Floats) -> float:
        # a logistic margin predicts a probability
        return held.error(rows @ W.mean(axis=0) + biases.mean(), logistic if loss == "logistic" else None)

    return error


def logistic(margins: Floats) -> Floats:
    """Return σ(m) = (1 + tanh(m/2))/2, which does not overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * margins))


@dataclass(eq=False, repr=False)
class LinearDescent(Ranker):
    """Linear ranker learnt by stochastic descent, or by an exact solver where that is cheaper."""

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    _rules: ClassVar[Rules] = {
        "alpha": number(0) | none,
        "l1": number(0),
        "scale": boolean,
        "tol": number(0, 1, inside="()"),
        "max_iter": integer(1),
        "eta0": number(0, inside="()") | none,
        "n_steps": integer(0),
        "average": boolean | none,
        "project": boolean,
        "early_stopping": boolean,
        "validation_fraction": number(0, 1, inside="()"),
        "n_iter_no_change": integer(1),
        "warm_start": boolean,
        "n_jobs": n_jobs,
        "random_state": seed,
        "verbose": boolean,
    }

    _relations: ClassVar[Relations] = {
        "run_ comes with eta0_ and objective_trace_": lambda m: (
            not hasattr(m, "run_") or (hasattr(m, "eta0_") and hasattr(m, "objective_trace_"))
        ),
    }

    _: KW_ONLY
    l1: float = 0.0
    query_weight: QueryWeight = "pairs"
    draw: Draw = "pairs"
    scale: bool = True
    missing: Missing = "mean"
    solver: Solver = "auto"
    rate: Rate = "pegasos"
    eta0: float | Sequence[float] | None = None
    n_steps: int = 100_000
    average: bool | None = None
    project: bool = False
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    verbose: bool = False

    # a ranker without these parameters
    mix = 0.0
    fit_intercept = False
    tol = 1e-10
    max_iter = 100

    coef_: Floats = field(init=False)
    intercept_: float = field(init=False)
    score_range_: Floats = field(init=False)
    objective_trace_: Floats = field(init=False)
    eta0_: float | Floats = field(init=False)
    run_: dict[str, Any] = field(init=False)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
        pair_weight: Any = None,
        prior: ArrayLike | None = None,
    ) -> Self:
        """
        Take `n_steps` further stochastic steps, on the same or on other rows.

        Without early stopping, k steps followed by m steps on the same data give the same bits as k + m steps, also if
        the model is saved and loaded in between. A model from an exact solver continues from its weights. The scale of
        columns and an automatically chosen alpha remain those of the first call.
        """
        if self.solver == "exact":
            raise InputError("solver is 'exact', but partial_fit takes stochastic steps; set solver='sgd' or 'auto'.")
        continues = hasattr(self, "coef_")
        if continues:
            self._require_same_scale()
        descend = partial(self._descend, continues=continues)
        weights = (sample_weight, pair_weight)
        return self._learn((X, y, qid, pairs), weights, prior, continues=continues, fit=descend)

    def _score_rows(self, X: Any) -> Floats:
        """Return w · x + b."""
        return score_columns(self._checked_rows(X), self.coef_) + self.intercept_

    @property
    def _needs_pairs(self) -> bool:  # type: ignore[override]
        return self.mix < 1.0

    @property
    def _learns_from_differences(self) -> bool:  # type: ignore[override]
        return self.mix == 0.0

    @property
    def _learns_sizes(self) -> bool:  # type: ignore[override]
        return Loss.of(self.loss).scores != "signs"

    @property
    def _continues(self) -> bool:
        return self.warm_start and self.solver != "exact" and hasattr(self, "run_")

    def _check_combinations(self) -> None:
        if self.rate == "adagrad" and (self.average or self.project):
            raise InputError("rate='adagrad' already averages gradients; set average=False and project=False.")
        if self.l1 > 0.0 and (self.average or self.project):
            raise InputError("l1 gives exact zeros, which average and project would undo; set both to False.")
        if self.project and self.alpha is not None and np.min(self.alpha) == 0.0:
            raise InputError("alpha is 0, but project needs a ball of radius 1/√alpha; set project=False.")
        if self._continues:
            self._require_same_scale()
        if self.solver != "exact":
            return
        if self.l1 > 0.0 or self.early_stopping or self.draw != "pairs":
            raise InputError(
                "solver='exact' minimises the mean over all pairs without l1 or early stopping; "
                "set l1=0, early_stopping=False and draw='pairs', or choose solver='sgd'."
            )
        if not self._is_solvable:
            raise InputError(
                f"solver='exact' is not available for {type(self).__name__} with the {self.loss} loss; choose "
                "loss='squared', or solver='sgd'."
            )

    @property
    def _is_solvable(self) -> bool:
        return Loss.of(self.loss).exact is not None

    def _require_same_scale(self) -> None:
        """Raise if `scale` was changed since the first fit."""
        if hasattr(self, "column_scale_") != bool(self.scale):
            raise InputError(f"scale is {self.scale}, but this model was started with {not self.scale}; fit it again.")

    def _check_state(self) -> None:
        """Raise if the attributes from which `partial_fit` continues are not valid."""
        chosen = [*np.ravel(self.alpha_), *np.ravel(getattr(self, "eta0_", 0.0))]
        if not all(number(0).allows(amount) for amount in chosen):
            raise InputError("alpha_ or eta0_ is not a finite number from 0")
        if not isinstance(self.alpha_from_, str):
            raise InputError("alpha_from_ is not a string")
        low, high = map(float, getattr(self, "score_range_", (0.0, 0.0)))
        if not -np.inf < low <= high < np.inf:
            raise InputError(f"score_range_ is from {low:g} to {high:g}")
        if hasattr(self, "run_"):
            require_stored(self.run_, self.objective_trace_)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> LinearModel:
        is_penalised = self.alpha is None or bool(np.min(self.alpha) > 0.0)
        is_cheap = self.l1 == 0.0 and is_penalised and self.draw == "pairs" and self._is_solvable
        is_cheap = is_cheap and held is None and not self.warm_start and can_solve(data, Loss.of(self.loss))
        if self._continues or self.solver == "sgd" or (self.solver == "auto" and not is_cheap):
            return self._descend(data, held, rng, self._continues)
        columns, o = self._layout(data, rng.spawn(1)[0]), self._objective(data)
        how: dict[str, Any] = {
            "mix": o.mix, "alpha": o.alpha, "fit_intercept": o.fit_intercept, "query_weight": o.query_weight,
        }  # fmt: skip
        if o.loss.exact == "system":  # several views need the squared loss
            solution = exact.squared_views(o.targets(data), columns.of_views, coupling=o.coupling, **how)
        else:
            how |= {"tol": self.tol, "max_iter": self.max_iter, "verbose": self.verbose}
            solution = exact.smooth_loss(o.targets(data), o.loss.name, **how)
        W = np.zeros((len(columns.of_views), data.n_features))
        for w, chosen, coef in zip(W, columns.of_views, solution.view_coefs or (solution.coef,), strict=True):
            w[chosen] = coef
        weights = ViewWeights(W, np.array([solution.intercept]), solution.objective, solution.n_iter)
        return self._fitted(data, o, columns, weights)

    def _descend(
        self, data: RankingData, held: HeldOut | None, rng: np.random.Generator, continues: bool
    ) -> LinearModel:
        """Take stochastic steps, from zero or from the fitted model."""
        data = data if held is None else held.train
        # separate generators, so that a resumed run draws the same sample as the first one
        for_views, for_sample, for_steps = rng.spawn(3)
        objective = self._objective(data, continues)
        data = objective.targets(data)
        problem = DescentProblem.of(data, objective, self._layout(data, for_views, continues), for_sample)
        resumes = continues and hasattr(self, "run_")
        rates = problem.first_rates(self.rate, self.eta0_ if resumes else self.eta0)
        plan = self._plan(problem, rates)
        runs = self._resumed(plan, problem) if resumes else self._started(plan, problem, data, for_steps, continues)
        held_out_error = None if held is None else error_on(replace(held, test=objective.targets(held.test)), self.loss)
        result = train(runs, problem, self.n_steps, held_out_error, self.n_iter_no_change, self.verbose)
        n_steps = result.runs.n_steps
        if result.interrupted and n_steps == 0:
            raise KeyboardInterrupt
        W, biases = result.runs.weights(problem.columns)
        weights = ViewWeights(W, biases, problem.sample.objective(objective, W, biases), n_steps)
        fitted = replace(
            self._fitted(data, objective, problem.columns, weights, problem.sample),
            eta0=rates,
            objective_trace=np.concatenate([self.objective_trace_, result.trace[1:]]) if resumes else result.trace,
            validation_errors=None if held is None else result.errors,
            run=result.runs.stored(),
        )
        if result.interrupted:
            raise Interrupted(fitted)
        return fitted

    def _fitted(
        self,
        data: RankingData,
        objective: Objective,
        columns: Columns,
        weights: ViewWeights,
        sample: ObjectiveSample | None = None,
    ) -> LinearModel:
        """Return the model of given weights of the scaled columns; `sample` is that of a descent."""
        return LinearModel(
            coef=weights.W.mean(axis=0) * factors(data),
            intercept=float(weights.biases.mean()),
            alpha=objective.alpha,
            alpha_from=objective.alpha_from,
            objective=float(weights.objective),
            n_iter=int(weights.n_iter),
            n_skipped_queries=len(data.single_grade_queries) if self._needs_pairs else 0,
            score_range=None if objective.score_range is None else np.array(objective.score_range),
        )

    def _objective(self, data: RankingData, continues: bool = False) -> Objective:
        """Return the objective; `continues` keeps what the fitted model chose from its data."""
        if self.alpha is not None:
            alpha, source = np.array(self.alpha, dtype=np.float64), "given"
        elif continues:
            alpha, source = np.array(self.alpha_, dtype=np.float64), self.alpha_from_
        else:
            alpha, source = np.array(default_alpha(data, self.query_weight)), "pair differences"
        objective = Objective(
            Loss.of(self.loss), alpha if np.ndim(alpha) else float(alpha), source, float(self.l1), float(self.mix),
            fit_intercept=bool(self.fit_intercept), query_weight=self.query_weight, draw=self.draw,
            score_range=self._score_range(data, continues) if Loss.of(self.loss).scores == "unit" else None,
        )  # fmt: skip
        objective.require_scores(objective.targets(data))
        return objective

    def _score_range(self, data: RankingData, continues: bool) -> Range:
        low, high = unit_range(data, self.mix > 0.0)
        if not continues or not hasattr(self, "score_range_"):
            return low, high
        kept = (float(self.score_range_[0]), float(self.score_range_[1]))
        if low < kept[0] or high > kept[1]:
            raise InputError(
                f"y ranges from {low:g} to {high:g}, but this model was started with scores from {kept[0]:g} to "
                f"{kept[1]:g}; scale the scores of all parts to [0, 1], or fit it again."
            )
        return kept

    def _layout(self, data: RankingData, rng: np.random.Generator, continues: bool = False) -> Columns:
        """Return the columns of each view: by default, one view of all columns."""
        return columns_of_views(data.X, [np.arange(data.n_features)])

    def _started(
        self, plan: SGDPlan, problem: DescentProblem, data: RankingData, rng: np.random.Generator, solved: bool
    ) -> ParallelDescent:
        columns = problem.columns
        weights, biases = np.zeros(len(columns.views)), np.zeros(len(columns.of_views))
        if solved and self.rate == "adagrad":
            raise InputError("rate='adagrad' cannot continue from an exactly solved model; choose another rate.")
        if solved:
            with np.errstate(over="ignore"):
                W = np.atleast_2d(getattr(self, "view_coefs_", self.coef_)) / factors(data)
            if not np.isfinite(W).all():
                raise InputError("the weights of this model are too large to continue from; fit it again.")
            weights, biases = W[columns.views, columns.of_slots], biases + self.intercept_
        return ParallelDescent.start(plan, 1 if self.n_jobs is None else n_threads(self.n_jobs), weights, biases, rng)

    def _resumed(self, plan: SGDPlan, problem: DescentProblem) -> ParallelDescent:
        n_runs = len(self.run_["steps"])
        if self.n_jobs is not None and n_threads(self.n_jobs) != n_runs:
            raise InputError(
                f"n_jobs is {self.n_jobs}, but this model was started with {n_runs} runs; "
                f"set n_jobs={n_runs}, or fit it again."
            )
        if plan.kind != self.run_["kind"]:
            raise InputError(
                f"this model was started with {self.run_['kind']} weights and cannot continue with {plan.kind} ones; "
                "keep rate, average, project and whether l1 is zero unchanged, or fit it again."
            )
        runs = ParallelDescent.resume(plan, self.run_)
        runs.require_room(problem.columns)
        return runs

    def _plan(self, problem: DescentProblem, rates: float | Floats) -> SGDPlan:
        o, M = problem.objective, len(problem.columns.of_views)
        average = o.l1 == 0.0 and self.rate != "adagrad" if self.average is None else bool(self.average)
        alpha, eta0, of_views = o.alpha, rates, {}
        if np.ndim(rates):
            of_views = {"view_alphas": np.broadcast_to(o.alpha, M).copy(), "view_rates": np.asarray(rates)}
            alpha = eta0 = 1.0
        return SGDPlan(
            o.loss.code, RATES[self.rate], float(alpha), o.l1, float(eta0), o.mix, o.coupling, o.batch,
            o.unscored_batch, average, bool(self.project), o.fit_intercept, **of_views,
        )  # fmt: skip
