"""
CoRankRLS: co-regularised least-squares ranking (Tsivtsivadze, Pahikkala, Boberg, Salakoski and Heskes, 2010).

One function for each of M views, close to the scores on scored rows and to each other on unscored rows:

    min Σ_v [½ mean over scored pairs of ((y_i − y_j) − (f_v(x_i) − f_v(x_j)))² + alpha/2 ‖f_v‖²]
        + coupling · Σ_{v,u} mean over unscored pairs of ((f_v(x_i) − f_v(x_j)) − (f_u(x_i) − f_u(x_j)))²

over the pairs of each query; the sum over (v, u) counts each pair of views twice, as in the paper. The paper takes sums
without the ½ and compares equal scores too: with ``ties=True`` its λ is alpha · P and its ν is 2 coupling · P/U. P and
U are Σ_q n_q²/2 over scored and over unscored rows: such means count a row as a pair with itself, so that a row of
weight 2 is the row written twice. The prediction is the mean of the views. With r features or basis rows a view, the
solution costs O(M² r² (n + l) + M³ r³) for n scored and l unscored rows, in one pass over them and O(M² r²) memory;
every further alpha costs O(M² r²), every further coupling O(M³ r³), and neither sees the rows again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from corank.core.rows.scaled import plain
from corank.data.problem.inputs import require_weight
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.advice import warn_of_no_agreement
from corank.estimator.held_out import HeldOut
from corank.kernels import Basis, FeatureMap, Terms, score_columns
from corank.kernels.views import View, as_views, kernels_of
from corank.parameters import Rules, items, listing, none, number, whole
from corank.progress import progress
from corank.rls.frame import Frame
from corank.rls.judge import best, candidates, metric_for
from corank.rls.least_squares import Judge, LeastSquares, raw_weights
from corank.rls.spectrum import Ridge, ridge_of, solve_one
from corank.rls.summary import Summary
from corank.rls.systems import FeatureSystem

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedCoRankRLS:
    """What `CoRankRLS` learns, see there; each field is an attribute of the model."""

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


class CoRankRLS(LeastSquares):
    """
    Rankers on several views that agree on unscored rows, found by one linear system; the prediction is their mean.

    Parameters
    ----------
    views : int or list
        Number of views that the columns are dealt to at random, or one entry for each view: its columns, a `Kernel`,
        or a `View` of columns, kernel and basis rows. Rows that are objects need ``View(None, function)`` for each.
    coupling : float
        Weight of the views' squared difference, a mean over unscored pairs summed over ordered pairs of views (the
        paper's ν is 2 coupling · P/U, see `corank.rls.co_rankrls`); ignored beside `couplings`.
    alpha : float, optional
        Weight of ½‖f_v‖² beside the mean loss of the compared pairs (the paper's λ is alpha times their weight). None
        chooses as in `RankRLS`, by all views side by side.
    kernel : str, Kernel or callable
        Kernel of the views that name none, see `RankRLS`.
    alphas, couplings : array-like, optional
        Candidates for alpha and coupling: the whole grid is solved from one pass over the rows, and the best under
        `metric` in exact leave-query-out is kept. A query's scored rows are left out, its unscored rows stay, and
        agreement keeps its weight beside the sums of the others.
    metric : str, optional
        What chooses among them, see `RankRLS`.
    n_basis : int, optional
        Number of basis rows of each view, chosen for each view anew; None takes a linear view's columns, else all rows.
    basis : {"random", "kmeans++"} or array-like of int
        How basis rows are chosen among all rows, scored or not; or which they are, in every view.
    query_weight : {"pairs", "equal", "rows"}
        Every pair counts the same (the paper's), every query does, or every row; scored and unscored.
    ties : bool
        Whether two rows of equal score make a pair, asked to differ by 0. True is the paper's form.
    scale : bool
        Whether columns are divided by their deviation inside queries before learning; coefficients of columns are
        those of the columns as given.
    random_state : int, RandomState or None
        Seed of the views, the bases and a kernel's median.
    verbose : bool
        Whether to show how far leaving out has come, on a terminal or in a notebook.

    Attributes
    ----------
    alpha_, coupling_ : float
        The weights that were used.
    alpha_from_ : str
        What `alpha_` was chosen from: "given", "pair differences", or what was left out and what judged.
    views_ : list of View
        The views, their kernels' parameters resolved.
    view_coefs_ : list of arrays
        Coefficients of each view: of all columns (linear kernel, 0 where it sees nothing) or of its basis rows.
    view_bases_ : list of Basis or None
        Basis rows of each view; None where the kernel is linear.
    loo_scores_ : array of shape (n_couplings, n_alphas)
        Mean of `metric` over the queries, each predicted by the model that did not see its scored rows; predictions
        nearer than their rounding errors are ties.
    view_gap_ : float
        Mean over unscored pairs and pairs of views of the squared difference of the views' margins; NaN without any.
    jitter_ : float
        What was added to `alpha_` because rounding errors would drown it, in the direction where it was most.
    rank_ : int
        Number of directions that were fitted, over all views.
    column_scale_ : array of shape (n_features,)
        What columns were multiplied by (with `scale`).

    Examples
    --------
    >>> from corank import CoRankRLS, mask_scores, make_ranking
    >>> problem = make_ranking(100, 20, random_state=0)
    >>> y = mask_scores(problem.y, fraction=0.8, random_state=0)
    >>> model = CoRankRLS(views=2, coupling=0.1, random_state=0).fit(problem.X, y, qid=problem.qid)
    >>> model.predict_views(problem.X).shape, model.score(problem.X, problem.y, qid=problem.qid) > 0.7
    ((2000, 2), True)
    """

    _rules: ClassVar[Rules] = {
        **LeastSquares._rules,
        "views": whole(1) | items,
        "coupling": number(0),
        "couplings": listing | none,
    }

    def __init__(
        self,
        views: Any = 2,
        coupling: float = 0.1,
        alpha: float | None = None,
        *,
        kernel: Any = "linear",
        alphas: Any = None,
        couplings: Any = None,
        metric: str | None = None,
        n_basis: int | None = None,
        basis: Any = "random",
        query_weight: str = "pairs",
        ties: bool = False,
        scale: bool = True,
        random_state: Any = None,
        verbose: bool = False,
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
        self.ties = ties
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    def _check_combinations(self) -> None:
        super()._check_combinations()
        if self.couplings is not None:
            candidates(self.couplings, "couplings")

    @property
    def _kernels(self) -> list[Any]:
        """The kernels of all views, as given."""
        return kernels_of(self.views, self.kernel)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedCoRankRLS:
        frame = Frame.of(data, self.query_weight, self.ties)
        require_weight(frame.n_queries, "pair")
        summary = Summary.of(self._maps(data, frame, rng), data, self.query_weight, self.ties)
        warn_of_no_agreement(data, self.coupling if self.couplings is None else max(self.couplings))
        if self.alphas is None and self.couplings is None:
            return self._solve(summary)
        if frame.n_queries < 2:
            raise InputError(
                "alphas and couplings are chosen by leaving out one query at a time, and only one has scored rows to "
                "compare; pass alpha and coupling."
            )
        system, metric = FeatureSystem(data, frame, None, summary), metric_for(self.metric, frame)

        def judge(ridges: list[Ridge], alphas: Floats) -> Floats:
            with progress(int(frame.starts[-1]), "rows left out", self.verbose) as advance:
                held = system.views_out(ridges, alphas, advance)
            return np.stack([frame.scores(one, metric) for one in held])

        return self._solve_judged(summary, metric, judge)

    def _maps(self, data: RankingData, frame: Frame, rng: np.random.Generator) -> tuple[FeatureMap, ...]:
        """One map for each view, each with its own dice."""
        self._require_rows(frame)
        rows, n_features = np.union1d(frame.rows, data.unscored_rows), None if data.X.ndim == 1 else data.n_features
        views, for_maps = self._dealt(n_features, rng)
        views = [view.fit(data.X, dice, data.weights) for view, dice in zip(views, for_maps, strict=True)]
        return tuple(self._map(view, data, rows, dice) for view, dice in zip(views, for_maps, strict=True))

    def _dealt(self, n_features: int | None, rng: np.random.Generator) -> tuple[list[View], list[np.random.Generator]]:
        """The views, and dice for each of them."""
        n_views = len(self.views) if isinstance(self.views, list | tuple) else int(self.views)
        for_views, *for_maps = rng.spawn(1 + n_views)
        return as_views(self.views, n_features, for_views, self.kernel), for_maps

    def _solve(self, summary: Summary) -> FittedCoRankRLS:
        equations = summary.equations(float(self.coupling))
        alpha, source = self._alpha(equations)
        w, jitter = solve_one(equations, alpha)
        return _fitted(summary, w, alpha=alpha, alpha_from=source, coupling=float(self.coupling), jitter=jitter)

    def _solve_judged(self, summary: Summary, metric: str, judge: Judge) -> FittedCoRankRLS:
        couplings = candidates([self.coupling] if self.couplings is None else self.couplings, "couplings")
        systems = [summary.equations(float(one)) for one in couplings]
        alpha, source = self._alpha(systems[0])
        alphas = np.array([alpha]) if self.alphas is None else candidates(self.alphas, "alphas")
        ridges = [ridge_of(one, alphas) for one in systems]
        scores = judge(ridges, alphas)
        c, a = best(scores, metric)
        return _fitted(
            summary, ridges[c].solve(alphas[[a]])[:, 0], alpha=float(alphas[a]), coupling=float(couplings[c]),
            alpha_from=source if self.alphas is None else f"leave-query-out {metric}", loo_scores=scores,
            jitter=ridges[c].jitter(float(alphas[a])),
        )  # fmt: skip

    def _score_rows(self, X: Any) -> NDArray[np.float64]:
        """Return the mean of the views' scores."""
        return np.asarray(self._views_of(X).mean(axis=1))

    def predict_views(self, X: Any, *, prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """
        Score rows with each view.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame or sequence of objects
            The rows.
        prior : array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        array of shape (n_rows, n_views)
            One column of scores for each view.
        """
        return self._add_prior(self._views_of(X), prior)

    def _views_of(self, X: Any) -> Floats:
        check_is_fitted(self)
        seen, parts = self._scaled_rows(X), zip(self.view_bases_, self.view_coefs_, strict=True)
        return np.column_stack(
            [score_columns(plain(seen), coef) if basis is None else basis.score(seen, coef) for basis, coef in parts]
        )

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        """Columns of all linear views together, and the basis rows of each other view."""
        chosen, share = self._checked_rows(X)[rows], 1.0 / len(self.view_coefs_)
        seen, found = self._scale_rows(chosen), []
        columns = [coef for basis, coef in zip(self.view_bases_, self.view_coefs_, strict=True) if basis is None]
        if columns:
            found.append(Terms.of_columns(chosen, share * np.sum(columns, axis=0)))
        parts = enumerate(zip(self.view_bases_, self.view_coefs_, strict=True))
        return found + [basis.terms(seen, share * coef, v) for v, (basis, coef) in parts if basis is not None]


def _fitted(summary: Summary, w: Floats, **found: Any) -> FittedCoRankRLS:
    """Give every view the coefficients of its columns or basis rows."""
    coefs, bases = [], []
    for phi, block in zip(summary.maps, summary.blocks, strict=True):
        own, basis = phi.coefficients(w[block]), phi.basis
        if phi.view.kernel.is_linear and summary.n_features is not None:
            own, basis = raw_weights(own, phi.view, summary.factors, summary.n_features), None
        coefs.append(own)
        bases.append(basis)
    return FittedCoRankRLS(
        views=[phi.view for phi in summary.maps], view_coefs=coefs, view_bases=bases, view_gap=summary.gap(w),
        rank=len(w), **found,
    )  # fmt: skip
