"""
ViewRankRLS: RankRLS on several views of a row with learnt weights.

    K = Σ_v c_v K_v / s_v,   c_v ≥ 0,   Σ_v c_v = 1

s_v is the mean squared distance of compared rows in view v, k_v(x, x) + k_v(x', x') − 2 k_v(x, x') averaged with the
weights of the loss of `RankRLS`, so that with equal weights every view has the same influence, for any number and units
of its columns, and alpha belongs to a kernel of mean squared distance 1. Starting from equal weights, one weight at a
time is set to zero, divided or multiplied by three, as long as `metric` improves, with the best alpha for each
candidate: otherwise a useless view of small weight would act like a larger alpha and be kept. A candidate costs one
decomposition, O(n³), O(d³) or O(r³), and the metric (see `corank.models.rls.rankrls`); a step has 3 M candidates. The
weights are shrunk towards equal ones, c ← (m c + 5 · 1/M) / (m + 5), with m the number of free differences of judged
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels import SumKernel
from corank.base.kernels.basis import FeatureMap
from corank.base.kernels.views import View, as_views, kernels_of
from corank.base.pairs.losses import drawn_weight
from corank.base.pairs.moments import pair_squares
from corank.base.solvers.choice import choose
from corank.base.solvers.penalty import alpha_of, freedom
from corank.core.rows.access import ScaledRows, factors_of, plain
from corank.data.inputs import require_weight
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.fitted import Shapes
from corank.models.rls.frame import ComparedRows
from corank.models.rls.least_squares import LeastSquares
from corank.models.rls.rankrls import FittedRankRLS, RankRLS
from corank.models.rls.summary import PairSums
from corank.models.rls.systems import EVIDENCE, best, candidates, direction, metric_for
from corank.parameters import Missing, QueryWeight, Rules, integer, items
from corank.progress import progress

Floats = NDArray[np.float64]
Fit = Callable[[Floats, Floats | None], FittedRankRLS]

# factors of the weight of one view in a step of the search, and largest number of steps
_FACTORS, _STEPS = (0.0, 1 / 3, 3.0), 8
# smallest relative gain that counts as an improvement
_GAIN = 1e-9
# multiples of the alpha of the closed rule, if no alphas are given
_AROUND = np.array([0.1, 1.0, 10.0, 100.0])
# number of differences that equal weights are worth
_PRIOR = 5.0


@dataclass(frozen=True, eq=False)
class FittedViewRankRLS(FittedRankRLS):
    """The fitted attributes of `ViewRankRLS`."""

    views: list[View] | None = None
    view_weights: Floats | None = None


@shared_parameters
class ViewRankRLS(RankRLS):
    """
    Least-squares ranker on several views of a row, weighted so that a useless view does little harm.

    Unlike `CoRankRLS` it learns one function of all views and does not use unjudged rows.

    Parameters
    ----------
    views : int or list
        Number of views, to which the columns are assigned at random, or one entry for each view: its columns, a
        `Kernel`, or a `View` of columns and kernel. Rows that are objects need ``View(None, function)``.
    alpha : float, optional
        Weight of the penalty, as in `RankRLS`, for a kernel whose compared rows have a mean squared distance of 1.
        None chooses among `alphas`.
    kernel : str, Kernel or callable
        Kernel of the views without their own, see `RankRLS`; not "precomputed".
    alphas : array-like, optional
        Candidates for alpha, evaluated with each candidate for the weights. None takes 0.1, 1, 10 and 100 times the
        alpha of `RankRLS`.
    metric : str, optional
        The metric that chooses weights and alpha, see `RankRLS`. None means disagreement in exact leave-query-out for
        several queries, and the evidence for a single one, whose few left-out rows hardly distinguish views.
    n_basis : int, optional
        Number of basis rows of the sparse form. None solves the dense dual, or the primal if all views are linear.
    {basis}
    {query_weight}
    ties : bool
        Whether two rows of equal score form a pair with target difference 0.
    {scale}
    {missing}
    {random_state}
    {verbose}

    Attributes
    ----------
    views_ : list of View
        The views, with the chosen parameters of their kernels.
    view_weights_ : array of shape (n_views,)
        Weights c, with sum 1.
    kernel_ : Kernel
        Sum of the kernels of the views, a `corank.base.kernels.SumKernel`; linear if all of them are.
    alpha_, alpha_from_, coef_, dual_coef_, basis_, alpha_path_, loo_scores_, jitter_, rank_
        As in `RankRLS`, with the chosen weights; `alpha_from_` may be "largest evidence".
    column_scale_ : array of shape (n_features,)
        Factors of the columns (with `scale`), before the views are weighted.

    Examples
    --------
    >>> import numpy as np
    >>> from corank import ViewRankRLS, make_ranking
    >>> problem = make_ranking(20, 10, n_views=1, random_state=0)
    >>> noise = np.random.default_rng(0).normal(size=(200, 30))
    >>> model = ViewRankRLS([slice(10), slice(10, 40)]).fit(np.hstack([problem.X, noise]), problem.y, qid=problem.qid)
    >>> bool(model.view_weights_[0] > 0.8)
    True
    """

    _rules: ClassVar[Rules] = {**LeastSquares._rules, "views": integer(1) | items}

    _shapes: ClassVar[Shapes] = {"view_weights_": ("views",)}

    def __init__(
        self,
        views: Any = 2,
        alpha: float | None = None,
        kernel: Any = "linear",
        *,
        alphas: Any = None,
        metric: str | None = None,
        n_basis: int | None = None,
        basis: Any = "random",
        query_weight: QueryWeight = "pairs",
        ties: bool = False,
        scale: bool = True,
        missing: Missing = "mean",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            alpha, kernel, alphas=alphas, metric=metric, n_basis=n_basis, basis=basis, query_weight=query_weight,
            ties=ties, scale=scale, missing=missing, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.views = views

    @property
    def _kernels(self) -> list[Any]:
        """Kernels of all views, as passed by the user."""
        return kernels_of(self.views, self.kernel)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedViewRankRLS:
        for_views, for_kernels, for_fits = rng.spawn(3)
        n_features = None if data.X.ndim == 1 else data.n_features
        views = as_views(self.views, n_features, for_views, self.kernel, data.names)
        generators = for_kernels.spawn(len(views))
        views = [view.fit(data.X, own, data.weights) for view, own in zip(views, generators, strict=True)]
        frame, equal = ComparedRows.of(data, self.query_weight, self.ties), np.full(len(views), 1 / len(views))
        require_weight(frame.n_queries, "pair")
        metric = metric_for(self.metric or ("disagreement" if frame.n_queries > 1 else EVIDENCE), frame)
        fit, sizes = self._maker(views, data, metric, int(for_fits.integers(2**63)))
        if (sizes > 0.0).any():  # a view in which no compared rows differ is ignored
            equal = (sizes > 0.0) / np.count_nonzero(sizes > 0.0)
        alphas = self._candidates(fit, equal)

        def quality(c: Floats) -> float:
            scores = fit(c, alphas).loo_scores
            advance(1)
            assert scores is not None
            return direction(metric) * float(scores[best(scores, metric)])

        m = freedom(data, self.ties).differences
        with progress(1 + _STEPS * len(_FACTORS) * len(views), "weights tried", self.verbose) as advance:
            c = (m * climb(quality, equal) + _PRIOR * equal) / (m + _PRIOR)
        return FittedViewRankRLS(**vars(fit(c, alphas)), views=views, view_weights=c)

    def _candidates(self, fit: Fit, equal: Floats) -> Floats:
        if self.alphas is not None:
            return candidates(self.alphas, "alphas")
        return np.array([self.alpha], dtype=np.float64) if self.alpha is not None else fit(equal, None).alpha * _AROUND

    def _maker(self, views: list[View], data: RankingData, metric: str, seed: int) -> tuple[Fit, Floats]:
        """
        Return a function that fits RankRLS to weighted views, for given alphas or by the closed rule, with one seed.
        """
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "views"}

        def fit(kernel: Any, data: RankingData, alphas: Floats | None) -> FittedRankRLS:
            own = {"alpha": None, "kernel": kernel, "alphas": alphas, "metric": metric, "verbose": False}
            model = RankRLS(**{**params, **own})
            return model._fit(data, None, np.random.default_rng(seed))

        chosen = [slice(None) if view.columns is None else view.columns for view in views]
        if all(view.kernel.is_linear for view in views):
            squares, total = pair_squares(data, ties=self.ties, query_weight=self.query_weight)
            if self.ties and data.pairs is None:
                total = drawn_weight(data, self.query_weight)
            sizes = np.array([squares[columns].sum() / total for columns in chosen])
            rows, factors = plain(data.X), factors_of(data.X)

            def of_columns(c: Floats, alphas: Floats | None) -> FittedRankRLS:
                share = np.zeros(data.n_features)
                for columns, own in zip(chosen, _over(c, sizes), strict=True):
                    share[columns] += own
                scaled = ScaledRows(rows, np.sqrt(share) if factors is None else np.sqrt(share) * factors)
                return fit("linear", replace(data, X=scaled), alphas)

            return of_columns, sizes
        kernels = tuple(view.kernel for view in views)
        columns = tuple(None if view.columns is None else tuple(view.columns.tolist()) for view in views)
        # the alpha of the closed rule is the mean squared distance times a constant
        singles = [SumKernel((kernel,), (1.0,), (own,)) for kernel, own in zip(kernels, columns, strict=True)]
        closed = np.array([fit(kernel, data, None).alpha for kernel in singles])
        sizes = closed / alpha_of(1.0, 0, freedom(data, self.ties))
        return lambda c, alphas: fit(SumKernel(kernels, tuple(_over(c, sizes).tolist()), columns), data, alphas), sizes

    def choose_maps(self, data: RankingData, frame: ComparedRows, rng: np.random.Generator) -> tuple[FeatureMap, ...]:
        """Raise: there is no summary of learnt weights."""
        raise _no_summary()

    def solve_summary(self, summary: PairSums) -> FittedRankRLS:
        """Raise: there is no summary of learnt weights."""
        raise _no_summary()


def climb(quality: Callable[[Floats], float], weights: Floats) -> Floats:
    """Search weights of views by steps that change one of them; a weight of zero stays zero."""
    value, tried = quality(weights), {weights.round(9).tobytes()}
    for _ in range(_STEPS):
        fresh = [c for c in _steps(weights) if c.round(9).tobytes() not in tried]
        tried |= {c.round(9).tobytes() for c in fresh}
        values = [quality(c) for c in fresh]
        index = choose(values)[0] if values else -1
        if not values or not values[index] > value + _GAIN * (1.0 + abs(value)):
            break
        weights, value = fresh[index], values[index]
    return weights


def _no_summary() -> InputError:
    return InputError("ViewRankRLS chooses weights from rows, which a summary does not hold; use fit, or RankRLS.")


def _steps(c: Floats) -> Iterator[Floats]:
    for v in range(len(c)):
        for factor in _FACTORS:
            changed = np.where(np.arange(len(c)) == v, factor, 1.0) * c
            if changed.any():
                yield changed / changed.sum()


def _over(c: Floats, sizes: Floats) -> Floats:
    """Divide weights by sizes; 0 for a view in which no compared rows differ."""
    return np.divide(c, sizes, out=np.zeros_like(c), where=sizes > 0.0)
