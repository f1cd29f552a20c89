"""
RankRLS: regularised least-squares ranking (Pahikkala, Tsivtsivadze, Airola, Järvinen and Boberg, 2009).

    min_f ½ mean over pairs (i, j) of ((y_i − y_j) − (f(x_i) − f(x_j)))² + alpha/2 ‖f‖²

over the pairs of scored rows of a query whose scores differ; a pair has weight c_q w_i w_j. With L their Laplacian over
their weight, the mean is (y − f)ᵀ L (y − f). Three exact forms:

* dense dual, n scored rows: (H K Hᵀ + alpha I) b = H y with L = HᵀH, a = Hᵀb; O(n³) and two n × n arrays;
* primal, a linear kernel with d ≤ n columns: (XᵀLX + alpha I) w = XᵀL y; O(n d² + d³), one pass, O(d²) memory;
* sparse, r basis rows (Tsivtsivadze et al., 2008): (K̄ᵀLK̄ + alpha K̂) a = K̄ᵀL y; O(n r² + r³), one pass, O(r²) memory.

The papers use sums instead of means, and compare equal scores, too: with ``ties=True`` their λ is alpha times the
weight of all pairs, Σ_q c_q W_q²/2 for rows of weight W_q. That mean includes pairs of a row with itself, so that a row
of weight 2 equals the row written twice.

A list of `alphas` costs one eigendecomposition and O(n²) for each value (d², r²). Exact leave-query-out costs another
O(Σ_q n_q² n) for each value (d, r for n), without refitting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels import Kernel, SumKernel
from corank.base.kernels.basis import Basis, FeatureMap, auto_basis
from corank.base.kernels.kernel import require_square
from corank.base.kernels.views import View
from corank.core.rows.access import factors_of
from corank.data.inputs import require_weight
from corank.data.ranking import RankingData
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Predictions, Relations, Shapes
from corank.models.rls.frame import ComparedRows, ScoredRows
from corank.models.rls.least_squares import EvaluateRidges, LeastSquares, raw_weights
from corank.models.rls.spectrum import Equations, ridge_of, solve_one
from corank.models.rls.summary import PairSums
from corank.models.rls.systems import (
    EVIDENCE,
    DenseSystem,
    FeatureSystem,
    System,
    best,
    candidates,
    leave_out_scores,
    metric_for,
    require_pairs_memory,
)
from corank.parameters import Rules, integer, none, one_of
from corank.progress import progress

Floats = NDArray[np.float64]

# up to this many rows all are basis rows by default, above a number of random ones
_MANY_ROWS, _AUTO_BASIS = 5_000, 1_000
# scaled columns with larger values are nearly constant inside queries
_LARGE = 1e3


@dataclass(frozen=True, eq=False)
class FittedRankRLS:
    """The fitted attributes of `RankRLS`."""

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


@shared_parameters
@dataclass(eq=False, repr=False)
class RankRLS(LeastSquares):
    """
    Kernel or linear ranker by regularised least squares.

    Parameters
    ----------
    alpha : float, optional
        Weight of ½‖f‖², relative to the mean loss ½(error)² of the compared pairs (the paper's λ is alpha times their
        weight). None chooses it: by `alphas` if given, else b · D / max(m, d), with D the mean squared distance of
        compared rows in the space of the kernel, m their number minus one for each query, d the number of columns of a
        linear kernel, and b = 10, or 1 for a single query (see `corank.base.solvers.penalty`).
    {kernel}
    alphas : array-like, optional
        Candidates for alpha. All are solved, and the best under `metric` in exact leave-query-out is kept; of several
        whose values differ by rounding errors only (a relative difference of 1e-12), the largest alpha. With a
        single query, `metric` must be "disagreement", and pairs of rows are left out; if `ties` is False and its scores
        repeat, tenths of its rows.
    metric : str, optional
        The metric that chooses among `alphas`, see `corank.metrics.parse_metric`, without row weights. None means
        nDCG@10 for grades from 0 to 10 in several queries, else disagreement. "evidence" maximises the marginal
        likelihood of a Gaussian process with Gaussian noise instead of leaving out rows.
    n_basis : int, "auto" or None
        Number of basis rows of the sparse form. None solves the dense dual, or the primal for a linear kernel. "auto"
        does so up to 5,000 scored rows, and for a linear kernel always; above, it uses 1,000 basis rows, with a
        `UsageWarning`.
    {basis}
    {query_weight}
    ties : bool
        Whether two rows of equal score form a pair with target difference 0, as in the paper.
    {scale}
    {missing}
    {random_state}
    {verbose}

    Attributes
    ----------
    alpha_ : float
        Weight of the penalty.
    alpha_from_ : str
        How alpha was chosen: "given", "pair differences", "largest evidence", or the cross-validation and its metric.
    coef_ : array of shape (n_features,)
        Weights of the columns (linear kernel only).
    dual_coef_ : array of shape (r,)
        Coefficients of the basis rows (other kernels).
    basis_ : Basis
        The rows that `dual_coef_` belongs to.
    kernel_ : Kernel
        The kernel with its chosen parameters.
    alpha_path_ : array of shape (n_alphas, n_features) or (n_alphas, r)
        `coef_` or `dual_coef_` for each of `alphas`.
    loo_scores_ : array of shape (n_alphas,)
        Mean of `metric` over queries, each predicted by the model without it; for one query, the disagreement error
        over left-out pairs. Differences below rounding errors are ties. With ``metric="evidence"``, the log evidence up
        to a constant.
    jitter_ : float
        Amount added to `alpha_` for numerical stability: rows repeat, or alpha is below 1e-13 of the trace of the
        system. For columns of a linear kernel, the largest amount added for one of them.
    rank_ : int
        Dimension of the system: scored rows (dense), columns (primal), or the rank of the basis (sparse).
    column_scale_ : array of shape (n_features,)
        Factors of the columns (with `scale`).

    Notes
    -----
    The objective is ½ Σ ω (t − (f(x_i) − f(x_j)))² / Ω + alpha/2 ‖f‖², summed over pairs of rows i, j of one query q.

    * Scores: all pairs of scored rows, t = (y_i − s_i) − (y_j − s_j) with the prior s, and ω = c_q w_i w_j with row
      weights w. c_q is 1 for ``query_weight="pairs"``; for "equal" it is 1 / (2 Σ w_i w_j) over the pairs of q; for
      "rows" it is 1 / W_q, W_q the sum of w over the scored rows of q.
    * Without `ties`, pairs of equal y are left out, and Ω = Σ ω. With `ties` they are included, and Ω is the sum of
      c_q W_q² / 2 over queries, as if each row also formed a pair with itself. A query with one scored row then
      adds w²/2 to Ω for "pairs", w/2 for "rows", and nothing for "equal".
    * Preferences: t = 1 − (s_i − s_j), ω = c_q v w_i w_j with pair weights v, c_q = 1, 1 / (2 Σ v w_i w_j), or 1 over
      the sum of w over the rows of the pairs of q; Ω = Σ ω.
    * With `scale`, column j of X is divided by √(Σ_i w_i (x_ij − weighted mean of its query)² / Σ_i w_i) over all rows,
      scored or not; see `corank.data.columns.column_factors` for columns that are mostly zero.
    * Basis rows R: f = Σ_r a_r k(x, z_r) and ‖f‖² = aᵀ K[R, R] a.
    * Leave-query-out predicts q by the minimum without its pairs: Ω is that of the other queries, and alpha, the scale
      of columns, the parameters of the kernel and the basis rows stay.

    Examples
    --------
    >>> from corank import RankRLS, make_ranking
    >>> problem = make_ranking(60, 10, random_state=0)
    >>> model = RankRLS(kernel="gaussian", alphas=[1e-4, 1e-3, 1e-2, 0.1], random_state=0)
    >>> model = model.fit(problem.X, problem.y, qid=problem.qid)
    >>> model.loo_scores_.shape, model.alpha_from_
    ((4,), 'leave-query-out nDCG@10')
    """

    _criteria = (EVIDENCE,)
    _rules: ClassVar[Rules] = {**LeastSquares._rules, "n_basis": integer(1) | one_of("auto") | none}

    _shapes: ClassVar[Shapes] = {"dual_coef_": ("r",), "alpha_path_": ("alphas", "weights"), "loo_scores_": ("alphas",)}
    _relations: ClassVar[Relations] = {
        "coef_ or dual_coef_ has the right length": lambda m: hasattr(m, "coef_") or len(m.dual_coef_) == len(m.basis_),
        "alpha_path_ has the weights of the model": lambda m: (
            _weights(m) >= 0 and (not hasattr(m, "alpha_path_") or m.alpha_path_.shape[1] == _weights(m))
        ),
    }
    _predictions: ClassVar[Predictions] = {
        "predict_path": lambda model, X: model.predict_path(X),
    }

    alpha: float | None = None
    kernel: Any = "linear"
    _: KW_ONLY
    n_basis: int | Literal["auto"] | None = "auto"

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedRankRLS:
        view = View(None, self.kernel).fit(data.X, rng, data.weights)
        is_linear = view.kernel.is_linear and not self.uses_basis
        is_primal = is_linear and data.n_features <= len(data.scored_rows)
        factors = factors_of(data.X)
        if is_linear and not is_primal:
            data = _centred(data)
        if is_primal and self.alphas is None:
            phi = FeatureMap.of_columns(view, data.n_features)
            return self.solve_summary(PairSums.of((phi,), data, self.query_weight, self.ties))
        frame = ComparedRows.of(data, self.query_weight, self.ties)
        require_weight(frame.n_queries, "pair")
        if self.alphas is not None:
            require_pairs_memory(frame, metric_for(self.metric, frame))
        n_basis = self._basis_size(view.kernel, frame)
        if isinstance(frame, ScoredRows) and not is_primal and not self.uses_basis and n_basis is None:
            require_square(len(frame.rows), self._n_arrays(frame, view.kernel))

            def make(data: RankingData, frame: ComparedRows) -> System:
                assert isinstance(frame, ScoredRows)
                return DenseSystem(data, frame, Basis.of(view, data.X, frame.rows))

        else:
            phi = self._map(view, data, frame.rows, rng, n_basis)

            def make(data: RankingData, frame: ComparedRows) -> System:
                summary = PairSums.of((phi,), data, frame.query_weight, frame.ties)
                return FeatureSystem(data, frame, phi.basis, summary)

        system = make(data, frame)
        if self.alphas is None:
            x, facts = self._one(system.equations())
            return _fitted(view, system.basis, system.coefficients(x), factors, **facts)
        alphas, metric = candidates(self.alphas, "alphas"), metric_for(self.metric, frame)
        ridge = ridge_of(system.equations(), alphas)
        with progress(int(frame.starts[-1]), "rows left out", self.verbose) as advance:
            scores, how = leave_out_scores(system, ridge, alphas, metric, make, advance)
        (index,) = best(scores, metric, alphas)
        return _fitted(
            view, system.basis, system.coefficients(ridge.solve(alphas)), factors, index, loo_scores=scores,
            alpha=float(alphas[index]), alpha_from=f"{how} {metric}", rank=len(ridge.target),
            jitter=ridge.jitter(float(alphas[index])),
        )  # fmt: skip

    def _basis_size(self, kernel: Kernel, frame: ComparedRows) -> int | None:
        """Return the number of basis rows; None for all rows, and for those that the user gave."""
        if self.n_basis == "auto" and (kernel.is_linear or not isinstance(self.basis, str)):
            return None
        return auto_basis(self.n_basis, len(frame.rows), _MANY_ROWS, _AUTO_BASIS)

    def _n_arrays(self, frame: ComparedRows, kernel: Kernel) -> float:
        """Return how many n × n arrays the dense system needs at once, as measured; leaving out large queries adds."""
        largest = 0 if self.alphas is None else np.diff(frame.starts).max() / len(frame.rows)
        return max(2.0 + 1.5 * largest, 3.0 if isinstance(kernel, SumKernel) else 0.0)

    def solve_candidates(self, summary: PairSums, metric: str, evaluate: EvaluateRidges) -> FittedRankRLS:
        """Solve for all alphas and keep the best, see `LeastSquares`."""
        phi, alphas = summary.only_map, candidates(self.alphas, "alphas")
        ridge = ridge_of(summary.equations(), alphas)
        (scores,) = evaluate([ridge], alphas)
        (index,) = best(scores, metric, alphas)
        return _fitted(
            phi.view, phi.basis, phi.coefficients(ridge.solve(alphas)), summary.factors, index, loo_scores=scores,
            alpha=float(alphas[index]), alpha_from=f"leave-query-out {metric}", rank=len(ridge.target),
            jitter=ridge.jitter(float(alphas[index])),
        )  # fmt: skip

    def choose_maps(self, data: RankingData, frame: ComparedRows, rng: np.random.Generator) -> tuple[FeatureMap, ...]:
        """Return the one feature map, see `LeastSquares`."""
        view = View(None, self.kernel)
        if view.kernel.is_linear and not self.uses_basis:
            return (FeatureMap.of_columns(view, data.n_features),)
        if not self.uses_basis:
            raise InputError("the dense system is not a sum over queries; set n_basis, or use a linear kernel.")
        self._require_rows(frame)
        view = view.fit(data.X, rng, data.weights)
        return (self._map(view, data, frame.rows, rng, self._basis_size(view.kernel, frame)),)

    def split_views(
        self, n_features: int | None, rng: np.random.Generator, names: Sequence[str] | None = None
    ) -> tuple[list[View], list[np.random.Generator]]:
        """Return the one view and its generator, see `LeastSquares`."""
        return [View(None, self.kernel)], [rng]

    def solve_summary(self, summary: PairSums) -> FittedRankRLS:
        """Solve for one alpha, see `LeastSquares`."""
        phi = summary.only_map
        x, facts = self._one(summary.equations())
        return _fitted(phi.view, phi.basis, phi.coefficients(x), summary.factors, **facts)

    def _one(self, equations: Equations) -> tuple[Floats, dict[str, Any]]:
        alpha, source = self._alpha(equations)
        x, jitter = solve_one(equations, alpha)
        return x, {"alpha": alpha, "alpha_from": source, "jitter": jitter, "rank": len(x)}

    def _score_rows(self, X: Any) -> NDArray[np.float64]:
        """Return f(x)."""
        check_is_fitted(self)
        return self._scores(X, self.coef_ if self.kernel_.is_linear else self.dual_coef_)

    def predict_path(self, X: Any, *, prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score rows with the model of each of `alphas`, shape (n_rows, n_alphas)."""
        check_is_fitted(self)
        if not hasattr(self, "alpha_path_"):
            raise InputError("this model was fitted for one alpha; pass alphas to fit a path.")
        return self._add_prior(self._scores(X, self.alpha_path_.T), prior)

    def _scores(self, X: Any, coefficients: Floats) -> Floats:
        if self.kernel_.is_linear:
            return score_columns(self._checked_rows(X), coefficients)
        return np.asarray(self.basis_.score(self._scaled_rows(X), coefficients))


def _centred(data: RankingData) -> RankingData:
    """Subtract means inside queries if columns are nearly constant: no pair changes, but K would lose its digits."""
    rows = data.scored_rows if data.pairs is None else np.unique(data.pairs)
    if sparse.issparse(data.X[rows[:1]]) or np.abs(data.X[rows]).max(initial=0.0) < _LARGE:
        return data
    X, queries = np.array(data.X[np.arange(data.n_rows)], dtype=np.float64), data.queries
    sums = np.add.reduceat(X[queries.order], queries.starts[:-1])
    return replace(data, X=X - (sums / np.diff(queries.starts)[:, None])[queries.codes])


def _fitted(
    view: View,
    basis: Basis | None,
    coefficients: Floats,
    factors: Floats | None,
    index: int | None = None,
    **facts: Any,
) -> FittedRankRLS:
    """Return the record of coefficients of columns or basis rows; `index` is that of the chosen alpha."""
    is_linear = view.kernel.is_linear
    if is_linear:
        coefficients = raw_weights(coefficients, view, factors, len(coefficients))
    path = None if index is None else np.ascontiguousarray(coefficients.T)
    chosen = coefficients if path is None else path[index].copy()
    where = {"coef": chosen} if is_linear else {"dual_coef": chosen, "basis": basis}
    return FittedRankRLS(kernel=view.kernel, alpha_path=path, **where, **facts)


def _weights(model: Any) -> int:
    """Return the number of weights of a linear or kernel model, which has one of two sets."""
    if hasattr(model, "coef_") == (hasattr(model, "basis_") and hasattr(model, "dual_coef_")):
        return -1
    return len(model.coef_) if hasattr(model, "coef_") else len(model.dual_coef_)
