"""
ViewRankRLS: RankRLS on several views of a row, whose weights are learnt.

    K = Σ_v c_v K_v / s_v,   c_v ≥ 0,   Σ_v c_v = 1

s_v is the mean squared distance of compared rows in view v, so that equal weights let every view speak as loudly,
however many columns it has and in whatever units. From equal weights on, one weight at a time is set to zero, divided
or multiplied by three, as long as that is better under `metric`, the best alpha taken for each: a useless view of small
weight is like a larger alpha, and would be kept for that. A candidate is one decomposition, O(n³), O(d³) or O(r³), and
what the metric costs (see `corank.rls.rankrls`); a step has 3 M of them. What was found is drawn back to equal weights,
c ← (m c + 5 · 1/M) / (m + 5) for m differences that the judged rows leave free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.scaled import ScaledRows, factors_of, plain
from corank.data.problem.inputs import require_weight
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.held_out import HeldOut
from corank.kernels import FeatureMap, SumKernel
from corank.kernels.views import View, as_views, kernels_of
from corank.pairwise import pair_squares
from corank.parameters import Rules, items, whole
from corank.progress import progress
from corank.rls.frame import Frame
from corank.rls.judge import EVIDENCE, best, candidates, direction, metric_for
from corank.rls.rankrls import FittedRankRLS, RankRLS
from corank.rls.summary import Summary
from corank.solvers.penalty import freedom

Floats = NDArray[np.float64]
Fit = Callable[[Floats, Floats | None], FittedRankRLS]

# what the weight of one view is multiplied by in a step of the search, and the most steps
_FACTORS, _STEPS = (0.0, 1 / 3, 3.0), 8
# what better must be better by, beside rounding errors
_GAIN = 1e-9
# multiples of the closed rule's alpha that are judged where no alphas are given
_AROUND = np.array([0.1, 1.0, 10.0, 100.0])
# differences that equal weights count as
_PRIOR = 5.0


@dataclass(frozen=True, eq=False)
class FittedViewRankRLS(FittedRankRLS):
    """What `ViewRankRLS` learns, see there; each field is an attribute of the model."""

    views: list[View] | None = None
    view_weights: Floats | None = None


class ViewRankRLS(RankRLS):
    """
    Least-squares ranker on several views of a row, weighted so that a useless view costs little.

    Unlike `CoRankRLS` it learns one function of all views together, and looks at no unscored row.

    Parameters
    ----------
    views : int or list
        Number of views that the columns are dealt to at random, or one entry for each view: its columns, a `Kernel`,
        or a `View` of columns and kernel. Rows that are objects need ``View(None, function)`` for each.
    alpha : float, optional
        Weight of the penalty, as in `RankRLS`, beside a kernel whose compared rows have a mean squared distance of 1.
        None chooses among `alphas`.
    kernel : str, Kernel or callable
        Kernel of the views that name none, see `RankRLS`; not "precomputed".
    alphas : array-like, optional
        Candidates for alpha, judged with each candidate for the weights; None takes 0.1, 1, 10 and 100 times what
        `RankRLS` would take.
    metric : str, optional
        What chooses weights and alpha, see `RankRLS`. None is disagreement in exact leave-query-out where there are
        several queries, and the evidence for a single one: its few rows, left out, hardly tell views apart.
    n_basis : int, optional
        Number of basis rows of the sparse form; None solves the dense dual, or the primal where all views are linear.
    basis : {"random", "kmeans++"} or array-like of int
        How basis rows are chosen among the compared rows, or which they are.
    query_weight : {"pairs", "equal", "rows"}
        Every pair counts the same, every query does, or every row does.
    ties : bool
        Whether two rows of equal score make a pair, asked to differ by 0.
    scale : bool
        Whether columns are divided by their deviation inside queries before learning; `coef_` is that of the columns
        as given.
    random_state : int, RandomState or None
        Seed of the views, the basis and a kernel's median.
    verbose : bool
        Whether to show how many weights were tried, of the most there can be, on a terminal or in a notebook.

    Attributes
    ----------
    views_ : list of View
        The views, their kernels' parameters resolved.
    view_weights_ : array of shape (n_views,)
        c, adding up to 1.
    alpha_ : float
        The weight of the penalty that was used.
    alpha_from_ : str
        What it was chosen from: "largest evidence", or what was left out and what judged.
    coef_ : array of shape (n_features,)
        Weights of the columns (linear views without basis rows only).
    dual_coef_ : array of shape (r,)
        Coefficients of the basis rows (other views).
    basis_ : Basis
        The rows that `dual_coef_` belongs to.
    kernel_ : Kernel
        The sum of the views' kernels, a `corank.kernels.SumKernel`; linear where all of them are.
    alpha_path_ : array of shape (n_alphas, n_features) or (n_alphas, r)
        `coef_` or `dual_coef_` for each alpha, beside the weights that were chosen.
    loo_scores_ : array of shape (n_alphas,)
        What the metric said of each alpha beside the weights that were chosen, as in `RankRLS`.
    jitter_ : float
        What was added to `alpha_` because rounding errors would drown it.
    rank_ : int
        Number of directions that were fitted: scored rows, columns, or the rank of the basis.
    column_scale_ : array of shape (n_features,)
        What columns were multiplied by (with `scale`), before the views were weighted.

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

    _rules: ClassVar[Rules] = {**RankRLS._rules, "views": whole(1) | items}

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
        query_weight: str = "pairs",
        ties: bool = False,
        scale: bool = True,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            alpha, kernel, alphas=alphas, metric=metric, n_basis=n_basis, basis=basis, query_weight=query_weight,
            ties=ties, scale=scale, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.views = views

    @property
    def _kernels(self) -> list[Any]:
        """The kernels of all views, as given."""
        return kernels_of(self.views, self.kernel)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedViewRankRLS:
        for_views, for_kernels, for_fits = rng.spawn(3)
        views = as_views(self.views, None if data.X.ndim == 1 else data.n_features, for_views, self.kernel)
        dice = for_kernels.spawn(len(views))
        views = [view.fit(data.X, own, data.weights) for view, own in zip(views, dice, strict=True)]
        frame, equal = Frame.of(data, self.query_weight, self.ties), np.full(len(views), 1 / len(views))
        require_weight(frame.n_queries, "pair")
        metric = metric_for(self.metric or ("disagreement" if frame.n_queries > 1 else EVIDENCE), frame)
        fit, sizes = self._maker(views, data, metric, int(for_fits.integers(2**63)))
        if (sizes > 0.0).any():  # a view in which no compared rows differ has nothing to say
            equal = (sizes > 0.0) / np.count_nonzero(sizes > 0.0)
        alphas = self._candidates(fit, equal)

        def judge(c: Floats) -> float:
            scores = fit(c, alphas).loo_scores
            advance(1)
            assert scores is not None
            return direction(metric) * float(scores[best(scores, metric)])

        m = freedom(data, self.ties).differences
        with progress(1 + _STEPS * len(_FACTORS) * len(views), "weights tried", self.verbose) as advance:
            c = (m * climb(judge, equal) + _PRIOR * equal) / (m + _PRIOR)
        return FittedViewRankRLS(**vars(fit(c, alphas)), views=views, view_weights=c)

    def _candidates(self, fit: Fit, equal: Floats) -> Floats:
        if self.alphas is not None:
            return candidates(self.alphas, "alphas")
        return np.array([self.alpha], dtype=np.float64) if self.alpha is not None else fit(equal, None).alpha * _AROUND

    def _maker(self, views: list[View], data: RankingData, metric: str, seed: int) -> tuple[Fit, Floats]:
        """
        Return what fits a RankRLS to weighted views, for given alphas or by the closed rule, with the same dice.

        Beside it the sizes of the views, 0 where no compared rows differ.
        """
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "views"}

        def fit(kernel: Any, data: RankingData, alphas: Floats | None) -> FittedRankRLS:
            own = {"alpha": None, "kernel": kernel, "alphas": alphas, "metric": metric, "verbose": False}
            model = RankRLS(**{**params, **own})
            return model._fit(data, None, np.random.default_rng(seed))

        seen = [slice(None) if view.columns is None else view.columns for view in views]
        if all(view.kernel.is_linear for view in views):
            squares, total = pair_squares(data, ties=self.ties, query_weight=self.query_weight)
            sizes = np.array([squares[columns].sum() / total for columns in seen])
            rows, factors = plain(data.X), factors_of(data.X)

            def of_columns(c: Floats, alphas: Floats | None) -> FittedRankRLS:
                share = np.zeros(data.n_features)
                for columns, own in zip(seen, _over(c, sizes), strict=True):
                    share[columns] += own
                scaled = ScaledRows(rows, np.sqrt(share) if factors is None else np.sqrt(share) * factors)
                return fit("linear", replace(data, X=scaled), alphas)

            return of_columns, sizes
        kernels = tuple(view.kernel for view in views)
        columns = tuple(None if view.columns is None else tuple(view.columns.tolist()) for view in views)
        # the closed rule's alpha is the mean squared distance, but for a constant
        singles = [SumKernel((one,), (1.0,), (own,)) for one, own in zip(kernels, columns, strict=True)]
        closed = np.array([fit(one, data, None).alpha for one in singles])
        return lambda c, alphas: fit(
            SumKernel(kernels, tuple(_over(c, closed).tolist()), columns), data, alphas
        ), closed

    def _maps(self, data: RankingData, frame: Frame, rng: np.random.Generator) -> tuple[FeatureMap, ...]:
        raise _no_summary()

    def _solve(self, summary: Summary) -> FittedRankRLS:
        raise _no_summary()


def climb(judge: Callable[[Floats], float], here: Floats) -> Floats:
    """
    Search weights of views by steps that change one of them; a weight of zero stays.

    judge: says how good weights are; they add up to 1.
    here: the first weights.
    Returns: weights that no step betters, or those after eight steps.

    >>> climb(lambda c: -abs(c[0] - 0.75), np.array([0.5, 0.5])).tolist()
    [0.75, 0.25]
    """
    value, seen = judge(here), {here.round(9).tobytes()}
    for _ in range(_STEPS):
        fresh = [c for c in _steps(here) if c.round(9).tobytes() not in seen]
        seen |= {c.round(9).tobytes() for c in fresh}
        values = [judge(c) for c in fresh]
        at = int(np.argmax(values)) if values else -1
        if not values or not values[at] > value + _GAIN * (1.0 + abs(value)):
            break
        here, value = fresh[at], values[at]
    return here


def _no_summary() -> InputError:
    return InputError("weights of views are chosen by rows, which a summary does not hold; use fit, or RankRLS.")


def _steps(c: Floats) -> Iterator[Floats]:
    for v in range(len(c)):
        for factor in _FACTORS:
            changed = np.where(np.arange(len(c)) == v, factor, 1.0) * c
            if changed.any():
                yield changed / changed.sum()


def _over(c: Floats, sizes: Floats) -> Floats:
    """Divide weights by sizes; a view in which no compared rows differ says nothing."""
    return np.divide(c, sizes, out=np.zeros_like(c), where=sizes > 0.0)
