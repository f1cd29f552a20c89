"""LinearDescent: what SPD, CRR and LCRA share, from checking parameters to predicting."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from corank.base import OF_COLUMNS, Ranker, as_weights, rng_of
from corank.core.sgd_parts import Plan, State
from corank.core.threads import n_threads
from corank.data.ranking import RankingData
from corank.data.rows import columns_of
from corank.descent.objective import Objective
from corank.descent.parameters import CONSTRAINTS, RATES, Settings, first_rate, require_sense
from corank.descent.runs import Runs
from corank.descent.solvers import can_solve, solve
from corank.descent.task import Task, Views
from corank.descent.training import Patience, hold_out, train, view_weights
from corank.errors import InputError
from corank.losses import Loss

Floats = NDArray[np.float64]


class LinearDescent(Ranker):
    """A linear ranker learnt by stochastic descent, or exactly where that is cheaper; the base of SPD, CRR and LCRA."""

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}

    n_features_in_: int
    coef_: Floats
    intercept_: float
    loss: str
    alpha: float
    l1: float
    rate: str
    eta0: float | None
    n_steps: int
    average: bool | None
    project: bool
    sampling: str
    solver: str
    tol: float | None
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    verbose: bool

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    def _settings(self) -> Settings:
        return Settings()

    def _choose_views(self, n_features: int, rng: np.random.Generator) -> Views | None:
        return None

    def _keep_views(self, views: Views | None) -> None:
        """Remember the columns of each view, where there are views."""

    def _kept_views(self) -> Views | None:
        return None

    def _can_solve(self, data: RankingData) -> bool:
        """Whether ``solver="auto"`` should solve this problem exactly."""
        return can_solve(data, self.loss, self.alpha)

    def _solve(
        self, data: RankingData, objective: Objective, views: Views | None, weights: Floats | None
    ) -> tuple[Floats, Floats]:
        """Return the weights and the bias of each view, found by an exact solver."""
        solution = solve(data, objective, weights)
        return solution.coef[None, :], np.array([solution.intercept])

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
    ) -> Self:
        """
        Learn from scored rows, or from preferences; after Ctrl-C the model holds what the steps so far have learnt.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, or RankingData
            The rows, or a whole problem (then y, qid and pairs stay None); of a memory-mapped problem only the rows
            drawn are read.
        y : array-like of shape (n_rows,)
            Scores, higher is better; NaN marks an unscored row.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 means what writing the row twice means: a pair weighs the product of its rows.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Preferences instead of y: row numbers, the preferred row first.

        Returns
        -------
        self
            The fitted ranker.
        """
        self._validate_params()
        require_sense(self)
        resume = self.warm_start and self.solver != "exact" and hasattr(self, "run_steps_")
        data = self._given(X, y, qid, pairs, same_columns=resume)
        weights = as_weights(sample_weight, data.n_rows)
        if resume:
            return self._descend(data, weights, resume=True)
        plain = self.l1 == 0.0 and self.tol is None and self.sampling == "pairs" and not self.warm_start
        if self.solver == "exact" or (self.solver == "auto" and plain and self._can_solve(data)):
            return self._solve_exactly(data, weights)
        return self._descend(data, weights, resume=False)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
    ) -> Self:
        """
        Take `n_steps` further stochastic steps, on the same or on other rows.

        Without `tol`, k steps and then m steps on the same data give, bit for bit, what k + m steps give, also when the
        model was saved and loaded in between. A model that was solved exactly goes on from its weights.

        Parameters
        ----------
        X, y, qid, sample_weight, pairs
            As in `fit`.

        Returns
        -------
        self
            The fitted ranker.
        """
        self._validate_params()
        require_sense(self)
        resume = hasattr(self, "run_steps_")
        if self.solver == "exact":
            raise InputError("partial_fit takes stochastic steps, but solver is 'exact'; set solver='sgd' or 'auto'.")
        solved = hasattr(self, "coef_") and not resume
        if solved and self.rate == "adagrad":
            raise InputError("this model was solved exactly, from where AdaGrad cannot go on; choose another rate.")
        data = self._given(X, y, qid, pairs, same_columns=resume or solved)
        return self._descend(data, as_weights(sample_weight, data.n_rows), resume, solved)

    def _given(
        self, X: Any, y: Any, qid: ArrayLike | None, pairs: ArrayLike | None, same_columns: bool = False
    ) -> RankingData:
        before = {name: value for name, value in vars(self).items() if name in OF_COLUMNS}
        data = self._problem(X, y, qid) if pairs is None else self._preferences(X, y, qid, pairs)
        if same_columns:
            for name in OF_COLUMNS:
                self.__dict__.pop(name, None)
            for name, value in before.items():
                setattr(self, name, value)
            validate_data(self, columns_of(X, data.X), skip_check_array=True, reset=False)
        return data

    def _solve_exactly(self, data: RankingData, weights: Floats | None) -> Self:
        views, objective = self._choose_views(data.n_features, rng_of(self.random_state).spawn(1)[0]), self._objective()
        if data.y is not None:
            scored = data.is_scored
            objective.loss.require_scores(data.y[scored], data.queries.codes[scored], objective.mix > 0.0)
        if objective.mix < 1.0:
            data.require_pairs()
        W, biases = self._solve(data, objective, views, weights)
        self._replace(views, W, biases)
        self.n_steps_ = 0
        self.n_skipped_queries_ = len(data.single_grade_queries)
        return self

    def _descend(self, data: RankingData, weights: Floats | None, resume: bool, solved: bool = False) -> Self:
        # each question its own generator, so that a resumed run holds out and samples what the first one did
        for_views, for_holding_out, for_sample, for_dice = rng_of(self.random_state).spawn(4)
        W = self._view_weights() if solved else None
        views = self._kept_views() if resume or solved else self._choose_views(data.n_features, for_views)
        patience = None
        if self.tol is not None:
            data.require_pairs()
            data, judge = hold_out(data, self.validation_fraction, for_holding_out)
            patience = Patience(judge, self.tol, self.n_iter_no_change)
        task = Task.of(data, self._objective(), views, weights, for_sample)
        runs = self._resumed(task) if resume else self._started(task, W, for_dice)
        runs, trace, interrupt = train(runs, task, self.n_steps, patience, self.verbose)
        if resume:
            trace = np.concatenate([self.objective_trace_, trace[1:]])
        self._store(runs, task, views, trace)
        if interrupt is not None:
            raise interrupt
        return self

    def _objective(self) -> Objective:
        s = self._settings()
        return Objective(
            Loss.of(self.loss), s.mix, float(self.alpha), float(self.l1), s.coupling, s.fit_intercept, self.sampling
        )

    def _plan(self, task: Task, eta0: float) -> Plan:
        s, o = self._settings(), task.objective
        return Plan(
            loss=o.loss.code, rate=RATES[self.rate], alpha=o.alpha, l1=o.l1, eta0=eta0, mix=float(o.mix),
            coupling=float(o.coupling), batch=int(s.batch), unscored_batch=int(s.unscored_batch),
            average=self._averages(), project=bool(self.project), fit_intercept=bool(s.fit_intercept),
        )  # fmt: skip

    def _averages(self) -> bool:
        return self.l1 == 0.0 and self.rate != "adagrad" if self.average is None else bool(self.average)

    def _started(self, task: Task, W: Floats | None, rng: np.random.Generator) -> Runs:
        n_views = 1 + int(task.columns.views.max(initial=0))
        plan = self._plan(task, first_rate(task, n_views, self.rate, self.eta0))
        n_runs = 1 if self.n_jobs is None else n_threads(self.n_jobs)
        if W is None:
            return Runs.start(plan, n_runs, np.zeros(len(task.columns.views)), np.zeros(n_views), rng)
        weights = W[task.columns.views, task.columns.of_slots]
        return Runs.start(plan, n_runs, weights, np.full(n_views, self.intercept_), rng)

    def _resumed(self, task: Task) -> Runs:
        stored = {name: getattr(self, f"run_{name}_") for name in State._fields}
        if self.n_jobs is not None and n_threads(self.n_jobs) != len(stored["steps"]):
            raise InputError(
                f"n_jobs is {self.n_jobs}, but this model was begun with {len(stored['steps'])} runs; "
                f"set n_jobs={len(stored['steps'])}, or fit it anew."
            )
        plan = self._plan(task, self.eta0_)
        if plan.kind != self.run_kind_:
            raise InputError(
                f"this model was begun with {self.run_kind_} weights and cannot go on with {plan.kind} ones; "
                "keep rate, average, project and whether l1 is zero as they were, or fit it anew."
            )
        return Runs.resume(plan, stored)

    def _store(self, runs: Runs, task: Task, views: Views | None, trace: Floats) -> None:
        W, biases = view_weights(runs, task)
        if not np.isfinite(W).all():
            raise InputError(
                f"the weights overflowed with a first rate of {runs.plan.eta0:g}; "
                "scale the columns of X, or pass a smaller eta0."
            )
        self._replace(views, W, biases)
        self.n_steps_ = runs.n_steps
        self.n_skipped_queries_ = task.n_skipped_queries
        self.objective_trace_ = trace
        self.eta0_, self.run_kind_ = runs.plan.eta0, runs.plan.kind
        for name, value in runs.stored().items():
            setattr(self, f"run_{name}_", value)

    def _view_weights(self) -> Floats:
        return self.coef_[None, :]

    def _set_weights(self, W: Floats, biases: Floats) -> None:
        self.coef_ = W.mean(axis=0)
        self.intercept_ = float(biases.mean())

    def _replace(self, views: Views | None, W: Floats, biases: Floats) -> None:
        """Put a new model in the place of an old one, at once: what fails or is broken off leaves the old one whole."""
        self._forget()
        self._keep_views(views)
        self._set_weights(W, biases)

    def _preferences(self, X: Any, y: Any, qid: ArrayLike | None, pairs: ArrayLike) -> RankingData:
        if y is not None:
            raise InputError("y came beside pairs; pass scores or preferences, not both.")
        data = RankingData.of_pairs(X, pairs, qid)
        self._problem(data, None, None)
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True)
        return data

    def predict(self, X: Any) -> Floats:
        """
        Score rows.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        array of shape (n_rows,)
            w · x + b, higher is better.
        """
        return np.asarray(self._new_rows(X) @ self.coef_ + self.intercept_, dtype=np.float64)
