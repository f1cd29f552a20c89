"""LinearDescent: what SPD, CRR and LCRA share, from checking parameters to predicting."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from corank.base import Ranker, as_weights
from corank.core import steps
from corank.core.steps import Plan, State
from corank.core.threads import n_threads
from corank.data.ranking import RankingData
from corank.descent.runs import Runs
from corank.descent.task import Objective, Task, Views
from corank.descent.training import Patience, hold_out, train, view_weights
from corank.errors import InputError
from corank.losses import Loss

Floats = NDArray[np.float64]

RATES = {"pegasos": steps.PEGASOS, "constant": steps.CONSTANT, "sqrt": steps.SQRT, "adagrad": steps.ADAGRAD}


@dataclass(frozen=True)
class Settings:
    """
    Where SPD, CRR and LCRA differ.

    Attributes
    ----------
    mix, coupling : float
        See `corank.descent.task.Objective`.
    fit_intercept : bool
        Whether the regression part has a bias.
    batch, unscored_batch : int
        Examples and unscored pairs of a step.
    """

    mix: float = 0.0
    coupling: float = 0.0
    fit_intercept: bool = False
    batch: int = 1
    unscored_batch: int = 1


class LinearDescent(Ranker):
    """A linear ranker learnt by stochastic descent, or exactly where that is cheaper; the base of SPD, CRR and LCRA."""

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}

    loss: str
    alpha: float
    l1: float
    rate: str
    eta0: float | None
    n_steps: int
    average: bool
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "rate": [StrOptions(set(RATES))],
        "eta0": [Interval(Real, 0, None, closed="neither"), None],
        "n_steps": [Interval(Integral, 0, None, closed="left")],
        "average": ["boolean"],
        "project": ["boolean"],
        "sampling": [StrOptions({"pairs", "query", "rows"})],
        "solver": [StrOptions({"auto", "sgd", "exact"})],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    def _settings(self) -> Settings:
        return Settings()

    def _choose_views(self, n_features: int, rng: np.random.Generator) -> Views | None:
        return None

    @abstractmethod
    def _solve(self, data: RankingData, weights: Floats | None) -> None:
        """Set the weights by an exact solver."""

    @abstractmethod
    def _can_solve(self, data: RankingData) -> bool:
        """Whether ``solver="auto"`` should solve this problem exactly."""

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
        Learn from scored rows, or from preferences.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, or RankingData
            The rows, or a whole problem (then y, qid and pairs stay None); of a memory-mapped problem only the rows drawn
            are read.
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
        self._check_parameters()
        data = self._given(X, y, qid, pairs)
        weights = as_weights(sample_weight, data.n_rows)
        if self.warm_start and hasattr(self, "run_steps_"):
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
        model was saved and loaded in between.

        Parameters
        ----------
        X, y, qid, sample_weight, pairs
            As in `fit`.

        Returns
        -------
        self
            The fitted ranker.
        """
        self._check_parameters()
        resume = hasattr(self, "run_steps_")
        if self.solver == "exact" or (hasattr(self, "coef_") and not resume):
            raise InputError(
                "this model is solved exactly, so there is no descent to continue; fit it with solver='sgd'."
            )
        data = self._given(X, y, qid, pairs, same_columns=resume)
        return self._descend(data, as_weights(sample_weight, data.n_rows), resume=resume)

    def _given(
        self, X: Any, y: Any, qid: ArrayLike | None, pairs: ArrayLike | None, same_columns: bool = False
    ) -> RankingData:
        before = self.n_features_in_ if same_columns else None
        if pairs is None:
            data = self._problem(X, y, qid)
        else:
            data = self._preferences(X, y, qid, pairs)
        if before not in (None, data.n_features):
            self.n_features_in_ = before
            raise InputError(
                f"X has {data.n_features} features, but {type(self).__name__} is expecting {before} features as input."
            )
        return data

    def _solve_exactly(self, data: RankingData, weights: Floats | None) -> Self:
        self._forget()
        self._keep_views(self._choose_views(data.n_features, rng_of(self.random_state).spawn(1)[0]))
        objective = self._objective()
        if data.y is not None:
            scored = data.is_scored
            objective.loss.require_scores(data.y[scored], data.queries.codes[scored], objective.mix > 0.0)
        if objective.mix < 1.0:
            data.require_pairs()
        self._solve(data, weights)
        self.n_steps_ = 0
        self.n_skipped_queries_ = len(data.single_grade_queries)
        return self

    def _descend(self, data: RankingData, weights: Floats | None, resume: bool) -> Self:
        # each question its own generator, so that a resumed run holds out and samples what the first one did
        for_views, for_holding_out, for_sample, for_dice = rng_of(self.random_state).spawn(4)
        if not resume:
            self._forget()
            self._keep_views(self._choose_views(data.n_features, for_views))
        patience = None
        if self.tol is not None:
            data.require_pairs()
            data, judge = hold_out(data, self.validation_fraction, for_holding_out)
            patience = Patience(judge, self.tol, self.n_iter_no_change)
        task = Task.of(data, self._objective(), self._kept_views(), weights, for_sample)
        runs = self._resumed(task) if resume else self._started(task, for_dice)
        runs, trace = train(runs, task, self.n_steps, patience, self.verbose)
        if resume:
            trace = np.concatenate([self.objective_trace_, trace[1:]])
        self._store(runs, task, trace)
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
            average=bool(self.average), project=bool(self.project), fit_intercept=bool(s.fit_intercept),
        )  # fmt: skip

    def _started(self, task: Task, rng: np.random.Generator) -> Runs:
        n_views = 1 + int(task.columns.views.max(initial=0))
        plan = self._plan(task, self._first_rate(task, n_views))
        n_runs = 1 if self.n_jobs is None else n_threads(self.n_jobs)
        return Runs.start(plan, n_runs, len(task.columns.views), n_views, rng)

    def _resumed(self, task: Task) -> Runs:
        stored = {name: getattr(self, f"run_{name}_") for name in State._fields}
        if self.n_jobs is not None and n_threads(self.n_jobs) != len(stored["steps"]):
            raise InputError(
                f"n_jobs is {self.n_jobs}, but this model was begun with {len(stored['steps'])} runs; "
                f"set n_jobs={len(stored['steps'])}, or fit it anew."
            )
        return Runs.resume(self._plan(task, self.eta0_), stored)

    def _first_rate(self, task: Task, n_views: int) -> float:
        o = task.objective
        steep = o.loss.name != "hinge" or o.mix > 0.0 or o.coupling > 0.0
        if self.eta0 is not None:
            eta0 = float(self.eta0)
        elif self.rate == "pegasos" and o.alpha > 0.0 and not steep:
            return 1.0 / o.alpha
        else:
            curvature = task.sample.curvature(o, n_views)
            # AdaGrad divides by the size of the pulls, so its rate has the unit of a weight
            eta0 = curvature**-0.5 if self.rate == "adagrad" else 1.0 / curvature
        if self.rate == "pegasos" and o.alpha > 0.0:
            return min(eta0, 1.0 / o.alpha)
        if self.rate != "adagrad" and eta0 * o.alpha >= 1.0:
            if self.eta0 is None:
                return 0.5 / o.alpha
            raise InputError(
                f"eta0 · alpha is {eta0 * o.alpha:g}, so a step would wipe out the weights; keep the product below 1."
            )
        return eta0

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.rate == "adagrad" and (self.average or self.project):
            raise InputError("rate='adagrad' already averages pulls; leave average and project False.")
        if self.l1 > 0.0 and (self.average or self.project):
            raise InputError("l1 asks for exact zeros, which average and project would undo; leave both False.")
        if self.project and not self.alpha > 0.0:
            raise InputError("project needs alpha above 0, since the ball has radius 1/√alpha; set project=False.")
        if self.n_jobs == 0:
            raise InputError("n_jobs is 0; pass a positive number, -1 for every processor, or None for one.")
        if self.solver == "exact" and (self.l1 > 0.0 or self.tol is not None or self.sampling != "pairs"):
            raise InputError(
                "solver='exact' minimises the mean over all pairs without l1 or early stopping; "
                "set l1=0, tol=None and sampling='pairs', or choose solver='sgd'."
            )

    def _keep_views(self, views: Views | None) -> None:
        """Remember the columns of each view, where there are views."""

    def _kept_views(self) -> Views | None:
        return None

    def _store(self, runs: Runs, task: Task, trace: Floats) -> None:
        W, biases = view_weights(runs, task)
        if not np.isfinite(W).all():
            raise InputError(
                f"the weights overflowed with a first rate of {runs.plan.eta0:g}; scale the columns of X, or pass a smaller eta0."
            )
        self._set_weights(W, biases)
        self.n_steps_ = runs.n_steps
        self.n_skipped_queries_ = task.n_skipped_queries
        self.objective_trace_ = trace
        self.eta0_ = runs.plan.eta0
        for name, value in runs.stored().items():
            setattr(self, f"run_{name}_", value)

    def _set_weights(self, W: Floats, biases: Floats) -> None:
        self.coef_ = W.mean(axis=0)
        self.intercept_ = float(biases.mean())

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and name not in _OF_COLUMNS]:
            delattr(self, name)

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


# what scikit-learn records about the columns before a fit begins
_OF_COLUMNS = ("n_features_in_", "feature_names_in_")


def rng_of(random_state: Any) -> np.random.Generator:
    """
    Make the one generator of a fit.

    Parameters
    ----------
    random_state : int, numpy.random.RandomState or None
        What the user gave.

    Returns
    -------
    numpy.random.Generator
        Seeded by it.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)
