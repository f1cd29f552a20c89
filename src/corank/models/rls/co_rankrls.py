"""
CoRankRLS: co-regularised least-squares ranking (Tsivtsivadze, Pahikkala, Boberg, Salakoski and Heskes, 2010).

One function for each of M views, close to the scores on scored rows and to each other on unjudged rows:

    min Σ_v [½ mean over scored pairs of ((y_i − y_j) − (f_v(x_i) − f_v(x_j)))² + alpha/2 ‖f_v‖²]
        + coupling · Σ_{v,u} mean over unjudged pairs of ((f_v(x_i) − f_v(x_j)) − (f_u(x_i) − f_u(x_j)))²

over the pairs of each query; the sum over (v, u) counts each pair of views twice, as in the paper. The paper uses sums
without the ½ and compares equal scores, too: with ``ties=True`` its λ is alpha · P and its ν is 2 coupling · P/U. P and
U are Σ_q n_q²/2 over scored and over unjudged rows: such means include pairs of a row with itself, so that a row of
weight 2 equals the row written twice. The prediction is the mean of the views. With r features or basis rows per view,
the solution costs O(M² r² (n + l) + M³ r³) for n scored and l unjudged rows, in one pass, and O(M² r²) memory.
Every further alpha costs O(M² r²), every further coupling O(M³ r³), without reading the rows again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import warn_of_no_agreement
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels.basis import Basis, FeatureMap, Terms
from corank.base.kernels.views import View, as_views, kernels_of
from corank.core.rows.access import plain
from corank.data.inputs import require_weight
from corank.data.ranking import RankingData
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Predictions, Relations
from corank.models.rls.frame import ComparedRows
from corank.models.rls.least_squares import EvaluateRidges, LeastSquares, raw_weights
from corank.models.rls.spectrum import Ridge, ridge_of, solve_one
from corank.models.rls.summary import PairSums
from corank.models.rls.systems import FeatureSystem, best, candidates, metric_for
from corank.parameters import Rules, integer, items, listing, none, number
from corank.progress import progress

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedCoRankRLS:
    """The fitted attributes of `CoRankRLS`."""

    alpha: float
    alpha_from: str
    coupling: float
    jitter: float
    rank: int
    views: list[View]
    view_coefs: list[Floats]
    view_bases: list[Basis | None]
    view_gap: float
    loo_scores: Floats | None = None


@shared_parameters
@dataclass(eq=False, repr=False)
class CoRankRLS(LeastSquares):
    """
    Least-squares rankers on several views, coupled on unjudged rows; the prediction is their mean.

    Parameters
    ----------
    views : int or list
        Number of views, to which the columns are assigned at random, or one entry for each view: its columns, a
        `Kernel`, or a `View` of columns, kernel and basis rows. Rows that are objects need ``View(None, function)``.
    coupling : float
        Weight of the squared difference of views, a mean over unjudged pairs summed over ordered pairs of views (the
        paper's ν is 2 coupling · P/U, see `corank.models.rls.co_rankrls`); ignored if `couplings` is given.
    alpha : float, optional
        Weight of ½‖f_v‖², relative to the mean loss of the compared pairs (the paper's λ is alpha times their weight).
        None chooses it as in `RankRLS`, from all views together.
    kernel : str, Kernel or callable
        Kernel of the views without their own, see `RankRLS`.
    alphas, couplings : array-like, optional
        Candidates for alpha and coupling. The grid is solved from one scan of the rows; the best under `metric` in
        exact leave-query-out is kept, the largest alpha and then coupling in a tie, as in `RankRLS`. The scored rows of
        a query are left out; its unjudged rows stay (see Notes).
    metric : str, optional
        The metric that chooses, see `RankRLS`.
    n_basis : int, optional
        Number of basis rows of each view, chosen for each view separately. None takes the columns of a linear view, and
        all rows for another kernel.
    basis : {"random", "kmeans++"} or array-like of int
        How basis rows are chosen among all rows, scored or not; or their numbers, for every view.
    {query_weight}
    ties : bool
        Whether two rows of equal score form a pair with target difference 0, as in the paper.
    {scale}
    {missing}
    {random_state}
    {verbose}

    Attributes
    ----------
    alpha_, coupling_ : float
        Weights of the penalty and of the agreement.
    alpha_from_ : str
        How alpha was chosen: "given", "pair differences", or the cross-validation and its metric.
    views_ : list of View
        The views, with the chosen parameters of their kernels.
    view_coefs_ : list of arrays
        Coefficients of each view: of all columns (linear kernel, 0 outside the view) or of its basis rows.
    view_bases_ : list of Basis or None
        Basis rows of each view; None if the kernel is linear.
    loo_scores_ : array of shape (n_couplings, n_alphas)
        Mean of `metric` over queries, each predicted by the model without its scored rows; differences below rounding
        errors are ties.
    view_gap_ : float
        Mean over unjudged pairs and pairs of views of the squared difference of margins; NaN without unjudged pairs.
    jitter_ : float
        Amount added to `alpha_` for numerical stability; the largest over all directions.
    rank_ : int
        Dimension of the system, over all views.
    column_scale_ : array of shape (n_features,)
        Factors of the columns (with `scale`).

    Notes
    -----
    The objective is Σ_v [½ Σ ω (t − m_v)² / Ω + alpha/2 ‖f_v‖²] + coupling Σ_{v,u} Σ ω' (m_v − m_u)² / Ω' for margins
    m_v = f_v(x_i) − f_v(x_j). ω, t and Ω are those of `RankRLS`. The second sum runs over all pairs of unjudged rows
    of a query, with ω' = c_q w_i w_j and Ω' = Σ_q c_q W_q² / 2 over unjudged rows, as with `ties`. Leave-query-out of a
    query whose pairs have the share s of Ω minimises the objective without these pairs, with coupling / (1 − s).

    Examples
    --------
    >>> from corank import CoRankRLS, make_ranking
    >>> from corank.data import mask_scores
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> y = mask_scores(problem.y, fraction=0.8, random_state=0)
    >>> model = CoRankRLS(views=2, coupling=0.1, random_state=0).fit(problem.X, y, qid=problem.qid)
    >>> model.predict_views(problem.X).shape, model.score(problem.X, problem.y, qid=problem.qid) > 0.7
    ((2000, 2), True)
    """

    _rules: ClassVar[Rules] = {
        **LeastSquares._rules,
        "views": integer(1) | items,
        "coupling": number(0),
        "couplings": listing | none,
    }

    _relations: ClassVar[Relations] = {
        "every view has a basis": lambda m: len(m.views_) == len(m.view_coefs_) == len(m.view_bases_) > 0,
    }
    _predictions: ClassVar[Predictions] = {
        "predict_views": lambda model, X: model.predict_views(X),
    }

    views: Any = 2
    coupling: float = 0.1
    alpha: float | None = None
    _: KW_ONLY
    kernel: Any = "linear"
    couplings: Any = None

    def _check_combinations(self) -> None:
        super()._check_combinations()
        if self.couplings is not None:
            candidates(self.couplings, "couplings")

    @property
    def _kernels(self) -> list[Any]:
        """Kernels of all views, as passed by the user."""
        return kernels_of(self.views, self.kernel)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedCoRankRLS:
        frame = ComparedRows.of(data, self.query_weight, self.ties)
        require_weight(frame.n_queries, "pair")
        summary = PairSums.of(self.choose_maps(data, frame, rng), data, self.query_weight, self.ties)
        warn_of_no_agreement(data, self.coupling if self.couplings is None else max(self.couplings))
        if self.alphas is None and self.couplings is None:
            return self.solve_summary(summary)
        if frame.n_queries < 2:
            raise InputError(
                "only one query has scored rows to compare, but leave-query-out needs two; pass alpha and coupling "
                "instead of alphas and couplings."
            )
        system, metric = FeatureSystem(data, frame, None, summary), metric_for(self.metric, frame)

        def evaluate(ridges: list[Ridge], alphas: Floats) -> Floats:
            with progress(int(frame.starts[-1]), "rows left out", self.verbose) as advance:
                held = system.views_out(ridges, alphas, advance)
            return np.stack([frame.scores(of_coupling, metric) for of_coupling in held])

        return self.solve_candidates(summary, metric, evaluate)

    def choose_maps(self, data: RankingData, frame: ComparedRows, rng: np.random.Generator) -> tuple[FeatureMap, ...]:
        """Return the feature map of each view, see `LeastSquares`."""
        self._require_rows(frame)
        rows, n_features = np.union1d(frame.rows, data.unscored_rows), None if data.X.ndim == 1 else data.n_features
        views, generators = self.split_views(n_features, rng, data.names)
        views = [view.fit(data.X, own, data.weights) for view, own in zip(views, generators, strict=True)]
        return tuple(
            self._map(view, data, rows, own, self.n_basis) for view, own in zip(views, generators, strict=True)
        )

    def split_views(
        self, n_features: int | None, rng: np.random.Generator, names: Sequence[str] | None = None
    ) -> tuple[list[View], list[np.random.Generator]]:
        """Return the views and a generator for each, see `LeastSquares`."""
        n_views = len(self.views) if isinstance(self.views, list | tuple) else int(self.views)
        for_views, *for_maps = rng.spawn(1 + n_views)
        return as_views(self.views, n_features, for_views, self.kernel, names), for_maps

    def solve_summary(self, summary: PairSums) -> FittedCoRankRLS:
        """Solve for one alpha and coupling, see `LeastSquares`."""
        equations = summary.equations(float(self.coupling))
        alpha, source = self._alpha(equations)
        w, jitter = solve_one(equations, alpha)
        return _fitted(summary, w, alpha=alpha, alpha_from=source, coupling=float(self.coupling), jitter=jitter)

    def solve_candidates(self, summary: PairSums, metric: str, evaluate: EvaluateRidges) -> FittedCoRankRLS:
        """Solve the grid and keep the best, see `LeastSquares`."""
        couplings = candidates([self.coupling] if self.couplings is None else self.couplings, "couplings")
        systems = [summary.equations(float(coupling)) for coupling in couplings]
        alpha, source = self._alpha(systems[0])
        alphas = np.array([alpha]) if self.alphas is None else candidates(self.alphas, "alphas")
        ridges = [ridge_of(system, alphas) for system in systems]
        scores = evaluate(ridges, alphas)
        c, a = best(scores, metric, alphas, couplings[:, None])
        return _fitted(
            summary, ridges[c].solve(alphas[[a]])[:, 0], alpha=float(alphas[a]), coupling=float(couplings[c]),
            alpha_from=source if self.alphas is None else f"leave-query-out {metric}", loo_scores=scores,
            jitter=ridges[c].jitter(float(alphas[a])),
        )  # fmt: skip

    def _score_rows(self, X: Any) -> NDArray[np.float64]:
        """Return the mean score over views."""
        return np.asarray(self._views_of(X).mean(axis=1))

    def predict_views(self, X: Any, *, prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score rows with each view, shape (n_rows, n_views)."""
        return self._add_prior(self._views_of(X), prior)

    def _views_of(self, X: Any) -> Floats:
        check_is_fitted(self)
        scaled, parts = self._scaled_rows(X), zip(self.view_bases_, self.view_coefs_, strict=True)
        return np.column_stack(
            [
                score_columns(plain(scaled), coef) if basis is None else basis.score(scaled, coef)
                for basis, coef in parts
            ]
        )

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        """Return the columns of all linear views together, and the basis rows of each other view."""
        chosen, share = self._checked_rows(X)[rows], 1.0 / len(self.view_coefs_)
        scaled, terms = self._scale_rows(chosen), []
        columns = [coef for basis, coef in zip(self.view_bases_, self.view_coefs_, strict=True) if basis is None]
        if columns:
            terms.append(Terms.of_columns(chosen, share * np.sum(columns, axis=0)))
        parts = enumerate(zip(self.view_bases_, self.view_coefs_, strict=True))
        return terms + [basis.terms(scaled, share * coef, v) for v, (basis, coef) in parts if basis is not None]


def _fitted(summary: PairSums, w: Floats, **facts: Any) -> FittedCoRankRLS:
    """Return the record of the coefficients of each view."""
    coefs, bases = [], []
    for phi, block in zip(summary.maps, summary.blocks, strict=True):
        own, basis = phi.coefficients(w[block]), phi.basis
        if phi.view.kernel.is_linear and summary.n_features is not None:
            own, basis = raw_weights(own, phi.view, summary.factors, summary.n_features), None
        coefs.append(own)
        bases.append(basis)
    return FittedCoRankRLS(
        views=[phi.view for phi in summary.maps], view_coefs=coefs, view_bases=bases, view_gap=summary.gap(w),
        rank=len(w), **facts,
    )  # fmt: skip
