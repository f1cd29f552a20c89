"""
RankRLS: regularised least-squares ranking (Pahikkala, Tsivtsivadze, Airola, Järvinen and Boberg, 2009).

    min_f Σ_q c_q Σ_{i<j in q} w_i w_j ((y_i − y_j) − (f(x_i) − f(x_j)))² + alpha ‖f‖²
        = (y − f)ᵀ L (y − f) + alpha ‖f‖²

over all pairs of scored rows of a query, those of equal scores included, as in the paper. Three ways to the same kind
of system, all exact:

* dense dual, n scored rows: (H K Hᵀ + alpha I) b = H y with L = HᵀH, a = Hᵀb; O(n³) and two n × n arrays;
* primal, a linear kernel with d < n columns: (XᵀLX + alpha I) w = XᵀL y; O(n d² + d³), one pass, O(d²) memory;
* sparse, r basis rows (Tsivtsivadze et al., 2008): (K̄ᵀLK̄ + alpha K̂) a = K̄ᵀL y; O(n r² + r³), one pass, O(r²) memory.

A list of `alphas` costs one eigendecomposition in all and O(n²) for each value (d², r²); leaving out every query,
exactly, costs O(Σ_q n_q² n) more for each value (d, r for n), never a second fit.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from corank.base import as_weights, rng_of
from corank.basis.features import FeatureMap, scores, settled
from corank.basis.gram import basis_of
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.kernels import LinearKernel
from corank.rls.dense import dual_system
from corank.rls.frame import Frame
from corank.rls.least_squares import LeastSquares, active_rows, best
from corank.rls.leave_out import dual_queries_out, one_query, pairs_out, queries_out
from corank.rls.pair_frame import PairFrame
from corank.rls.spectrum import Spectrum, solve_one
from corank.rls.summary import Summary
from corank.views import View

Floats = NDArray[np.float64]


class RankRLS(LeastSquares):
    """
    Kernel or linear ranker found by one linear system.

    Parameters
    ----------
    alpha : float
        Weight of ‖f‖² (the paper's λ), 0 or more; ignored when `alphas` are given.
    kernel : str, Kernel or callable
        Similarity of rows: "linear", "gaussian", "polynomial", "laplacian", "chi-square", "cosine", or "precomputed",
        when X holds similarities to the training rows. A function takes two sequences of rows and returns their Gram
        matrix; rows may then be any objects.
    alphas : array-like, optional
        Candidates for alpha: all are solved, and the best under `metric` in exact leave-query-out is kept. With a
        single query every pair of rows is left out instead, and `metric` must be "disagreement".
    metric : str
        What chooses among `alphas`, see `corank.metrics.parse_metric`; rows count once there, whatever they weigh.
    n_basis : int, optional
        Number of basis rows of the sparse form; None solves the dense dual, or the primal for a linear kernel.
    basis : {"random", "kmeans++"} or array-like of int
        How basis rows are chosen among the scored rows, or which they are.
    query_weight : {"pairs", "equal", "rows"}
        c_q: every pair counts the same (the paper's), every query does, or every row does.
    random_state : int, RandomState or None
        Seed of the basis and of a kernel's median.

    Attributes
    ----------
    alpha_ : float
        The weight of the penalty that was used.
    coef_ : array of shape (n_features,)
        Weights of the columns (linear kernel only).
    dual_coef_ : array of shape (r,)
        Coefficients of the basis rows (other kernels).
    basis_ : ndarray or CSR matrix of r rows, or array of int
        The rows that `dual_coef_` belongs to; their numbers for a precomputed kernel.
    kernel_ : Kernel
        The kernel with its parameters resolved.
    path_ : array of shape (n_alphas, n_features) or (n_alphas, r)
        `coef_` or `dual_coef_` for each of `alphas`.
    loo_scores_ : array of shape (n_alphas,)
        Mean of `metric` over the queries, each predicted by the model that did not see it; disagreement error over
        pairs that were left out when there is one query.
    jitter_ : float
        What was added to `alpha_` because rounding errors would drown it: rows repeat, or alpha is below 1e-13 of the
        system's trace.
    rank_ : int
        Number of directions that were fitted: scored rows (dense), columns (primal), or the rank of the basis (sparse).

    Examples
    --------
    >>> from corank import RankRLS, make_ranking
    >>> problem = make_ranking(60, 10, random_state=0)
    >>> model = RankRLS(kernel="gaussian", alphas=[0.1, 1.0, 10.0, 100.0], random_state=0)
    >>> model = model.fit(problem.X, problem.y, qid=problem.qid)
    >>> model.loo_scores_.shape, bool(1 - model.loo_scores_.min() > 0.7)
    ((4,), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**LeastSquares._parameter_constraints}

    def __init__(
        self,
        alpha: float = 1.0,
        kernel: Any = "linear",
        *,
        alphas: Any = None,
        metric: str = "disagreement",
        n_basis: int | None = None,
        basis: Any = "random",
        query_weight: str = "pairs",
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.alphas = alphas
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
        pairs: ArrayLike | None = None,
    ) -> Self:
        """
        Learn from scored rows, or from preferences.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, sequence of objects, or RankingData
            The rows, or a whole problem (then y, qid and pairs stay None), which may be memory-mapped: primal and
            sparse systems read it in blocks.
        y : array-like of shape (n_rows,)
            Scores, higher is better; NaN marks an unscored row.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 means what writing the row twice means: a pair weighs the product of its rows.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Preferences instead of y: row numbers, the preferred row first; each asks for a difference of 1.

        Returns
        -------
        self
            The fitted ranker.
        """
        self._validate_params()
        data, kernel = self._given(X, y, qid, pairs)
        data.require_pairs()
        weights = as_weights(sample_weight, data.n_rows)
        frame, rng, view = self._frame(data, weights), rng_of(self.random_state), View(None, kernel)
        rows = active_rows(frame)
        self._forget()
        is_primal = isinstance(kernel, LinearKernel) and data.n_features <= len(rows)
        if isinstance(frame, Frame) and not is_primal and not self._wants_basis():
            return self._fit_dense(view.fit(data.X, rng), data, frame)
        phi = self._map(view, data, rows, rng)
        summary = Summary.of((phi,), data, self.query_weight, weights)
        if self.alphas is None:
            return self._solve(summary)
        return self._choose(summary, data, frame)

    def summary(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
        like: Summary | None = None,
    ) -> Summary:
        """
        Sum over a part of a problem; parts that share no query add up to the whole, see `fit_summary`.

        Parameters
        ----------
        X, y, qid, sample_weight, pairs
            As in `fit`.
        like : Summary, optional
            A summary of another part, whose basis rows and kernel parameters are used; None chooses them here.

        Returns
        -------
        Summary
            The sums.
        """
        self._validate_params()
        data, kernel = self._given(X, y, qid, pairs)
        weights = as_weights(sample_weight, data.n_rows)
        if like is not None:
            phi = like.only_map
        elif self._wants_basis():
            rows = active_rows(self._frame(data, weights))
            phi = self._map(View(None, kernel), data, rows, rng_of(self.random_state))
        elif isinstance(kernel, LinearKernel):
            phi = FeatureMap.of_columns(View(None, kernel), data.n_features)
        else:
            raise InputError("a dense system is no sum over queries; set n_basis, or use a linear kernel.")
        return Summary.of((phi,), data, self.query_weight, weights)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """
        Score rows.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame or sequence of objects
            The rows; similarities to the training rows for a precomputed kernel.

        Returns
        -------
        array of shape (n_rows,)
            f(x), higher is better.
        """
        check_is_fitted(self)
        coefficients = self.coef_ if isinstance(self.kernel_, LinearKernel) else self.dual_coef_
        return self._scores(X, coefficients)

    def predict_path(self, X: Any) -> NDArray[np.float64]:
        """
        Score rows with the model of each of `alphas`.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame or sequence of objects
            The rows.

        Returns
        -------
        array of shape (n_rows, n_alphas)
            One column of scores for each alpha.
        """
        check_is_fitted(self)
        if not hasattr(self, "path_"):
            raise InputError("this model was fitted for one alpha; pass alphas to have a path.")
        return self._scores(X, self.path_.T)

    def _scores(self, X: Any, coefficients: Floats) -> Floats:
        rows = self._rows_to_score(X, self.kernel_)
        return scores(View(None, self.kernel_), getattr(self, "basis_", None), coefficients, rows)

    def _fit_dense(self, view: View, data: RankingData, frame: Frame) -> Self:
        L, basis = frame.laplacian, basis_of(view, data.X, frame.rows)
        M, t = dual_system(view, data.X, frame, basis)
        if self.alphas is None:
            b, jitter = solve_one(M, t, float(self.alpha))
            return self._store(view, basis, settled(view, basis, L.half_t(b)), float(self.alpha), jitter, len(t))
        spectrum, alphas = Spectrum.of(M, t), self._alphas()
        if len(frame.starts) > 2:
            self.loo_scores_ = frame.scores(dual_queries_out(spectrum, t, frame.starts, alphas), self.metric)
        else:
            self.loo_scores_ = pairs_out(spectrum, None, one_query(frame, self.metric), alphas, self.query_weight)
        path = settled(view, basis, L.half_t(spectrum.solve(alphas)))
        return self._store_path(view, basis, path, spectrum, len(t))

    def _solve(self, summary: Summary) -> Self:
        phi = summary.only_map
        w, jitter = solve_one(*summary.system(), float(self.alpha))
        return self._store(phi.view, phi.basis, phi.coefficients(w), float(self.alpha), jitter, phi.n_features)

    def _choose(self, summary: Summary, data: RankingData, frame: Frame | PairFrame) -> Self:
        phi = summary.only_map
        spectrum, alphas = summary.spectrum(), self._alphas()
        if len(frame.starts) > 2:
            held = np.empty((frame.starts[-1], len(alphas)))
            for part, starts, Z, t in frame.designs(data.X, phi):
                held[part] = queries_out(spectrum, Z, t, starts, alphas)
            self.loo_scores_ = frame.scores(held, self.metric)
        else:
            ((_, _, Z, _),) = frame.designs(data.X, phi)
            self.loo_scores_ = pairs_out(spectrum, Z, one_query(frame, self.metric), alphas, self.query_weight)
        path = phi.coefficients(spectrum.solve(alphas))
        return self._store_path(phi.view, phi.basis, path, spectrum, phi.n_features)

    def _store_path(self, view: View, basis: Any, path: Floats, spectrum: Spectrum, rank: int) -> Self:
        alphas = self._alphas()
        (at,) = best(self.loo_scores_, self.metric)
        jitter = float(spectrum.shifts(alphas)[at] - alphas[at])
        self.path_ = np.ascontiguousarray(path.T)
        return self._store(view, basis, self.path_[at].copy(), float(alphas[at]), jitter, rank)

    def _store(self, view: View, basis: Any, coefficients: Floats, alpha: float, jitter: float, rank: int) -> Self:
        self.alpha_, self.jitter_, self.rank_, self.kernel_ = alpha, jitter, rank, view.kernel
        if isinstance(view.kernel, LinearKernel):
            self.coef_ = coefficients
            self.n_features_in_ = len(coefficients)
        else:
            self.dual_coef_, self.basis_ = coefficients, basis
        return self
