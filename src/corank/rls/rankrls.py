"""
RankRLS: regularised least-squares ranking (Pahikkala, Tsivtsivadze, Airola, Järvinen and Boberg, 2009).

    min_f ½ mean over pairs (i, j) of ((y_i − y_j) − (f(x_i) − f(x_j)))² + alpha/2 ‖f‖²

over the pairs of scored rows of a query whose scores differ; a pair weighs c_q w_i w_j. With L their Laplacian over
their weight, the mean is (y − f)ᵀ L (y − f). Three ways to the same kind of system, all exact:

* dense dual, n scored rows: (H K Hᵀ + alpha I) b = H y with L = HᵀH, a = Hᵀb; O(n³) and two n × n arrays;
* primal, a linear kernel with d ≤ n columns: (XᵀLX + alpha I) w = XᵀL y; O(n d² + d³), one pass, O(d²) memory;
* sparse, r basis rows (Tsivtsivadze et al., 2008): (K̄ᵀLK̄ + alpha K̂) a = K̄ᵀL y; O(n r² + r³), one pass, O(r²) memory.

The papers take sums where this takes means, and compare equal scores too: with ``ties=True`` their λ is alpha times the
weight of all pairs, Σ_q c_q W_q²/2 for rows of weight W_q. That mean counts a row as a pair with itself, so that a row
of weight 2 is the row written twice.

A list of `alphas` costs one eigendecomposition in all and O(n²) for each value (d², r²); leaving out every query,
exactly, costs O(Σ_q n_q² n) more for each value (d, r for n), never a second fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from corank.core.rows.scaled import factors_of
from corank.data.problem.inputs import require_weight
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.held_out import HeldOut
from corank.kernels import Basis, FeatureMap, Kernel, score_columns
from corank.kernels.views import View
from corank.progress import progress
from corank.rls.frame import Frame, RowFrame
from corank.rls.judge import EVIDENCE, best, candidates, judged, metric_for
from corank.rls.least_squares import Judge, LeastSquares, raw_weights
from corank.rls.spectrum import Equations, ridge_of, solve_one
from corank.rls.summary import Summary
from corank.rls.systems import DenseSystem, FeatureSystem, System

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedRankRLS:
    """What `RankRLS` learns, see there; each field is an attribute of the model."""

    alpha: float
    alpha_from: str
    jitter: float
    rank: int
    kernel: Kernel
    coef: Floats | None = None
    dual_coef: Floats | None = None
    basis: Basis | None = None
    alpha_path: Floats | None = None
    loo_scores: Floats | None = None


class RankRLS(LeastSquares):
    """
    Kernel or linear ranker found by one linear system.

    Parameters
    ----------
    alpha : float, optional
        Weight of ½‖f‖² beside the mean loss ½(error)² of the compared pairs (the paper's λ is alpha times their
        weight). None chooses: by `alphas` where given, else b · D / max(m, d), D the mean squared distance of
        compared rows in the space of the kernel, m their number less one for each query, d the number of columns of a
        linear kernel, b = 10, or 1 for a single query (see `corank.solvers.penalty`).
    kernel : str, Kernel or callable
        Similarity of rows: "linear", "gaussian" (or "rbf"), "polynomial", "laplacian", "chi-square", "cosine", or
        "precomputed", when X holds similarities to the training rows. A function takes two sequences of rows and
        returns their Gram matrix; rows may then be any objects.
    alphas : array-like, optional
        Candidates for alpha: all are solved, and the best under `metric` in exact leave-query-out is kept. With a
        single query, `metric` must be "disagreement" and every pair of rows is left out instead; where `ties` is False
        and scores repeat in it, every tenth of its rows.
    metric : str, optional
        What chooses among `alphas`, see `corank.metrics.parse_metric`; rows count once there, whatever they weigh. None
        is nDCG@10 for grades from 0 to 10 in several queries, else disagreement. "evidence" leaves nothing out: it
        keeps the alpha under which the scores are likeliest, f being a Gaussian process beside Gaussian noise.
    n_basis : int, optional
        Number of basis rows of the sparse form; None solves the dense dual, or the primal for a linear kernel.
    basis : {"random", "kmeans++"} or array-like of int
        How basis rows are chosen among the compared rows, or which they are.
    query_weight : {"pairs", "equal", "rows"}
        c_q: every pair counts the same (the paper's), every query does, or every row does.
    ties : bool
        Whether two rows of equal score make a pair, asked to differ by 0. True is the paper's form.
    scale : bool
        Whether columns are divided by their deviation inside queries before learning; `coef_` is that of the columns
        as given.
    random_state : int, RandomState or None
        Seed of the basis and of a kernel's median.
    verbose : bool
        Whether to show how far leaving out has come, on a terminal or in a notebook.

    Attributes
    ----------
    alpha_ : float
        The weight of the penalty that was used.
    alpha_from_ : str
        What it was chosen from: "given", "pair differences", "largest evidence", or what was left out and what judged.
    coef_ : array of shape (n_features,)
        Weights of the columns (linear kernel only).
    dual_coef_ : array of shape (r,)
        Coefficients of the basis rows (other kernels).
    basis_ : Basis
        The rows that `dual_coef_` belongs to.
    kernel_ : Kernel
        The kernel with its parameters resolved.
    alpha_path_ : array of shape (n_alphas, n_features) or (n_alphas, r)
        `coef_` or `dual_coef_` for each of `alphas`.
    loo_scores_ : array of shape (n_alphas,)
        Mean of `metric` over the queries, each predicted by the model that did not see it; disagreement error over
        pairs that were left out when there is one query. Predictions nearer than their rounding errors are ties. With
        ``metric="evidence"``, the log evidence up to a constant.
    jitter_ : float
        What was added to `alpha_` because rounding errors would drown it: rows repeat, or alpha is below 1e-13 of the
        system's trace. Columns of a linear kernel are measured one by one: the most that was added for any of them.
    rank_ : int
        Number of directions that were fitted: scored rows (dense), columns (primal), or the rank of the basis (sparse).
    column_scale_ : array of shape (n_features,)
        What columns were multiplied by (with `scale`).

    Examples
    --------
    >>> from corank import RankRLS, make_ranking
    >>> problem = make_ranking(60, 10, random_state=0)
    >>> model = RankRLS(kernel="gaussian", alphas=[1e-4, 1e-3, 1e-2, 0.1], random_state=0)
    >>> model = model.fit(problem.X, problem.y, qid=problem.qid)
    >>> model.loo_scores_.shape, model.alpha_from_
    ((4,), 'leave-query-out nDCG@10')
    """

    _judges = (EVIDENCE,)

    def __init__(
        self,
        alpha: float | None = None,
        kernel: Any = "linear",
        *,
        alphas: Any = None,
        metric: str | None = None,
        n_basis: int | None = None,
        basis: Any = "random",
        query_weight: str = "pairs",
        ties: bool = False,
        scale: bool = True,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.alphas = alphas
        self.metric = metric
        self.n_basis = n_basis
        self.basis = basis
        self.query_weight = query_weight
        self.ties = ties
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedRankRLS:
        view = View(None, self.kernel).fit(data.X, rng, data.weights)
        is_linear = view.kernel.is_linear and not self._wants_basis
        is_primal = is_linear and data.n_features <= len(data.scored_rows)
        if is_primal and self.alphas is None:
            phi = FeatureMap.of_columns(view, data.n_features)
            return self._solve(Summary.of((phi,), data, self.query_weight, self.ties))
        frame = Frame.of(data, self.query_weight, self.ties)
        require_weight(frame.n_queries, "pair")
        if isinstance(frame, RowFrame) and not is_primal and not self._wants_basis:

            def make(data: RankingData, frame: Frame) -> System:
                assert isinstance(frame, RowFrame)
                return DenseSystem(data, frame, Basis.of(view, data.X, frame.rows))

        else:
            phi = self._map(view, data, frame.rows, rng)

            def make(data: RankingData, frame: Frame) -> System:
                summary = Summary.of((phi,), data, frame.query_weight, frame.ties)
                return FeatureSystem(data, frame, phi.basis, summary)

        system, factors = make(data, frame), factors_of(data.X)
        if self.alphas is None:
            x, found = self._one(system.equations())
            return _fitted(view, system.basis, system.coefficients(x), factors, **found)
        alphas, metric = candidates(self.alphas, "alphas"), metric_for(self.metric, frame)
        ridge = ridge_of(system.equations(), alphas)
        with progress(int(frame.starts[-1]), "rows left out", self.verbose) as advance:
            scores, how = judged(system, ridge, alphas, metric, make, advance)
        (at,) = best(scores, metric)
        return _fitted(
            view, system.basis, system.coefficients(ridge.solve(alphas)), factors, at, loo_scores=scores,
            alpha=float(alphas[at]), alpha_from=f"{how} {metric}", rank=len(ridge.target),
            jitter=ridge.jitter(float(alphas[at])),
        )  # fmt: skip

    def _solve_judged(self, summary: Summary, metric: str, judge: Judge) -> FittedRankRLS:
        phi, alphas = summary.only_map, candidates(self.alphas, "alphas")
        ridge = ridge_of(summary.equations(), alphas)
        (scores,) = judge([ridge], alphas)
        (at,) = best(scores, metric)
        return _fitted(
            phi.view, phi.basis, phi.coefficients(ridge.solve(alphas)), summary.factors, at, loo_scores=scores,
            alpha=float(alphas[at]), alpha_from=f"leave-query-out {metric}", rank=len(ridge.target),
            jitter=ridge.jitter(float(alphas[at])),
        )  # fmt: skip

    def _maps(self, data: RankingData, frame: Frame, rng: np.random.Generator) -> tuple[FeatureMap, ...]:
        view = View(None, self.kernel)
        if view.kernel.is_linear and not self._wants_basis:
            return (FeatureMap.of_columns(view, data.n_features),)
        if not self._wants_basis:
            raise InputError("a dense system is no sum over queries; set n_basis, or use a linear kernel.")
        self._require_rows(frame)
        return (self._map(view.fit(data.X, rng, data.weights), data, frame.rows, rng),)

    def _dealt(self, n_features: int | None, rng: np.random.Generator) -> tuple[list[View], list[np.random.Generator]]:
        """The one view, and dice for it."""
        return [View(None, self.kernel)], [rng]

    def _solve(self, summary: Summary) -> FittedRankRLS:
        phi = summary.only_map
        x, found = self._one(summary.equations())
        return _fitted(phi.view, phi.basis, phi.coefficients(x), summary.factors, **found)

    def _one(self, equations: Equations) -> tuple[Floats, dict[str, Any]]:
        alpha, source = self._alpha(equations)
        x, jitter = solve_one(equations, alpha)
        return x, {"alpha": alpha, "alpha_from": source, "jitter": jitter, "rank": len(x)}

    def _score_rows(self, X: Any) -> NDArray[np.float64]:
        """Return f(x)."""
        check_is_fitted(self)
        return self._scores(X, self.coef_ if self.kernel_.is_linear else self.dual_coef_)

    def predict_path(self, X: Any, *, prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """
        Score rows with the model of each of `alphas`.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame or sequence of objects
            The rows.
        prior : array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        array of shape (n_rows, n_alphas)
            One column of scores for each alpha.
        """
        check_is_fitted(self)
        if not hasattr(self, "alpha_path_"):
            raise InputError("this model was fitted for one alpha; pass alphas to have a path.")
        return self._add_prior(self._scores(X, self.alpha_path_.T), prior)

    def _scores(self, X: Any, coefficients: Floats) -> Floats:
        if self.kernel_.is_linear:
            return score_columns(self._checked_rows(X), coefficients)
        return np.asarray(self.basis_.score(self._scaled_rows(X), coefficients))


def _fitted(
    view: View, basis: Basis | None, coefficients: Floats, factors: Floats | None, at: int | None = None, **found: Any
) -> FittedRankRLS:
    """Name coefficients by what they belong to; where they are of many alphas, that at `at` was chosen."""
    is_linear = view.kernel.is_linear
    if is_linear:
        coefficients = raw_weights(coefficients, view, factors, len(coefficients))
    path = None if at is None else np.ascontiguousarray(coefficients.T)
    chosen = coefficients if path is None else path[at].copy()
    where = {"coef": chosen} if is_linear else {"dual_coef": chosen, "basis": basis}
    return FittedRankRLS(kernel=view.kernel, alpha_path=path, **where, **found)
