"""LinearDescent: what SPD, CRR and LCRA share, from checking parameters to predicting."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.pairs.coupled_descent import Columns
from corank.core.pairs.steps import DescentPlan
from corank.core.threads import n_threads
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.base import Interrupted, Ranker
from corank.estimator.held_out import HeldOut
from corank.linear.fitted import Fitted, factors, judge_of
from corank.linear.objective import Objective
from corank.linear.runs import Runs, require_stored
from corank.linear.solvers import Found, can_solve, solve
from corank.linear.task import RATES, Task, columns_of_views
from corank.linear.training import train
from corank.pairwise.losses import LOSSES, Loss
from corank.pairwise.sampling import DRAWS, QUERY_WEIGHTS
from corank.parameters import Rules, boolean, n_jobs, none, number, one_of, seed, whole
from corank.solvers.penalty import default_alpha
from corank.solvers.targets import Range, unit_range

Floats = NDArray[np.float64]


class LinearDescent(Ranker):
    """A linear ranker learnt by stochastic descent, or exactly where that is cheaper; the base of SPD, CRR and LCRA."""

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    # a ranker without these parameters learns from pairs only, and by no Newton steps
    mix: float = 0.0
    fit_intercept: bool = False
    tol: float = 1e-10
    max_iter: int = 100

    coef_: Floats
    intercept_: float
    alpha_: float
    alpha_from_: str
    score_range_: Floats
    objective_trace_: Floats
    eta0_: float
    run_: dict[str, Any]

    _rules: ClassVar[Rules] = {
        "loss": one_of(*LOSSES),
        "alpha": number(0) | none,
        "l1": number(0),
        "query_weight": one_of(*QUERY_WEIGHTS),
        "draw": one_of(*DRAWS),
        "scale": boolean,
        "solver": one_of("auto", "sgd", "exact"),
        "tol": number(0, 1, inside="()"),
        "max_iter": whole(1),
        "rate": one_of(*RATES),
        "eta0": number(0, inside="()") | none,
        "n_steps": whole(0),
        "average": boolean | none,
        "project": boolean,
        "early_stopping": boolean,
        "validation_fraction": number(0, 1, inside="()"),
        "n_iter_no_change": whole(1),
        "warm_start": boolean,
        "n_jobs": n_jobs,
        "random_state": seed,
        "verbose": boolean,
    }

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

        Without early stopping, k steps and then m steps on the same data give, bit for bit, what k + m steps give, also
        when the model was saved and loaded in between. A model that was solved exactly goes on from its weights. What
        columns are divided by, and alpha where it was chosen, stay those of the first call.

        Parameters
        ----------
        X, y, qid, sample_weight, pairs, pair_weight, prior
            As in `fit`.

        Returns
        -------
        self
            The fitted ranker.
        """
        if self.solver == "exact":
            raise InputError("partial_fit takes stochastic steps, but solver is 'exact'; set solver='sgd' or 'auto'.")
        continues = hasattr(self, "coef_")
        if continues:
            self._require_same_scale()
        descend = partial(self._descend, continues=continues)
        weights = (sample_weight, pair_weight)
        return self._learn((X, y, qid, pairs), weights, prior, continues=continues, fit=descend)

    def _score_rows(self, X: Any) -> Floats:
        """Return w · x + b."""
        return np.asarray(self._checked_rows(X) @ self.coef_ + self.intercept_, dtype=np.float64)

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
            raise InputError("rate='adagrad' already averages pulls; leave average and project False.")
        if self.l1 > 0.0 and (self.average or self.project):
            raise InputError("l1 asks for exact zeros, which average and project would undo; leave both False.")
        if self.project and self.alpha == 0.0:
            raise InputError("project needs alpha above 0, since the ball has radius 1/√alpha; set project=False.")
        if self._continues:
            self._require_same_scale()
        if self.solver != "exact":
            return
        if self.l1 > 0.0 or self.early_stopping or self.draw != "pairs":
            raise InputError(
                "solver='exact' minimises the mean over all pairs without l1 or early stopping; "
                "set l1=0, early_stopping=False and draw='pairs', or choose solver='sgd'."
            )
        if not self._has_optimum:
            raise InputError(
                f"solver='exact' is not available for {type(self).__name__} with the {self.loss} loss; choose "
                "loss='squared', or solver='sgd'."
            )

    @property
    def _has_optimum(self) -> bool:
        """Whether the optimum can be computed."""
        return Loss.of(self.loss).exact is not None

    def _require_same_scale(self) -> None:
        """Raise one sentence where a fitted model saw columns otherwise than it would now."""
        if hasattr(self, "column_scale_") != bool(self.scale):
            raise InputError(f"scale is {self.scale}, but this model was begun with {not self.scale}; fit it anew.")

    def _check_state(self) -> None:
        """Raise where what `partial_fit` goes on from is not what a descent, or an exact solver, leaves behind."""
        if not all(number(0).allows(amount) for amount in (self.alpha_, getattr(self, "eta0_", 0.0))):
            raise InputError("alpha_ or eta0_ is no finite number from 0")
        if not isinstance(self.alpha_from_, str):
            raise InputError("alpha_from_ is no text")
        low, high = map(float, getattr(self, "score_range_", (0.0, 0.0)))
        if not -np.inf < low <= high < np.inf:
            raise InputError(f"score_range_ is from {low:g} to {high:g}")
        if hasattr(self, "run_"):
            require_stored(self.run_, self.objective_trace_)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> Fitted:
        is_quick = self.l1 == 0.0 and self.alpha != 0.0 and self.draw == "pairs" and self._has_optimum
        is_quick = is_quick and held is None and not self.warm_start and can_solve(data, Loss.of(self.loss))
        if self._continues or self.solver == "sgd" or (self.solver == "auto" and not is_quick):
            return self._descend(data, held, rng, self._continues)
        columns, objective = self._layout(data, rng.spawn(1)[0]), self._objective(data)
        newton = {"tol": self.tol, "max_iter": self.max_iter, "verbose": self.verbose}
        found = solve(objective.targets(data), objective, columns.of_views, **newton)
        return self._fitted(data, objective, columns, found)

    def _descend(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator, continues: bool) -> Fitted:
        """Take stochastic steps, from where the fitted model ended where it `continues`."""
        data = data if held is None else held.train
        # each question its own generator, so that a resumed run samples what the first one did
        for_views, for_sample, for_dice = rng.spawn(3)
        objective = self._objective(data, continues)
        data = objective.targets(data)
        task = Task.of(data, objective, self._layout(data, for_views, continues), for_sample)
        resumes = continues and hasattr(self, "run_")
        runs = self._resumed(task) if resumes else self._started(task, data, for_dice, continues)
        judge = None if held is None else judge_of(replace(held, test=objective.targets(held.test)), self.loss)
        went = train(runs, task, self.n_steps, judge, self.n_iter_no_change, self.verbose)
        if went.interrupted and went.runs.n_steps == 0:
            raise KeyboardInterrupt
        W, biases = went.runs.weights(task.columns)
        found = Found(W, biases, task.sample.objective(objective, W, biases), went.runs.n_steps)
        fitted = replace(
            self._fitted(data, objective, task.columns, found, task),
            eta0=runs.plan.eta0,
            objective_trace=np.concatenate([self.objective_trace_, went.trace[1:]]) if resumes else went.trace,
            validation_errors=None if held is None else went.errors,
            run=went.runs.stored(),
        )
        if went.interrupted:
            raise Interrupted(fitted)
        return fitted

    def _fitted(
        self, data: RankingData, objective: Objective, columns: Columns, found: Found, task: Task | None = None
    ) -> Fitted:
        """Return the model of weights that were found for the columns as `_fit` saw them; a descent adds its task."""
        return Fitted(
            coef=found.W.mean(axis=0) * factors(data),
            intercept=float(found.biases.mean()),
            alpha=objective.alpha,
            alpha_from=objective.alpha_from,
            objective=float(found.objective),
            n_iter=int(found.n_iter),
            n_skipped_queries=len(data.single_grade_queries) if self._needs_pairs else 0,
            score_range=None if objective.score_range is None else np.array(objective.score_range),
        )

    def _objective(self, data: RankingData, continues: bool = False) -> Objective:
        """Return what is minimised; what was chosen from the data, a model that goes on keeps."""
        if self.alpha is not None:
            alpha, source = self.alpha, "given"
        elif continues:
            alpha, source = self.alpha_, self.alpha_from_
        else:
            alpha, source = default_alpha(data, self.query_weight), "pair differences"
        objective = Objective(
            Loss.of(self.loss), float(alpha), source, float(self.l1), float(self.mix),
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
                f"y runs from {low:g} to {high:g}, beyond the {kept[0]:g} to {kept[1]:g} that this model was begun "
                "with; bring the scores of all parts into [0, 1] alike, or fit it anew."
            )
        return kept

    def _layout(self, data: RankingData, rng: np.random.Generator, continues: bool = False) -> Columns:
        """Return which views see which columns: here, one view sees all."""
        return columns_of_views(data.X, [np.arange(data.n_features)])

    def _started(self, task: Task, data: RankingData, rng: np.random.Generator, solved: bool) -> Runs:
        columns = task.columns
        plan = self._plan(task.objective, task.first_rate(self.rate, self.eta0))
        weights, biases = np.zeros(len(columns.views)), np.zeros(len(columns.of_views))
        if solved and self.rate == "adagrad":
            raise InputError("this model was solved exactly, from where AdaGrad cannot go on; choose another rate.")
        if solved:
            with np.errstate(over="ignore"):
                W = np.atleast_2d(getattr(self, "view_coefs_", self.coef_)) / factors(data)
            if not np.isfinite(W).all():
                raise InputError("the weights of this model are too large to go on from; fit it anew.")
            weights, biases = W[columns.views, columns.of_slots], biases + self.intercept_
        return Runs.start(plan, 1 if self.n_jobs is None else n_threads(self.n_jobs), weights, biases, rng)

    def _resumed(self, task: Task) -> Runs:
        n_runs = len(self.run_["steps"])
        plan = self._plan(task.objective, task.first_rate(self.rate, self.eta0_))
        if self.n_jobs is not None and n_threads(self.n_jobs) != n_runs:
            raise InputError(
                f"n_jobs is {self.n_jobs}, but this model was begun with {n_runs} runs; "
                f"set n_jobs={n_runs}, or fit it anew."
            )
        if plan.kind != self.run_["kind"]:
            raise InputError(
                f"this model was begun with {self.run_['kind']} weights and cannot go on with {plan.kind} ones; "
                "keep rate, average, project and whether l1 is zero as they were, or fit it anew."
            )
        runs = Runs.resume(plan, self.run_)
        runs.require_room(task.columns)
        return runs

    def _plan(self, objective: Objective, eta0: float) -> DescentPlan:
        o = objective
        average = o.l1 == 0.0 and self.rate != "adagrad" if self.average is None else bool(self.average)
        return DescentPlan(
            o.loss.code, RATES[self.rate], o.alpha, o.l1, eta0, o.mix, o.coupling, o.batch, o.unscored_batch,
            average, bool(self.project), o.fit_intercept,
        )  # fmt: skip
