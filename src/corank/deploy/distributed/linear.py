"""
Fit SPD, CRR and LCRA to parts: by one linear system, by Newton's method, or by averaged stochastic runs.

The runs are independent, one per part and seeded by it (Zinkevich, Weimer, Li and Smola, Parallelized stochastic
gradient descent, NIPS 2010). A run uses its own part only, so the mean of the weights is not the optimum over all rows.
A run is weighted by its pairs, or by its rows with mix=1. The scale of columns, alpha, views and the range of scores
are those of all parts.

Smooth losses over parts: the truncated Newton method, with gradients and Hessian products summed over queries.

    mix · mean_D ℓ(y, w·x + b) + (1 − mix) · mean_P ℓ(t(y_a − y_b), w·(a − b)) + alpha/2 ‖w‖²

Each gradient and each Hessian product is one pass, which sends d numbers to every part and receives d. On a cluster the
rows stay in the memory of the workers; on one machine each pass reads them again. Some tens of passes reach the same
optimum as one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from corank.base.contract import warn_of_useless_coupling
from corank.base.kernels.views import View
from corank.base.pairs import Moments
from corank.base.pairs.factors import weigh_queries
from corank.base.pairs.losses import Loss
from corank.base.solvers import squared_views
from corank.base.solvers.comparisons import LinearMap
from corank.base.solvers.newton import Affine, Evaluate, LinePoint, Point, SmoothObjective, minimise
from corank.base.solvers.penalty import alpha_of
from corank.base.solvers.smooth_losses import block_of, moment_preconditioner, pair_loss, row_loss
from corank.base.solvers.solution import (
    Range,
    Solution,
    in_unit,
    ordered,
    require_numbers,
    require_products,
    unit_range,
)
from corank.core.rows.scaled import ScaledRows
from corank.data.inputs import require_weight
from corank.data.ranking import RankingData
from corank.deploy.distributed.parts import Parts
from corank.deploy.distributed.sums import Sums, SumSettings, sum_part
from corank.deploy.distributed.tasks import WholeQueries
from corank.errors import InputError
from corank.models.linear.base import LinearModel, one_or_each
from corank.models.linear.lcra import LCRA, LinearViewsModel
from corank.parameters import rng_of
from corank.progress import progress

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PartLoss:
    """A smooth loss and where to evaluate it: the settings of a pass."""

    loss: str  # loss, mix, query_weight: as in the formula
    mix: float
    query_weight: str
    has_intercept: bool  # whether b is learnt
    factors: Floats  # factors of the columns
    limits: Range | None  # scores that are mapped to 0 and 1, for a loss that learns shares
    pair_weight: float  # pair_weight, n_scored: denominators of the means
    n_scored: int
    theta: Floats  # weights and intercept
    direction: Floats | None = None  # vector to multiply by the Hessian; None computes value and gradient


@dataclass(frozen=True, eq=False)
class PartGradient:
    """Value and gradient of the loss of a part; or 0, and a Hessian product."""

    value: float
    vector: Floats

    def __add__(self, other: PartGradient) -> PartGradient:
        return PartGradient(self.value + other.value, self.vector + other.vector)


@dataclass(frozen=True)
class Limits:
    """Range of the scores of some queries, see `corank.base.solvers.solution.unit_range`."""

    low: float
    high: float

    def __add__(self, other: Limits) -> Limits:
        return Limits(min(self.low, other.low), max(self.high, other.high))


def limits_of(parts: Parts, rows: bool) -> Range:
    """Return the range of scores over all parts; `rows` as in `corank.base.solvers.solution.unit_range`."""
    result: Limits | None = parts.summed(_limits_part, rows, "range of scores")
    return (0.0, 1.0) if result is None else (result.low, result.high)


def minimise_parts(parts: Parts, loss: PartLoss, sums: Moments, alpha: float, tol: float, max_iter: int) -> Solution:
    """Minimise the objective over all parts."""
    precondition = moment_preconditioner(sums, loss.mix, alpha, Loss.of(loss.loss).curvature, loss.has_intercept)
    with progress(max_iter, "Newton steps", parts.verbose) as advance:
        return minimise(_PartsObjective(parts, loss, alpha), precondition, tol, max_iter, advance)


class _PartsObjective(SmoothObjective):
    """The objective over parts; every value, gradient and Hessian product is one pass."""

    def __init__(self, parts: Parts, loss: PartLoss, alpha: float) -> None:
        super().__init__(len(loss.factors), alpha, loss.has_intercept)
        self._parts, self._loss = parts, loss

    def start(self) -> Point:
        return self._point(self._loss.theta)

    def _point(self, theta: Floats) -> Point:
        result: PartGradient = self._parts.summed(_evaluate_part, replace(self._loss, theta=theta), "gradient")

        def hessian_product(v: Floats) -> Floats:
            settings = replace(self._loss, theta=theta, direction=v)
            product: PartGradient = self._parts.summed(_evaluate_part, settings, "product")
            return self.penalty * v + product.vector

        def line(step: Floats) -> Callable[[float], LinePoint]:
            def along(t: float) -> LinePoint:
                there = self._point(theta + t * step)
                derivative = float(there.gradient @ step)
                return LinePoint(derivative, lambda: float(step @ there.hessian_product(step)), lambda: there)

            return along

        value = result.value + 0.5 * float(self.penalty @ theta**2)
        return Point(theta, value, result.vector + self.penalty * theta, hessian_product, line)


def _limits_part(problems: Iterator[WholeQueries], rows: bool) -> Limits | None:
    total = None
    for problem in problems:
        if len(problem.data.scored_rows):
            own = Limits(*unit_range(problem.data, rows))
            total = own if total is None else total + own
    return total


def _evaluate_part(problems: Iterator[WholeQueries], loss: PartLoss) -> PartGradient:
    """Sum the loss and its gradient, or a Hessian product, over the queries of a part."""
    total = PartGradient(0.0, np.zeros(len(loss.theta)))
    for problem in problems:
        total = total + _evaluate(problem.data, loss)
    return total


def _evaluate(data: RankingData, settings: PartLoss) -> PartGradient:
    loss = Loss.of(settings.loss)
    if settings.limits is not None:
        data = in_unit(data, settings.limits)
    elif loss.scores == "signs" and settings.mix == 0.0:
        data = ordered(data)
    assert data.y is not None
    order = data.order[data.is_scored[data.order]]
    loss.require_scores(data.y[order], data.queries.codes[order], settings.mix > 0.0)
    terms: list[Evaluate] = []
    weighed = weigh_queries(data, settings.query_weight)
    pair_weight = block_of(weighed)[1]
    if settings.mix < 1.0 and pair_weight > 0.0:
        terms.append(pair_loss(weighed, loss, (1.0 - settings.mix) * pair_weight / settings.pair_weight))
    if settings.mix > 0.0 and len(order):
        share = settings.mix * len(order) / settings.n_scored
        terms.append(row_loss(data.y[order], data.weight_of(order), loss, share))
    scores = Affine(LinearMap(ScaledRows(data.X, settings.factors), order), settings.has_intercept)
    value, vector = 0.0, np.zeros(len(settings.theta))
    u = scores.scores(settings.theta)
    moved = None if settings.direction is None else scores.scores(settings.direction)
    for term in terms:
        here = term(u)
        if moved is None:
            value += here.value
        vector += scores.gather(here.gradient if moved is None else here.hessian_product(moved))
    return PartGradient(value, vector)


def fit_linear(model: Any, parts: Parts) -> tuple[LinearModel, Floats | None]:
    """Return the fitted record of a linear ranker and its column factors."""
    loss = Loss.of(model.loss)
    _require_exact(model, loss)
    d, views = parts.n_features, _views(model, parts)
    sums: Sums = parts.summed(
        sum_part,
        SumSettings(model.query_weight, False, isinstance(model, LCRA), origin := _origin(model, parts, loss)),
        "sums",
    )
    if model.mix == 1.0 and not sums.n_scored:
        raise InputError(f"all {parts.n_rows} rows are unjudged; score some rows.")
    factors = sums.spread.factors if model.scale else np.ones(d)
    scored, unscored = (None if moment is None else moment.scaled(factors) for moment in sums.moments())
    assert scored is not None
    require_products(scored.pair)
    alpha, source = _alpha(model, scored, sums)
    limits = None if loss.scores != "unit" else limits_of(parts, model.mix > 0.0)
    if _descends(model):
        solution = _averaged(model, parts, views, factors, limits, alpha)
    elif loss.exact == "system":
        solution = squared_views(
            (scored, unscored), views, mix=float(model.mix), alpha=alpha, fit_intercept=bool(model.fit_intercept),
            coupling=_coupling(model, unscored, sums),
        )  # fmt: skip
    else:
        solution = _newton(model, parts, scored, sums, factors, limits, float(alpha))
    W = np.zeros((len(views), d))
    for w, columns, own in zip(W, views, solution.view_coefs or (solution.coef,), strict=True):
        w[columns] = own
    coef, intercept = W.mean(axis=0) * factors, solution.intercept
    if origin is not None and loss.exact == "system" and not _descends(model):
        intercept -= float(coef @ origin)
    facts: dict[str, Any] = {
        "coef": coef, "intercept": float(intercept), "alpha": alpha, "alpha_from": source,
        "objective": float(solution.objective), "n_iter": int(solution.n_iter),
        "n_skipped_queries": sums.n_skipped if model.mix < 1.0 else 0,
        "score_range": None if limits is None else np.array(limits),
    }  # fmt: skip
    fitted = LinearModel(**facts)
    if isinstance(model, LCRA):
        gap = _gap(unscored, W)
        fitted = LinearViewsModel(**facts, views=[View(view) for view in views], view_coefs=W * factors, view_gap=gap)
    return fitted, factors if model.scale else None


def _descends(model: Any) -> bool:
    """Whether to average independent runs, because there is no exact solver or the user chose "sgd"."""
    return bool(model.solver == "sgd" or not model.has_exact_solver)


def _require_exact(model: Any, loss: Loss) -> None:
    if model.early_stopping or model.warm_start:
        raise InputError("early_stopping and warm_start are not supported over parts; set both to False.")
    if _descends(model):
        return
    if model.l1 > 0.0 or model.draw != "pairs":
        raise InputError(
            f"the {model.loss} loss is solved exactly over parts, which does not support l1 or draw='rows'; set l1=0 "
            "and draw='pairs', or solver='sgd' for averaged runs."
        )
    if loss.exact != "system":
        require_numbers(float(model.mix), 1.0 if model.alpha is None else float(np.min(model.alpha)), "above zero")


def _origin(model: Any, parts: Parts, loss: Loss) -> Floats | None:
    """Return the origin of sums over rows, near their mean so that centring cancels little; None without such sums."""
    if model.mix == 0.0:
        return None
    if not model.fit_intercept or loss.exact != "system":
        return np.zeros(parts.n_features)
    return parts.origin


def _coupling(model: Any, unscored: Moments | None, sums: Sums) -> float:
    """Return the weight of agreement on distinct pairs, see `corank.models.linear.lcra`."""
    if not isinstance(model, LCRA):
        return 0.0
    warn_without_unscored_pairs(unscored, model.coupling)
    if unscored is None or not unscored.pair_weight > 0.0:
        return 0.0
    return float(model.coupling * unscored.pair_weight / sums.weights.value[3])


def _averaged(
    model: Any, parts: Parts, views: list[NDArray[np.int64]], factors: Floats, limits: Range | None, alpha: Any
) -> Solution:
    """Return the mean of stochastic runs, as a solution for the scaled columns."""
    template = clone(model).set_params(alpha=alpha)
    if isinstance(model, LCRA):
        template.set_params(views=views)
    seed = int(rng_of(model.random_state).integers(2**31))
    runs = average_runs(parts, template, seed, factors, limits)
    if runs is None:
        raise InputError("no query has two rows with different scores; pass parts with pairs to compare.")
    W = runs.coefs / runs.weight
    coefs = tuple(w[columns] for w, columns in zip(W, views, strict=True))
    means = (W.mean(axis=0), runs.intercept / runs.weight, runs.objective / runs.weight)
    return Solution(*means, runs.n_iter, coefs)


def _newton(
    model: Any, parts: Parts, scored: Moments, sums: Sums, factors: Floats, limits: Range | None, alpha: float
) -> Solution:
    if model.mix < 1.0:
        require_weight(scored.pair_weight, "pair")
    learns_b = bool(model.fit_intercept) and model.mix > 0.0
    loss = PartLoss(
        model.loss, float(model.mix), model.query_weight, learns_b, factors, limits, scored.pair_weight, sums.n_scored,
        np.zeros(len(factors) + learns_b),
    )  # fmt: skip
    return minimise_parts(parts.kept(), loss, scored, alpha, model.tol, model.max_iter)


def _views(model: Any, parts: Parts) -> list[NDArray[np.int64]]:
    """Return the columns of each view, with the same random numbers as on one machine."""
    rng = rng_of(model.random_state).spawn(2)[1].spawn(1)[0]
    views: list[NDArray[np.int64]] = model.view_columns(parts.n_features, rng, parts.feature_names)
    return views


def _alpha(model: Any, scored: Moments, sums: Sums) -> tuple[float | Floats, str]:
    if model.alpha is not None:
        return one_or_each(model.alpha), "given"
    if not scored.pair_weight > 0.0:
        raise InputError("no query has two rows with different scores, from which alpha would be chosen; pass alpha.")
    trace = float(np.trace(scored.pair[:-1, :-1])) / scored.pair_weight
    return alpha_of(trace, scored.n_features, sums.free), "pair differences"


def _gap(unscored: Moments | None, W: Floats) -> float:
    """Return the mean over unjudged pairs and pairs of views of the squared difference of margins; NaN without any."""
    if unscored is None or len(W) < 2 or not unscored.pair_weight > 0.0:
        return float("nan")
    deviations = W - W.mean(axis=0)
    squares = float(np.trace(deviations @ unscored.pair[:-1, :-1] @ deviations.T))
    return 2.0 / (len(W) - 1) * squares / unscored.pair_weight


def warn_without_unscored_pairs(unscored: Moments | None, coupling: float) -> None:
    """Warn if no part has unjudged pairs for the views to agree on."""
    if coupling > 0.0 and (unscored is None or not unscored.pair_weight > 0.0):
        warn_of_useless_coupling(coupling)


@dataclass(frozen=True, eq=False)
class AveragedRuns:
    """Sums over runs, each weighted by its examples."""

    weight: float  # sum of the weights of the runs
    coefs: Floats  # weighted sum of the coefficients of the scaled columns, one row per view
    intercept: float  # intercept, objective: weighted sums
    objective: float
    n_iter: int  # number of steps

    def __add__(self, other: AveragedRuns) -> AveragedRuns:
        return AveragedRuns(
            self.weight + other.weight, self.coefs + other.coefs, self.intercept + other.intercept,
            self.objective + other.objective, self.n_iter + other.n_iter,
        )  # fmt: skip


def average_runs(parts: Parts, model: Any, seed: int, factors: Floats, limits: Range | None) -> AveragedRuns | None:
    """Run a stochastic descent on every part."""
    model = clone(model).set_params(scale=False)
    runs: AveragedRuns | None = parts.summed(_descend_part, (model, seed, factors, limits), "descent")
    return runs


def _descend_part(
    problems: Iterator[WholeQueries], settings: tuple[Any, int, Floats, Range | None]
) -> AveragedRuns | None:
    model, seed, factors, limits = settings
    total = None
    for problem in problems:
        data = problem.data if limits is None else in_unit(problem.data, limits)
        weight = float(data.n_pairs if model.mix < 1.0 else data.n_scored)
        if not weight:
            continue
        run_seed = int(np.random.default_rng([seed, int(problem.numbers.min())]).integers(2**31))
        run = clone(model).set_params(random_state=run_seed)
        run.fit(replace(data, X=ScaledRows(data.X, factors)))
        # coef_ refers to the unscaled columns
        coefs = np.atleast_2d(getattr(run, "view_coefs_", run.coef_)) / factors
        own = AveragedRuns(weight, weight * coefs, weight * run.intercept_, weight * run.objective_, run.n_iter_)
        total = own if total is None else total + own
    return total
