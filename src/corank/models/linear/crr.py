"""
CRR: combined regression and ranking (Sculley, 2010).

    min_{w,b} mix · mean_D ℓ(y, w · x + b) + (1 − mix) · mean_P ℓ(t(y_a − y_b), w · (a − b)) + alpha/2 ‖w‖² + l1 ‖w‖₁

over the scored rows D and the pairs P of rows of one query with different scores. Each step uses a row with probability
`mix` and a pair otherwise (algorithm 1), and costs O(nnz) for any number of rows. mix=0 is SPD; mix=1 is ridge
regression, logistic regression or a support vector machine. D. Sculley, Combined Regression and Ranking, KDD 2010.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from corank.base.docs import shared_parameters
from corank.fitted import Predictions
from corank.models.linear.base import LinearDescent, logistic
from corank.parameters import LossName, Rules, boolean, number


def _is_logistic(model: CRR) -> bool:
    if hasattr(model, "score_range_") or (model.loss == "logistic" and not hasattr(model, "coef_")):
        return True
    raise AttributeError("predict_proba needs loss='logistic'; use predict")


@shared_parameters
@dataclass(eq=False, repr=False)
class CRR(LinearDescent):
    """
    Linear model that both ranks rows and predicts their scores.

    Parameters
    ----------
    {loss}
        ``"logistic"`` learns shares: scores in [0, 1] as they are; others are mapped from the lowest (0) to the
        highest (1). The hinges need scores −1 and 1.
    mix : float
        Share of regression, between 0 and 1 (the paper's α).
    alpha : float, optional
        Weight of ½‖w‖², relative to the mean loss (the paper's λ). None chooses it from the size and number of the
        differences of rows, see `corank.base.solvers.penalty`.
    fit_intercept : bool
        Whether to learn a bias b, from the regression part and without penalty. The paper penalises it: for that, pass
        a column of ones with ``fit_intercept=False, scale=False``.
    solver : {"auto", "sgd", "exact"}
        ``"exact"`` finds the optimum for every loss but the hinge; ``"auto"`` as in `corank.SPD`.
    l1, query_weight, draw, scale, missing, tol, max_iter, rate, eta0, n_steps, average, project, warm_start
        As in `corank.SPD`.
    early_stopping, validation_fraction, n_iter_no_change, random_state, n_jobs, verbose
        As in `corank.SPD`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the columns as given.
    intercept_ : float
        Bias; 0 without `fit_intercept` or with mix=0.
    score_range_ : array of shape (2,)
        Scores that are mapped to 0 and 1 (logistic loss only); with mix=0, as in `corank.SPD`.
    alpha_, alpha_from_, objective_, n_iter_, n_skipped_queries_
        As in `corank.SPD`.
    column_scale_, objective_trace_, validation_errors_, eta0_, run_
        As in `corank.SPD`.

    Examples
    --------
    >>> from corank import CRR, make_ranking
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> model = CRR(mix=0.5).fit(problem.X, problem.y, qid=problem.qid)
    >>> bool(abs(model.predict(problem.X).mean() - problem.y.mean()) < 0.1)
    True
    """

    _rules: ClassVar[Rules] = {
        **LinearDescent._rules,
        "mix": number(0, 1),
        "fit_intercept": boolean,
    }
    _predictions: ClassVar[Predictions] = {
        "predict_proba": lambda model, X: model.predict_proba(X),
    }

    loss: LossName = "squared"
    mix: float = 0.5
    alpha: float | None = None
    _: KW_ONLY
    tol: float = 1e-10
    max_iter: int = 100
    fit_intercept: bool = True

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return 1 − p and p = σ(w · x + b), the expected score as a share of `score_range_`; for the logistic loss."""
        p = logistic(self.predict(X, prior=prior))
        return np.column_stack([1.0 - p, p])
