"""
LCRA: large-scale co-regularised ranking (Tsivtsivadze, Hofmann and Heskes, 2012).

M views of the columns, one weight vector each, are coupled on the unjudged rows. With p_v the columns of p = a − b in
view v,

    min Σ_v [mean_P ℓ(t, w_v · p_v) + alpha_v/2 ‖w_v‖² + l1 ‖w_v‖₁] + coupling · Σ_{v,u} mean_P̂ (w_v · p_v − w_u · p_u)²

over scored pairs P and unjudged pairs P̂ (two unjudged rows of one query, drawn independently). A step draws `batch`
pairs of P and `unscored_batch` of P̂ and takes means over them, so that `coupling` does not depend on the batch sizes.
The paper takes sums over its k and l pairs: ``alpha=λ/k, coupling=μ·l/k`` with rates times k are the same steps. A step
costs O((batch + unscored_batch) · nnz(p)) for any number of rows. coupling=0 is the paper's SPD-MV. With the squared
loss, the default, the optimum is the solution of one linear system.

mix > 0 replaces mean_P ℓ by mix · mean_D ℓ(y, w_v · x_v + b_v) + (1 − mix) · mean_P ℓ: combined regression and ranking
with coupled views. This is not in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.contract import warn_of_no_agreement
from corank.base.docs import shared_parameters
from corank.base.kernels.views import View, as_views
from corank.base.pairs import Laplacian
from corank.base.pairs.losses import query_factors
from corank.core.pairs.coupled_descent import Columns
from corank.data.ranking import RankingData
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Predictions, Relations, Shapes
from corank.models.linear.base import LinearDescent, LinearModel, ViewWeights, factors
from corank.models.linear.descent import Objective, ObjectiveSample, columns_of_views
from corank.parameters import LossName, Rules, boolean, integer, is_integer, items, none, number, numbers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearViewsModel(LinearModel):
    """A linear model of several views, see the attributes of `LCRA`."""

    views: list[View]
    view_coefs: Floats
    view_gap: float  # mean squared disagreement of the views


@shared_parameters
@dataclass(eq=False, repr=False)
class LCRA(LinearDescent):
    """
    Linear rankers on several views, coupled on unjudged rows; the prediction is their mean.

    Parameters
    ----------
    views : int or list
        Number of views, to which the columns are assigned at random, or the columns of each view (see
        `corank.base.kernels.views.as_views`).
    coupling : float
        Weight of the disagreement on unjudged pairs (the paper's μ).
    {loss}
        Scores for ``"logistic"`` as in `corank.SPD`; with mix > 0, as in `corank.CRR`.
    mix : float
        Share of regression, between 0 and 1.
    alpha : float or list of float, optional
        Weight of ½‖w_v‖², relative to the mean loss (the paper's λ); a list has a value for each view (λ₁, λ₂, ...).
        None chooses one value from the size and number of the differences of rows, see `corank.base.solvers.penalty`.
    eta0 : float or list of float, optional
        First learning rate, or a list with that of each view. None chooses it.
    batch : int
        Number of scored examples of a step (the paper's k).
    unscored_batch : int
        Number of unjudged pairs of a step (the paper's l).
    fit_intercept : bool
        Whether each view has a bias, learnt from the regression part.
    solver : {"auto", "sgd", "exact"}
        ``"exact"`` finds the optimum for the squared loss; ``"auto"`` as in `corank.SPD`.
    l1, query_weight, draw, scale, missing, rate, n_steps, average, project, warm_start
        As in `corank.SPD`.
    early_stopping, validation_fraction, n_iter_no_change, random_state, n_jobs, verbose
        As in `corank.SPD`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the columns as given; the mean over views.
    intercept_ : float
        Bias; the mean over views, 0 with mix=0.
    views_ : list of View
        The columns of each view.
    view_coefs_ : array of shape (n_views, n_features)
        Weights of each view, zero for columns outside the view.
    score_range_ : array of shape (2,)
        As in `corank.CRR`.
    view_gap_ : float
        Mean over unjudged pairs and pairs of views of the squared difference of their margins; NaN without unjudged
        pairs. After stochastic steps it is estimated on a sample, and NaN without coupling.
    alpha_, alpha_from_, objective_, n_iter_, n_skipped_queries_
        As in `corank.SPD`.
    column_scale_, objective_trace_, validation_errors_, eta0_, run_
        As in `corank.SPD`.

    Examples
    --------
    >>> from corank import LCRA, make_ranking
    >>> from corank.data import mask_scores
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> y = mask_scores(problem.y, fraction=0.8, random_state=0)
    >>> model = LCRA(coupling=0.01, random_state=0).fit(problem.X, y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.7
    True
    """

    _rules: ClassVar[Rules] = {
        **LinearDescent._rules,
        "views": integer(1) | items,
        "alpha": number(0) | none | numbers(0),
        "eta0": number(0, inside="()") | none | numbers(0, inside="()"),
        "coupling": number(0),
        "mix": number(0, 1),
        "batch": integer(1),
        "unscored_batch": integer(1),
        "fit_intercept": boolean,
    }

    _shapes: ClassVar[Shapes] = {"view_coefs_": ("views", "all columns")}
    _relations: ClassVar[Relations] = {
        "every view has weights": lambda m: (
            len(m.views_) == len(m.view_coefs_) > 0
            and all(view.columns is not None and len(np.unique(view.columns)) == len(view.columns) for view in m.views_)
        ),
    }
    _predictions: ClassVar[Predictions] = {
        "predict_views": lambda model, X: model.predict_views(X),
    }

    views_: list[View] = field(init=False)
    view_coefs_: Floats = field(init=False)
    view_gap_: float = field(init=False)

    views: Any = 2
    coupling: float = 0.1
    loss: LossName = "squared"
    _: KW_ONLY
    mix: float = 0.0
    alpha: float | Sequence[float] | None = None
    batch: int = 1
    unscored_batch: int = 1
    fit_intercept: bool = True

    def predict_views(self, X: Any, *, prior: ArrayLike | None = None) -> Floats:
        """
        Score rows with each view, shape (n_rows, n_views), with the common bias; their mean is the result of
        ``predict``.
        """
        scores = score_columns(self._checked_rows(X), self.view_coefs_.T) + self.intercept_
        return self._add_prior(scores, prior)

    def _check_combinations(self) -> None:
        super()._check_combinations()
        n_views = self.views if is_integer(self.views) else len(self.views)
        for name in ("alpha", "eta0"):
            values = getattr(self, name)
            if np.ndim(values) and len(values) != n_views:
                raise InputError(
                    f"{name} has {len(values)} values for {n_views} views; pass one number, or one for each view."
                )

    @property
    def _is_solvable(self) -> bool:
        return bool(self.loss == "squared")

    def _layout(self, data: RankingData, rng: np.random.Generator, continues: bool = False) -> Columns:
        d = data.n_features
        if not continues and is_integer(self.views) and d < self.views:
            raise InputError(
                f"views={self.views} needs one column per view, but X has n_features = {d}; pass fewer views."
            )
        views = self.views_ if continues else as_views(self.views, d, rng, names=data.names)
        return columns_of_views(data.X, _columns(views, d))

    def _objective(self, data: RankingData, continues: bool = False) -> Objective:
        warn_of_no_agreement(data, self.coupling)
        # P̂ includes pairs of a row with itself, so that a row of weight 2 equals the row written twice; their
        # difference is zero, so they are counted but not drawn
        distinct, drawn = _unscored_weight(data, self.query_weight)
        coupling = self.coupling * distinct / drawn if distinct > 0.0 else 0.0
        return replace(
            super()._objective(data, continues),
            coupling=float(coupling), batch=int(self.batch), unscored_batch=int(self.unscored_batch),
        )  # fmt: skip

    def _fitted(
        self,
        data: RankingData,
        objective: Objective,
        columns: Columns,
        weights: ViewWeights,
        sample: ObjectiveSample | None = None,
    ) -> LinearViewsModel:
        W = weights.W
        gap = _view_gap(data, objective.query_weight, W) if sample is None else sample.view_gap(W)
        return LinearViewsModel(
            **vars(super()._fitted(data, objective, columns, weights, sample)),
            views=[View(chosen) for chosen in columns.of_views],
            view_coefs=W * factors(data),
            view_gap=gap,
        )


def _columns(views: list[View], n_features: int) -> list[NDArray[np.int64]]:
    if not all(view.kernel.is_linear for view in views):
        raise InputError("LCRA supports only linear views; put Landmarks before it, or use linear views.")
    return [np.arange(n_features) if view.columns is None else view.columns for view in views]


def _unscored_weight(data: RankingData, query_weight: str) -> tuple[float, float]:
    """
    Return Σ_q c_q (W_q² − Σ w²), the weight of ordered pairs of distinct unjudged rows of one query, and Σ_q c_q W_q²,
    which includes pairs of a row with itself.
    """
    rows = data.unscored_rows
    w, codes = data.weight_of(rows), data.queries.codes[rows]
    W_q = np.bincount(codes, weights=w)
    distinct = W_q**2 - np.bincount(codes, weights=w**2)
    # a single row counts among the rows, although it forms no pair
    c = 1.0 / np.where(W_q > 0.0, W_q, 1.0) if query_weight == "rows" else query_factors(W_q, query_weight, distinct)
    return float(c @ distinct), float(c @ W_q**2)


def _view_gap(data: RankingData, query_weight: str, W: Floats) -> float:
    distinct, _ = _unscored_weight(data, query_weight)
    if len(W) < 2 or distinct == 0.0:
        return float("nan")
    # Σ_{v<u} (m_v − m_u)² = M Σ_v (m_v − their mean)²
    deviations = np.asarray(data.X @ (W - W.mean(axis=0)).T)
    squares = np.trace(Laplacian.per_query(data, query_weight, "unscored").quad(deviations))
    return 2.0 / (len(W) - 1) * float(squares) / (0.5 * distinct)
