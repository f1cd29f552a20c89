"""
SPD: stochastic pairwise descent (Sculley, 2009).

    min_w mean_P ℓ(t(y_a − y_b), w · (a − b)) + alpha/2 ‖w‖² + l1 ‖w‖₁

over the pairs P of rows of one query with different scores. Pairs are drawn and never listed; a step costs
O(nnz(a − b)) for any number of rows. D. Sculley, Large Scale Learning to Rank, NIPS Workshop on Advances in Ranking,
2009.

The paper uses the hinge loss. The squared hinge, the default here, ranks equally well, and an exact solver finds its
optimum over all pairs: without a seed, without a learning rate, and independent of the order of rows.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from corank.base.docs import shared_parameters
from corank.models.linear.base import LinearDescent
from corank.parameters import LossName


@shared_parameters
@dataclass(eq=False, repr=False)
class SPD(LinearDescent):
    """
    Linear ranker learnt from pairs by stochastic descent or, where that is cheap, by an exact solver.

    Parameters
    ----------
    {loss}
        The paper uses ``"hinge"``. ``"logistic"`` learns differences of at most 1: if scores of a query differ by
        more, all are divided by the largest difference.
    alpha : float, optional
        Weight of ½‖w‖², relative to the mean loss over pairs. None chooses it from the size and number of the
        differences of rows, see `corank.base.solvers.penalty`.
    l1 : float
        Weight of ‖w‖₁; above 0, some weights become exactly zero.
    {query_weight}
    draw : {"pairs", "rows"}
        ``"rows"`` draws a row, then a partner, as sofia-ml does; for stochastic steps with query_weight="pairs".
    {scale}
    {missing}
    solver : {"auto", "sgd", "exact"}
        ``"exact"`` finds the optimum for every loss but the hinge. ``"auto"`` does so where it is cheap, see
        `corank.models.linear.base.can_solve`, and takes stochastic steps otherwise.
    tol : float
        Newton's method stops at this gap to the minimum, relative to the objective or to its decrease since zero
        weights, whichever is smaller.
    max_iter : int
        Largest number of Newton steps; issues a `ConvergenceWarning` if they do not suffice.
    rate : {"pegasos", "constant", "sqrt", "adagrad"}
        Learning rate: η_i = 1/(alpha (i − 1) + 1/eta0), eta0, eta0/√i, or one rate per weight.
    eta0 : float, optional
        First learning rate. None takes one over the largest curvature among sampled examples, with which no step
        overshoots; 1/alpha gives the 1/(alpha i) of the Pegasos paper, with very large first steps if alpha is small.
    n_steps : int
        Number of stochastic steps of a call of ``fit`` or ``partial_fit``.
    average : bool, optional
        Whether the weights are the mean of all iterates. None means True except with `l1`, whose zeros averaging would
        undo, and with AdaGrad, which averages gradients already.
    project : bool
        Whether to project w onto the ball of radius 1/√alpha, an option of Pegasos.
    early_stopping : bool
        Whether to hold out judgements, to stop when the error on them has not fallen in `n_iter_no_change` of the 20
        checks of a call, and to keep the best weights.
    validation_fraction : float
        Share of the queries (of the rows if there is one query) held out.
    {n_iter_no_change}
    warm_start : bool
        Whether ``fit`` takes stochastic steps and continues from the last fit, as ``partial_fit`` does.
    {random_state}
    n_jobs : int, optional
        Number of threads. Each has its own run and a share of the steps; the weights of the runs are averaged. The
        result depends on the seed and on `n_jobs` only. None means 1, −1 means all processors.
    {verbose}

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the columns as given.
    intercept_ : float
        0: a bias cancels in pairs.
    feature_importances_ : array of shape (n_features,)
        |weight| · deviation of each column inside queries, divided by their sum; only with `scale`.
    column_scale_ : array of shape (n_features,)
        Factors of the columns before learning; only with `scale`.
    alpha_ : float
        The weight of the penalty.
    alpha_from_ : str
        How alpha was chosen; ``"given"`` if it was passed.
    score_range_ : array of shape (2,)
        0 and the difference of scores that counts as 1 (logistic loss only).
    objective_ : float
        Value of the objective; after stochastic steps, estimated on a fixed sample of examples.
    n_iter_ : int
        Number of stochastic or Newton steps; 0 if one linear system was solved.
    n_skipped_queries_ : int
        Number of queries without a pair, because they have one scored row or equal scores.
    objective_trace_ : array of shape (n_checks, 2)
        Number of steps and the estimated objective (stochastic descent only).
    validation_errors_ : array of shape (n_checks,)
        Error on the held-out judgements (early stopping only).
    eta0_, run_
        First learning rate, and the state from which `partial_fit` continues (stochastic descent only).

    Examples
    --------
    >>> from corank import SPD, make_ranking
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> model = SPD().fit(problem.X, problem.y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.8
    True
    """

    loss: LossName = "squared_hinge"
    alpha: float | None = None
    _: KW_ONLY
    tol: float = 1e-10
    max_iter: int = 100
