"""
CoRankRLS: co-regularised least-squares ranking (Tsivtsivadze, Pahikkala, Boberg, Salakoski and Heskes, 2010).

One function for each of M views, close to the scores on scored rows and to each other on unscored rows:

    min Σ_v (y − f_v)ᵀ L (y − f_v) + alpha Σ_v ‖f_v‖² + coupling Σ_{v,u} (f_v − f_u)ᵀ L̂ (f_v − f_u)

with L over the scored and L̂ over the unscored pairs of each query; the sum over (v, u) counts each pair of views twice,
as in the paper. The prediction is the mean of the views. With r features or basis rows a view, the solution costs
O(M² r² (n + l) + M³ r³) for n scored and l unscored rows, in one pass over them and O(M² r²) memory; every further
alpha costs O(M² r²), every further coupling O(M³ r³), and neither sees the rows again.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from corank.base import as_weights, rng_of
from corank.basis.features import FeatureMap, beside, scores
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.kernels import Kernel, require_square
from corank.rls.frame import Frame
from corank.rls.least_squares import LeastSquares, active_rows, best, candidates
from corank.rls.leave_out import views_out
from corank.rls.objects import ObjectKernel, of_objects
from corank.rls.pair_frame import PairFrame
from corank.rls.spectrum import solve_one
from corank.rls.summary import Summary
from corank.views import View, as_views

Floats = NDArray[np.float64]


class CoRankRLS(LeastSquares):
    """
    Rankers on several views that agree on unscored rows, found by one linear system; the prediction is their mean.

    Parameters
    ----------
    views : int or list
        Number of views that the columns are dealt to at random, or one entry for each view: its columns, a `Kernel`,
        or a `View` of columns, kernel and basis rows. Rows that are objects need ``View(None, function)`` for each.
    coupling : float
        Weight of the disagreement of the views on unscored pairs (the paper's ν).
    alpha : float
        Weight of ‖f_v‖² (the paper's λ).
    kernel : str, Kernel or callable
        Kernel of the views that name none, see `RankRLS`.
    alphas, couplings : array-like, optional
        Candidates for alpha and coupling: the whole grid is solved from one pass over the rows, and the best under
        `metric` in exact leave-query-out (a query's scored rows are left out) is kept.
    metric : str
        What chooses among them, see `corank.metrics.parse_metric`.
    n_basis : int, optional
        Number of basis rows of each view, chosen for each view anew; None takes a linear view's columns, else all rows.
    basis : {"random", "kmeans++"} or array-like of int
        How basis rows are chosen among all rows, scored or not; or which they are, in every view.
    query_weight : {"pairs", "equal", "rows"}
        Every pair counts the same (the paper's), every query does, or every row; scored and unscored.
    random_state : int, RandomState or None
        Seed of the views, the bases and a kernel's median.

    Attributes
    ----------
    alpha_, coupling_ : float
        The weights that were used.
    views_ : list of View
        The views, their kernels' parameters resolved.
    view_coefs_ : list of arrays
        Coefficients of each view: of its columns (linear kernel) or of its basis rows.
    bases_ : list
        Basis rows of each view in its columns, or their numbers for a precomputed kernel; None where columns serve.
    loo_scores_ : array of shape (n_couplings, n_alphas)
        Mean of `metric` over the queries, each predicted by the model that did not see its scored rows.
    disagreement_ : float
        Mean over unscored pairs and pairs of views of the squared difference of the views' margins; NaN without any.
    jitter_ : float
        What was added to `alpha_` because rounding errors would drown it.
    rank_ : int
        Number of directions that were fitted, over all views.

    Examples
    --------
    >>> from corank import CoRankRLS, hide_scores, make_ranking
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> y = hide_scores(problem.y, fraction=0.8, random_state=0)
    >>> model = CoRankRLS(views=2, coupling=0.01, random_state=0).fit(problem.X, y, qid=problem.qid)
    >>> model.predict_views(problem.X).shape, model.score(problem.X, problem.y, qid=problem.qid) > 0.7
    ((2000, 2), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LeastSquares._parameter_constraints,
        "views": [Interval(Integral, 1, None, closed="left"), list, tuple],
        "coupling": [Interval(Real, 0, None, closed="left")],
        "couplings": ["array-like", None],
    }

    def __init__(
        self,
        views: Any = 2,
        coupling: float = 1.0,
        alpha: float = 1.0,
        kernel: Any = "linear",
        *,
        alphas: Any = None,
        couplings: Any = None,
        metric: str = "disagreement",
        n_basis: int | None = None,
        basis: Any = "random",
        query_weight: str = "pairs",
        random_state: Any = None,
    ) -> None:
        self.views = views
        self.coupling = coupling
        self.alpha = alpha
        self.kernel = kernel
        self.alphas = alphas
        self.couplings = couplings
        self.metric = metric
        self.n_basis = n_basis
        self.basis = basis
        self.query_weight = query_weight
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """
        Learn from scored and unscored rows.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, sequence of objects, or RankingData
            The rows, or a whole problem (then y and qid stay None), which may be memory-mapped: it is read in blocks.
        y : array-like of shape (n_rows,)
            Scores, higher is better; NaN marks an unscored row.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 means what writing the row twice means, for scored and unscored rows.

        Returns
        -------
        self
            The fitted ranker.
        """
        self._validate_params()
        data, kernel = self._given(X, y, qid, None)
        data.require_pairs()
        weights = as_weights(sample_weight, data.n_rows)
        frame = self._frame(data, weights)
        self._forget()
        maps = self._maps(data, kernel, frame, weights)
        summary = Summary.of(maps, data, self.query_weight, weights)
        if self.alphas is None and self.couplings is None:
            return self._solve(summary)
        return self._choose(summary, data, frame)

    def summary(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        like: Summary | None = None,
    ) -> Summary:
        """
        Sum over a part of a problem; parts that share no query add up to the whole, see `fit_summary`.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in `fit`.
        like : Summary, optional
            A summary of another part, whose views and basis rows are used; None chooses them here.

        Returns
        -------
        Summary
            The sums.
        """
        self._validate_params()
        data, kernel = self._given(X, y, qid, None)
        weights = as_weights(sample_weight, data.n_rows)
        maps = self._maps(data, kernel, self._frame(data, weights), weights) if like is None else like.maps
        return Summary.of(maps, data, self.query_weight, weights)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """
        Score rows.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame or sequence of objects
            The rows.

        Returns
        -------
        array of shape (n_rows,)
            The mean of the views' scores, higher is better.
        """
        return np.asarray(self.predict_views(X).mean(axis=1))

    def predict_views(self, X: Any) -> NDArray[np.float64]:
        """
        Score rows with each view.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame or sequence of objects
            The rows.

        Returns
        -------
        array of shape (n_rows, n_views)
            One column of scores for each view.
        """
        check_is_fitted(self)
        rows = self._rows_to_score(X, self.views_[0].kernel)
        parts = zip(self.views_, self.bases_, self.view_coefs_, strict=True)
        return np.column_stack([scores(view, basis, coefficients, rows) for view, basis, coefficients in parts])

    def _maps(
        self, data: RankingData, kernel: Kernel, frame: Frame | PairFrame, weights: Floats | None
    ) -> tuple[FeatureMap, ...]:
        """One map for each view, each with its own dice."""
        for_views, *for_maps = rng_of(self.random_state).spawn(1 + self._n_views())
        rows = _counted_rows(data, frame, weights)
        views = self._views(data, kernel, for_views)
        return tuple(self._map(view, data, rows, rng) for view, rng in zip(views, for_maps, strict=True))

    def _n_views(self) -> int:
        return int(self.views) if isinstance(self.views, Integral) else len(self.views)

    def _views(self, data: RankingData, kernel: Kernel, rng: np.random.Generator) -> list[View]:
        n_features = data.X.shape[1] if data.X.ndim == 2 else self._n_views()
        if isinstance(self.views, Integral) and n_features < int(self.views):
            raise InputError(
                f"views={self.views} needs a column for each view, but X has n_features = {n_features}; pass fewer."
            )
        views = as_views(self.views, n_features, rng, kernel)
        if isinstance(kernel, ObjectKernel):
            return [of_objects(view) for view in views]
        for view in views:
            require_square(data.X, view.kernel)
        return views

    def _solve(self, summary: Summary) -> Self:
        w, jitter = solve_one(*summary.system(float(self.coupling)), float(self.alpha))
        return self._store(summary, w, float(self.alpha), float(self.coupling), jitter)

    def _choose(self, summary: Summary, data: RankingData, frame: Frame | PairFrame) -> Self:
        if len(frame.starts) < 3:
            raise InputError(
                "alphas and couplings are chosen by leaving out one query at a time, and only one has scored rows to "
                "compare; pass alpha and coupling."
            )
        alphas = self._alphas()
        couplings = np.array([float(self.coupling)])
        if self.couplings is not None:
            couplings = candidates(self.couplings, "couplings")
        spectra = [summary.spectrum(float(coupling)) for coupling in couplings]
        held = np.empty((len(spectra), int(frame.starts[-1]), len(alphas)))
        for part, starts, Z, t in frame.designs(data.X, beside(summary.maps)):
            held[:, part] = views_out(spectra, Z, t, starts, summary.blocks, alphas)
        self.loo_scores_ = np.stack([frame.scores(one, self.metric) for one in held])
        c, a = best(self.loo_scores_, self.metric)
        w = spectra[c].solve(alphas[[a]])[:, 0]
        jitter = float(spectra[c].shifts(alphas)[a] - alphas[a])
        return self._store(summary, w, float(alphas[a]), float(couplings[c]), jitter)

    def _store(self, summary: Summary, w: Floats, alpha: float, coupling: float, jitter: float) -> Self:
        self.alpha_, self.coupling_, self.jitter_, self.rank_ = alpha, coupling, jitter, len(w)
        self.views_ = [phi.view for phi in summary.maps]
        self.bases_ = [phi.basis for phi in summary.maps]
        parts = zip(summary.maps, summary.blocks, strict=True)
        self.view_coefs_ = [phi.coefficients(w[block]) for phi, block in parts]
        self.disagreement_ = summary.disagreement(w)
        return self


def _counted_rows(data: RankingData, frame: Frame | PairFrame, weights: Floats | None) -> NDArray[np.int64]:
    """Rows that count: compared scored rows, and unscored rows of positive weight."""
    unscored = ~data.is_scored if weights is None else ~data.is_scored & (weights > 0)
    return np.union1d(active_rows(frame), np.flatnonzero(unscored))
