"""SPD, CRR and LCRA from parts: one system, Newton steps, or the mean of stochastic runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from corank.core.rows.scaled import ScaledRows
from corank.data.problem.inputs import require_weight
from corank.distributed.newton import PartLoss, limits_of, minimise_parts
from corank.distributed.parts import Parts
from corank.distributed.sums import Sums, SumSettings, sum_part
from corank.distributed.tasks import WholeQueries
from corank.errors import InputError
from corank.estimator.advice import warn_of_useless_coupling
from corank.kernels.views import View
from corank.linear.base import LinearModel
from corank.linear.lcra import LCRA, LinearViewsModel
from corank.pairwise import Moments
from corank.pairwise.losses import Loss
from corank.parameters import rng_of
from corank.solvers import squared_views
from corank.solvers.penalty import alpha_of
from corank.solvers.solution import Solution, require_numbers, require_products
from corank.solvers.targets import Range, in_unit

Floats = NDArray[np.float64]


def fit_linear(model: Any, parts: Parts) -> tuple[LinearModel, Floats | None]:
    """Return the fitted record of a linear ranker and its column factors."""
    loss = Loss.of(model.loss)
    _require_exact(model, loss)
    d, views = parts.n_features, _views(model, parts.n_features)
    sums: Sums = parts.summed(
        sum_part,
        SumSettings(model.query_weight, False, isinstance(model, LCRA), origin := _origin(model, parts, loss)),
        "sums",
    )
    if model.mix == 1.0 and not sums.n_scored:
        raise InputError(f"none of the {parts.n_rows} rows has a score; score some rows.")
    factors = sums.spread.factors if model.scale else np.ones(d)
    scored, unscored = (None if one is None else one.scaled(factors) for one in sums.moments())
    assert scored is not None
    require_products(scored.pair)
    alpha, source = _alpha(model, scored, sums)
    limits = None if loss.scores != "unit" else limits_of(parts, model.mix > 0.0)
    if _descends(model):
        found = _averaged(model, parts, views, factors, limits, alpha)
    elif loss.exact == "system":
        found = squared_views(
            (scored, unscored), views, mix=float(model.mix), alpha=alpha, fit_intercept=bool(model.fit_intercept),
            coupling=_coupling(model, unscored, sums),
        )  # fmt: skip
    else:
        found = _newton(model, parts, scored, sums, factors, limits, alpha)
    W = np.zeros((len(views), d))
    for w, columns, own in zip(W, views, found.view_coefs or (found.coef,), strict=True):
        w[columns] = own
    coef, intercept = W.mean(axis=0) * factors, found.intercept
    if origin is not None and loss.exact == "system" and not _descends(model):
        intercept -= float(coef @ origin)
    facts: dict[str, Any] = {
        "coef": coef, "intercept": float(intercept), "alpha": alpha, "alpha_from": source,
        "objective": float(found.objective), "n_iter": int(found.n_iter),
        "n_skipped_queries": sums.n_skipped if model.mix < 1.0 else 0,
        "score_range": None if limits is None else np.array(limits),
    }  # fmt: skip
    fitted = LinearModel(**facts)
    if isinstance(model, LCRA):
        gap = _gap(unscored, W)
        fitted = LinearViewsModel(**facts, views=[View(one) for one in views], view_coefs=W * factors, view_gap=gap)
    return fitted, factors if model.scale else None


def _descends(model: Any) -> bool:
    """Whether weights are the mean of independent runs; sums are preferred wherever there are some."""
    return bool(model.solver == "sgd" or not model._has_optimum)


def _require_exact(model: Any, loss: Loss) -> None:
    if model.early_stopping or model.warm_start:
        raise InputError("parts are learnt from at once; set early_stopping=False and warm_start=False.")
    if _descends(model):
        return
    if model.l1 > 0.0 or model.draw != "pairs":
        raise InputError(
            f"the {model.loss} loss is solved exactly over parts, without l1 or draw='rows'; set l1=0 and "
            "draw='pairs', or solver='sgd' for the mean of runs."
        )
    if loss.exact != "system":
        require_numbers(float(model.mix), 1.0 if model.alpha is None else float(model.alpha), "above zero")


def _origin(model: Any, parts: Parts, loss: Loss) -> Floats | None:
    """Where rows are measured from in sums over them, so that centring these cancels little; None without such sums."""
    if model.mix == 0.0:
        return None
    if not model.fit_intercept or loss.exact != "system":
        return np.zeros(parts.n_features)
    return parts.origin


def _coupling(model: Any, unscored: Moments | None, sums: Sums) -> float:
    """The weight of agreement beside distinct pairs, see `corank.linear.lcra`: a row is a pair with itself, too."""
    if not isinstance(model, LCRA):
        return 0.0
    warn_of_no_agreement(unscored, model.coupling)
    if unscored is None or not unscored.pair_weight > 0.0:
        return 0.0
    return float(model.coupling * unscored.pair_weight / sums.weights.value[3])


def _averaged(
    model: Any, parts: Parts, views: list[NDArray[np.int64]], factors: Floats, limits: Range | None, alpha: float
) -> Solution:
    """The mean of stochastic runs, as a solution of the scaled columns."""
    told = clone(model).set_params(alpha=alpha)
    if isinstance(model, LCRA):
        told.set_params(views=views)
    seed = int(rng_of(model.random_state).integers(2**31))
    runs = average_runs(parts, told, seed, factors, limits)
    if runs is None:
        raise InputError("no part holds two rows of one query with different scores; pass parts with pairs.")
    W = runs.coefs / runs.weight
    coefs = tuple(w[columns] for w, columns in zip(W, views, strict=True))
    found = (W.mean(axis=0), runs.intercept / runs.weight, runs.objective / runs.weight)
    return Solution(*found, runs.n_iter, coefs)


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


def _views(model: Any, d: int) -> list[NDArray[np.int64]]:
    """The columns of each view, dealt by the same dice as on one machine."""
    dice = rng_of(model.random_state).spawn(2)[1].spawn(1)[0]
    layout: list[NDArray[np.int64]] = model._layout(_Width(np.empty((0, d))), dice).of_views
    return layout


class _Width:
    """All that dealing columns to views looks at of a problem."""

    def __init__(self, X: Floats) -> None:
        self.X, self.n_features = X, X.shape[1]


def _alpha(model: Any, scored: Moments, sums: Sums) -> tuple[float, str]:
    if model.alpha is not None:
        return float(model.alpha), "given"
    if not scored.pair_weight > 0.0:
        raise InputError(
            "no part holds two rows of one query with different scores, by which alpha would be chosen; pass alpha."
        )
    trace = float(np.trace(scored.pair[:-1, :-1])) / scored.pair_weight
    return alpha_of(trace, scored.n_features, sums.free), "pair differences"


def _gap(unscored: Moments | None, W: Floats) -> float:
    """Mean over unscored pairs and pairs of views of the squared difference of margins; NaN without any."""
    if unscored is None or len(W) < 2 or not unscored.pair_weight > 0.0:
        return float("nan")
    apart = W - W.mean(axis=0)
    squares = float(np.trace(apart @ unscored.pair[:-1, :-1] @ apart.T))
    return 2.0 / (len(W) - 1) * squares / unscored.pair_weight


def warn_of_no_agreement(unscored: Moments | None, coupling: float) -> None:
    """Warn if no part has unscored pairs for the views to agree on."""
    if coupling > 0.0 and (unscored is None or not unscored.pair_weight > 0.0):
        warn_of_useless_coupling(coupling)


@dataclass(frozen=True, eq=False)
class AveragedRuns:
    """
    Sums over runs, each times the weight of its examples.

    weight: of all of them.
    coefs: weights of the scaled columns, of each view where there are some, times those.
    intercept, objective: the same of these.
    n_iter: steps.
    """

    weight: float
    coefs: Floats
    intercept: float
    objective: float
    n_iter: int

    def __add__(self, other: AveragedRuns) -> AveragedRuns:
        return AveragedRuns(
            self.weight + other.weight, self.coefs + other.coefs, self.intercept + other.intercept,
            self.objective + other.objective, self.n_iter + other.n_iter,
        )  # fmt: skip


def average_runs(parts: Parts, model: Any, seed: int, factors: Floats, limits: Range | None) -> AveragedRuns | None:
    """
    Descend in every part.

    model: with alpha and views given.
    seed: beside which the number of a part's first row seeds its run.
    Returns: sums over the runs; None where no part has an example.
    """
    model = clone(model).set_params(scale=False)
    found: AveragedRuns | None = parts.summed(_descend_part, (model, seed, factors, limits), "descent")
    return found


def _descend_part(problems: Iterator[WholeQueries], told: tuple[Any, int, Floats, Range | None]) -> AveragedRuns | None:
    model, seed, factors, limits = told
    total = None
    for problem in problems:
        data = problem.data if limits is None else in_unit(problem.data, limits)
        weight = float(data.n_pairs if model.mix < 1.0 else data.n_scored)
        if not weight:
            continue
        dice = int(np.random.default_rng([seed, int(problem.numbers.min())]).integers(2**31))
        run = clone(model).set_params(random_state=dice)
        run.fit(replace(data, X=ScaledRows(data.X, factors)))
        # a model has the weights of columns as they were given
        coefs = np.atleast_2d(getattr(run, "view_coefs_", run.coef_)) / factors
        own = AveragedRuns(weight, weight * coefs, weight * run.intercept_, weight * run.objective_, run.n_iter_)
        total = own if total is None else total + own
    return total
