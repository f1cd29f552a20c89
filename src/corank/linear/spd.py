"""
SPD: stochastic pairwise descent (Sculley, 2009).

    min_w mean_P ℓ(t(y_a − y_b), w · (a − b)) + alpha/2 ‖w‖² + l1 ‖w‖₁

over the pairs P of rows of one query with different scores, which are drawn, never built. A step costs O(nnz(a − b)),
at any number of rows. D. Sculley, Large Scale Learning to Rank, NIPS Workshop on Advances in Ranking, 2009.

The paper has the hinge. The squared hinge, corank's default, orders as well, and its optimum over all pairs is found
without a stochastic step: no seed, no rate, and the order of the rows changes nothing.
"""

from __future__ import annotations

from typing import Any

from corank.linear.base import LinearDescent


class SPD(LinearDescent):
    """
    Linear ranker learnt from pairs, by stochastic descent or, where that is quick, to the optimum.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "squared", "logistic"}
        ℓ, see `corank.pairwise.losses.Loss`; ``"logistic"`` learns differences of at most 1: where scores of a query
        differ by more, all are divided by the widest difference. The paper's is ``"hinge"``.
    alpha : float, optional
        Weight of ½‖w‖² beside the mean loss over pairs. None chooses, from the size and number of the
        differences of rows, see `corank.solvers.penalty`.
    l1 : float
        Weight of ‖w‖₁; above 0, weights become exactly zero.
    query_weight : {"pairs", "equal", "rows"}
        What a query counts: as many as its pairs, as any other, or as its rows; see `corank.PairSampler`.
    draw : {"pairs", "rows"}
        ``"rows"`` draws a row, then a partner: the law of sofia-ml, for stochastic steps with query_weight="pairs".
    scale : bool
        Whether columns are divided by their deviation inside queries before learning; coef_ is that of the columns as
        given.
    solver : {"auto", "sgd", "exact"}
        ``"exact"`` finds the optimum for every loss but the hinge. ``"auto"`` does so where it is cheap, see
        `corank.linear.solvers.can_solve`, and else descends.
    tol : float
        Newton's method stops where the objective is above its minimum by at most `tol` times its value, or times what
        was gained since all weights were 0, where that is less.
    max_iter : int
        Most Newton steps; a `ConvergenceWarning` says where they did not suffice.
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
    early_stopping : bool
        Whether to descend until the error on judgements held out has not fallen in `n_iter_no_change` of the 20 checks
        that a call makes, and to keep the best weights.
    validation_fraction : float
        Share of the queries (of the rows, where there is one query) held out.
    n_iter_no_change : int
        Patience of early stopping, in checks.
    warm_start : bool
        Whether ``fit`` descends, and continues where the last one ended, as ``partial_fit`` does.
    random_state : int, RandomState or None
        Seed.
    n_jobs : int, optional
        Number of threads, each with a run of its own and a share of the steps; the weights of the runs are averaged.
        The result depends on the seed and on `n_jobs`, on nothing else. None is 1, −1 every processor.
    verbose : bool
        Whether to show a progress bar, on a terminal or in a notebook.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the columns as given.
    intercept_ : float
        0: a bias cancels in pairs.
    column_scale_ : array of shape (n_features,)
        What columns are multiplied by before learning; only with `scale`.
    alpha_ : float
        The weight of the penalty.
    alpha_from_ : str
        What it was chosen from, ``"given"`` where it was not.
    score_range_ : array of shape (2,)
        0 and the difference of scores that counts as 1 (logistic loss only).
    objective_ : float
        What was minimised, as it is for these weights; after stochastic steps, estimated on a fixed sample of examples.
    n_iter_ : int
        Steps behind the weights: stochastic ones, or those of Newton's method, 0 where one linear system was solved.
    n_skipped_queries_ : int
        Queries that hold no pair, because they have one scored row or equal scores.
    objective_trace_ : array of shape (n_checks, 2)
        Steps done and the estimated objective (stochastic descent only).
    validation_errors_ : array of shape (n_checks,)
        Error on what was held out (early stopping only).
    eta0_, run_
        First rate, and what `partial_fit` needs to continue bit for bit (stochastic descent only).

    Examples
    --------
    >>> from corank import SPD, make_ranking
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> model = SPD().fit(problem.X, problem.y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.8
    True
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        alpha: float | None = None,
        *,
        l1: float = 0.0,
        query_weight: str = "pairs",
        draw: str = "pairs",
        scale: bool = True,
        solver: str = "auto",
        tol: float = 1e-10,
        max_iter: int = 100,
        rate: str = "pegasos",
        eta0: float | None = None,
        n_steps: int = 100_000,
        average: bool | None = None,
        project: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.l1 = l1
        self.query_weight = query_weight
        self.draw = draw
        self.scale = scale
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.rate = rate
        self.eta0 = eta0
        self.n_steps = n_steps
        self.average = average
        self.project = project
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
