"""
SPD: stochastic pairwise descent (Sculley, 2009).

    min_w mean_P ℓ(t(y_a − y_b), w · (a − b)) + alpha/2 ‖w‖² + l1 ‖w‖₁

over the pairs P of rows of one query with different scores, which are drawn, never built. A step costs O(nnz(a − b)),
at any number of rows. D. Sculley, Large Scale Learning to Rank, NIPS Workshop on Advances in Ranking, 2009.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from corank.descent.linear import LinearDescent


class SPD(LinearDescent):
    """
    Linear ranker learnt by stochastic pairwise descent.

    Parameters
    ----------
    loss : {"hinge", "squared", "logistic", "squared_hinge"}
        ℓ, see `corank.losses.Loss`; ``"logistic"`` needs scores that differ by at most 1 inside a query.
    alpha : float
        Weight of ½‖w‖².
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
        ``"exact"`` finds the optimum for every loss but the hinge. ``"auto"`` does so where it is cheap, see
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

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights.
    intercept_ : float
        Bias; 0, since a constant cancels in pairs.
    n_steps_ : int
        Stochastic steps behind the weights; 0 when they were found exactly.
    n_skipped_queries_ : int
        Queries that hold no pair, because they have one scored row or equal scores.
    objective_trace_ : array of shape (n_checks, 2)
        Steps done and the objective, estimated on a fixed sample of examples (stochastic descent only).
    eta0_, run_kind_, run_weights_, run_sums_, run_ledger_, run_dice_, run_steps_
        What `partial_fit` needs to continue bit for bit (stochastic descent only).

    Examples
    --------
    >>> from corank import SPD, make_ranking
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> model = SPD(random_state=0).fit(problem.X, problem.y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.8
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearDescent._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared", "logistic", "squared_hinge"})],
    }

    def __init__(
        self,
        loss: str = "hinge",
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
    ) -> None:
        self.loss = loss
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
