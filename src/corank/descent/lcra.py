"""
LCRA: large-scale co-regularised ranking (Tsivtsivadze, Hofmann and Heskes, 2012).

M views of the columns, one weight vector each, must agree on the unscored rows. With p = a − b as seen by each view,

    min Σ_v [mean_P ℓ(t, w_v · p_v) + alpha/2 ‖w_v‖² + l1 ‖w_v‖₁] + coupling · Σ_{v,u} mean_P̂ (w_v · p_v − w_u · p_u)²

over scored pairs P and unscored pairs P̂ (two unscored rows of one query, drawn independently). A step draws `batch`
pairs of P and `unscored_batch` of P̂ and takes means over them, where the paper takes sums, so that `coupling` keeps its
meaning when they change. It costs O((batch + unscored_batch) · nnz(p)), at any number of rows. coupling=0 is the
paper's SPD-MV.

mix > 0 puts mix · mean_D ℓ(y, w_v · x_v + b_v) + (1 − mix) · mean_P ℓ in place of mean_P ℓ: combined regression and
ranking with agreeing views. No paper has it; it is corank's own.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from corank import exact
from corank.data.ranking import RankingData
from corank.descent.linear import LinearDescent
from corank.descent.objective import Objective
from corank.descent.parameters import Settings
from corank.descent.runs import Runs
from corank.descent.task import Task, Views, distinct_share
from corank.errors import InputError
from corank.kernels import LinearKernel
from corank.views import as_views

Floats = NDArray[np.float64]


class LCRA(LinearDescent):
    """
    Linear rankers on several views that agree on unscored rows; the prediction is their mean.

    Parameters
    ----------
    views : int or list
        Number of views that the columns are dealt to at random, or the columns of each (see `corank.views.as_views`).
    coupling : float
        Weight of the disagreement on unscored pairs (the paper's μ).
    batch : int
        Scored examples of a step (the paper's k).
    unscored_batch : int
        Unscored pairs of a step (the paper's l).
    loss : {"hinge", "squared", "logistic", "squared_hinge"}
        ℓ, see `corank.losses.Loss`.
    mix : float
        Share of regression, between 0 and 1.
    alpha : float
        Weight of ½‖w_v‖² (the paper's λ).
    l1 : float
        Weight of ‖w‖₁; above 0, weights become exactly zero.
    rate : {"pegasos", "constant", "sqrt", "adagrad"}
        η_i = 1/(alpha (i − 1) + 1/eta0), eta0, eta0/√i, or one rate per weight.
    eta0 : float, optional
        First rate. None takes one over the largest curvature among sampled examples, with which no step overshoots;
        1/alpha is the 1/(alpha i) of the Pegasos paper, whose first steps are wild where alpha is small.
    n_steps : int
        Stochastic steps of a call of ``fit`` or ``partial_fit``.
    average : bool, optional
        Whether the weights are the mean of all iterates. None takes the mean except where nothing can be averaged: with
        `l1`, whose zeros it would undo, and with AdaGrad, which averages pulls already.
    project : bool
        Whether to keep w in the ball of radius 1/√alpha, as Pegasos may.
    sampling : {"pairs", "query", "rows"}
        Law of the pairs, see `corank.PairSampler`.
    solver : {"auto", "sgd", "exact"}
        ``"exact"`` finds the optimum for the squared loss. ``"auto"`` does so where it is cheap, see
        `corank.descent.solvers.can_solve`, and else descends.
    tol : float, optional
        Stop when the disagreement error on held-out queries has not fallen by more than `tol` in `n_iter_no_change`
        of the 20 checks that a call makes, and keep the best weights. None takes all steps.
    validation_fraction : float
        Share of the queries (of the rows, where there is one query) held out for `tol`.
    n_iter_no_change : int
        Patience of `tol`, in checks.
    warm_start : bool
        Whether ``fit`` continues where the last one ended, as ``partial_fit`` does.
    n_jobs : int, optional
        Number of threads, each with a run of its own and a share of the steps; the weights of the runs are averaged.
        The result depends on the seed and on `n_jobs`, on nothing else. None is 1, −1 every processor.
    random_state : int, RandomState or None
        Seed.
    verbose : bool
        Whether to show a progress bar, on a terminal only.
    fit_intercept : bool
        Whether each view has a bias, learnt from the regression part only.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights.
    intercept_ : float
        Bias; the mean of the views' biases, 0 with mix=0.
    n_steps_ : int
        Stochastic steps behind the weights; 0 when they were found exactly.
    n_skipped_queries_ : int
        Queries that hold no pair, because they have one scored row or equal scores.
    objective_trace_ : array of shape (n_checks, 2)
        Steps done and the objective, estimated on a fixed sample of examples (stochastic descent only).
    eta0_, run_kind_, run_weights_, run_sums_, run_ledger_, run_dice_, run_steps_
        What `partial_fit` needs to continue bit for bit (stochastic descent only).
    views_ : list of int arrays
        Columns of each view.
    view_coefs_ : array of shape (n_views, n_features)
        Weights of each view, zero where it does not see a column; `coef_` is their mean.
    disagreement_ : float
        Share of sampled unscored pairs that two views order differently, mean over pairs of views; NaN without unscored
        pairs or coupling (stochastic descent only).

    Examples
    --------
    >>> from corank import LCRA, hide_scores, make_ranking
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> y = hide_scores(problem.y, fraction=0.8, random_state=0)
    >>> model = LCRA(coupling=0.01, alpha=1e-3, random_state=0).fit(problem.X, y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.7
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearDescent._parameter_constraints,
        "views": [Interval(Integral, 1, None, closed="left"), list, tuple],
        "coupling": [Interval(Real, 0, None, closed="left")],
        "batch": [Interval(Integral, 1, None, closed="left")],
        "unscored_batch": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions({"hinge", "squared", "logistic", "squared_hinge"})],
        "mix": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        views: Any = 2,
        coupling: float = 1.0,
        batch: int = 1,
        unscored_batch: int = 1,
        loss: str = "hinge",
        mix: float = 0.0,
        alpha: float = 1e-4,
        *,
        l1: float = 0.0,
        rate: str = "pegasos",
        eta0: float | None = None,
        n_steps: int = 100_000,
        average: bool | None = None,
        project: bool = False,
        sampling: str = "pairs",
        solver: str = "auto",
        tol: float | None = None,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        fit_intercept: bool = True,
    ) -> None:
        self.views = views
        self.coupling = coupling
        self.batch = batch
        self.unscored_batch = unscored_batch
        self.loss = loss
        self.mix = mix
        self.alpha = alpha
        self.l1 = l1
        self.rate = rate
        self.eta0 = eta0
        self.n_steps = n_steps
        self.average = average
        self.project = project
        self.sampling = sampling
        self.solver = solver
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.fit_intercept = fit_intercept

    def _settings(self) -> Settings:
        return Settings(
            float(self.mix), float(self.coupling), bool(self.fit_intercept), int(self.batch), int(self.unscored_batch)
        )

    def _choose_views(self, n_features: int, rng: np.random.Generator) -> Views:
        if isinstance(self.views, Integral) and n_features < int(self.views):
            raise InputError(
                f"views={self.views} needs a column for each, but X has n_features = {n_features}; pass fewer views."
            )
        every = np.arange(n_features)
        views = as_views(self.views, n_features, rng)
        if not all(isinstance(view.kernel, LinearKernel) for view in views):
            raise InputError("LCRA is linear in each view's columns; put Landmarks before it, or use linear views.")
        return [every if view.columns is None else every[view.columns] for view in views]

    def _keep_views(self, views: Views | None) -> None:
        assert views is not None
        self.views_ = views

    def _kept_views(self) -> Views:
        return self.views_

    def _store(self, runs: Runs, task: Task, views: Views | None, trace: Floats) -> None:
        super()._store(runs, task, views, trace)
        self.disagreement_ = _disagreement(task.sample.unscored @ self.view_coefs_.T)

    def _view_weights(self) -> Floats:
        return self.view_coefs_

    def _set_weights(self, W: Floats, biases: Floats) -> None:
        super()._set_weights(W, biases)
        self.view_coefs_ = W

    def _can_solve(self, data: RankingData) -> bool:
        return self.loss == "squared" and super()._can_solve(data)

    def _solve(
        self, data: RankingData, objective: Objective, views: Views | None, weights: Floats | None
    ) -> tuple[Floats, Floats]:
        assert views is not None
        if self.loss != "squared":
            raise InputError(f"solver='exact' needs the squared loss, but loss is {self.loss!r}; set solver='sgd'.")
        coupling = objective.coupling * distinct_share(data, weights)
        solution = exact.squared_views(
            data, views, mix=objective.mix, alpha=objective.alpha, coupling=coupling,
            fit_intercept=objective.fit_intercept and objective.mix > 0, weights=weights,
        )  # fmt: skip
        W = np.zeros((len(views), data.n_features))
        for row, columns, coef in zip(W, views, solution.view_coefs, strict=True):
            row[columns] = coef
        return W, np.array([solution.intercept])


def _disagreement(margins: Floats) -> float:
    n, M = margins.shape
    if n == 0 or M < 2:
        return float("nan")
    signs = np.sign(margins)
    # 1 for opposite orders, ½ where one view ties
    gaps = np.abs(signs[:, :, None] - signs[:, None, :]).sum(axis=(1, 2)) / 2
    return float(gaps.mean() / (M * (M - 1)))
