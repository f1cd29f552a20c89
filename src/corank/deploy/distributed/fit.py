"""
Fit rankers, pipelines and LightGBM to parts.

Transformers before a ranker: `QueryScaler` learns nothing from the rows. `Landmarks` divides column j by
√(Σ_i (x_ij − mean_j)² / n) over all rows, which takes two passes, and fetches the rows that are drawn, with the same
random numbers as on one machine. Both then transform inside each part, in every pass; no row is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from corank._moved import old_parameters
from corank.base.base import Ranker
from corank.base.contract import check_parameters, install, named_columns
from corank.base.kernels import as_kernel
from corank.base.kernels.features import FeatureMap
from corank.base.landmarks import Landmarks
from corank.base.pairs.moments import dense
from corank.base.query_scaler import QueryScaler
from corank.core.sums.bins import ExactSum
from corank.data.routing import predict_with_qid
from corank.deploy.distributed.linear import fit_linear, warn_without_unscored_pairs
from corank.deploy.distributed.parts import Parts
from corank.deploy.distributed.summary import (
    Summarised,
    leave_queries_out,
    rows_of_parts,
    summarise_maps,
    summarise_parts,
)
from corank.deploy.distributed.sums import Spread
from corank.deploy.distributed.tasks import WholeQueries, laid_out_for
from corank.errors import InputError
from corank.metrics import parse_metric
from corank.models.linear.base import LinearDescent
from corank.models.rls import CoRankRLS, PairSums, RankRLS
from corank.models.rls.least_squares import LeastSquares
from corank.models.rls.systems import EVIDENCE

Floats = NDArray[np.float64]

# size of a block of rows: 8 MiB
_ENTRIES = 1 << 20


def require_steps(steps: Sequence[Any]) -> list[Any]:
    """Return the steps that transform rows; raise for one that cannot be fitted to parts."""
    used = [step for step in steps if step is not None and step != "passthrough"]
    for step in used:
        if type(step) not in _FITS:
            raise InputError(
                f"the step {type(step).__name__} cannot be fitted to parts; use QueryScaler or Landmarks before the "
                "ranker, or fit on one machine."
            )
        if isinstance(step, Landmarks) and isinstance(step.basis, str) and step.basis != "random":
            raise InputError(f"basis is {step.basis!r}, but landmarks of parts are random; set basis='random'.")
    return used


def fit_steps(steps: Sequence[Any], parts: Parts) -> tuple[list[Any], Parts]:
    """Fit copies of transformers to parts, one after the other."""
    fitted = []
    for step in steps:
        fitted.append(_FITS[type(step)](copy(step), parts))
        parts = parts.through(fitted[-1])
    return fitted, parts


def _fit_scaler(step: QueryScaler, parts: Parts) -> QueryScaler:
    check_parameters(step)
    return install(step, None, {**named_columns(parts.n_features), "n_queries_": parts.n_queries})


def _fit_landmarks(step: Landmarks, parts: Parts) -> Landmarks:
    check_parameters(step)
    factors = _factors(parts) if step.scale and as_kernel(step.kernel).scales_columns else None
    record = step.choose(rows_of_parts(parts, factors), factors)
    return install(step, record, named_columns(parts.n_features))


_FITS: dict[type, Callable[[Any, Parts], Any]] = {QueryScaler: _fit_scaler, Landmarks: _fit_landmarks}


def _factors(parts: Parts) -> Floats:
    """Return the column factors of all rows as one query, see `corank.data.column_scales`."""
    # relative to a row, so that a constant column has deviation 0
    origin = parts.origin
    sums: ExactSum = parts.summed(_differences_part, origin, "means of columns")
    spread: Spread = parts.summed(_squares_part, (origin, sums.value / parts.n_rows), "scale of columns")
    return spread.factors


def _differences_part(problems: Iterator[WholeQueries], origin: Floats) -> ExactSum | None:
    """Sum the differences of the rows of a part from a point; None without rows."""
    total = None
    for rows in _blocks(problems):
        own = ExactSum.of(rows - origin)
        total = own if total is None else total + own
    return total


def _squares_part(problems: Iterator[WholeQueries], centre: tuple[Floats, Floats]) -> Spread | None:
    """Sum squared deviations from the means and non-zero entries of columns over a part; None without rows."""
    (origin, mean), total = centre, None
    for rows in _blocks(problems):
        own = Spread(len(rows), ExactSum.of(np.hstack([(rows - origin - mean) ** 2, rows != 0.0])))
        total = own if total is None else total + own
    return total


def _blocks(problems: Iterator[WholeQueries]) -> Iterator[Floats]:
    for problem in problems:
        X = problem.data.X
        step = max(_ENTRIES // max(X.shape[1], 1), 1)
        for begin in range(0, X.shape[0], step):
            yield dense(X[begin : begin + step])


R = TypeVar("R", bound=Ranker | Pipeline)


@old_parameters(unscored="unjudged")
def fit_parts(
    model: R,
    parts: Any,
    client: Any = None,
    *,
    split: Literal["move", "refuse"] = "move",
    unjudged: float | None = None,
    y: str | Literal[False] | None = None,
    qid: str | None = None,
    verbose: bool = False,
) -> R:
    """
    Fit a ranker to parts of a data set, one after the other on this machine, or on a cluster.

    The result is the model that one machine would learn from all rows. Up to 192 columns and on one type of processor,
    it is byte-identical for any division into parts, any order of the work and any lost workers. It agrees with
    ``fit`` up to rounding. The names of columns are remembered and checked as by ``fit``; a failed fit changes nothing.

    model: RankRLS, CoRankRLS, SPD, CRR or LCRA, also after `QueryScaler` and `Landmarks` with a random basis. With
        ``solver="sgd"`` or the hinge, weights are the mean of one stochastic run per part, and depend on the parts.
    client: where tasks run; None is this machine. Dask unpickles what workers send: use trusted clusters only.
    split: whether to "move" or to "refuse" the rows of a query that is in several parts.
    """
    *steps, ranker = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if type(ranker) in (RankRLS, CoRankRLS):
        fit = _fit_least_squares
    elif isinstance(ranker, LinearDescent):
        fit = fit_linear
    else:
        raise InputError(
            f"{type(ranker).__name__} cannot be fitted to parts; use RankRLS, CoRankRLS, SPD, CRR or LCRA, or fit it "
            "on one machine."
        )
    steps = require_steps(steps)
    check_parameters(ranker)
    if not isinstance(parts, Parts):
        parts = Parts(parts, client, split=split, unjudged=unjudged, y=y, qid=qid, verbose=verbose)
    named = named_columns(parts.n_features, parts.feature_names)
    fitted, parts = fit_steps(steps, parts)
    record, factors = fit(ranker, parts)
    notes = named_columns(parts.n_features) if steps else named
    learnt = install(copy(ranker), record, notes if factors is None else {**notes, "column_scale_": factors})
    # only assignments from here on; as in a pipeline on one machine, the first step remembers the names
    for step, new in zip(steps, fitted, strict=True):
        step.__dict__ = {**vars(new), **named} if step is steps[0] else vars(new)
    ranker.__dict__ = vars(learnt)
    return model


@old_parameters(unscored="unjudged")
def pair_sums(
    parts: Any,
    maps: RankRLS | CoRankRLS | tuple[FeatureMap, ...],
    client: Any = None,
    *,
    query_weight: str = "pairs",
    ties: bool = False,
    split: Literal["move", "refuse"] = "move",
    unjudged: float | None = None,
    y: str | Literal[False] | None = None,
    qid: str | None = None,
) -> PairSums:
    """
    Sum over parts, to the same bytes for any division; `fit_pair_sums` then solves without reading the rows again.

    maps: a model, which chooses views, basis rows and the scale of columns; or feature maps for unscaled rows, which
        `query_weight` and `ties` apply to.
    client: where tasks run; None is this machine. Dask unpickles what workers send: use trusted clusters only.
    """
    if not isinstance(parts, Parts):
        parts = Parts(parts, client, split=split, unjudged=unjudged, y=y, qid=qid)
    if isinstance(maps, LeastSquares):
        check_parameters(maps)
        return summarise_parts(parts, maps).summary
    return summarise_maps(parts, tuple(maps), query_weight, ties, scale=False).summary


def _fit_least_squares(model: Any, parts: Parts) -> tuple[Any, Floats | None]:
    """Return the fitted record, and the column factors."""
    summarised = summarise_parts(parts, model)
    summary = summarised.summary
    summary.require_pairs()
    if isinstance(model, CoRankRLS) and len(summary.maps) > 1:
        highest = model.coupling if model.couplings is None else max(model.couplings)
        warn_without_unscored_pairs(summary.unscored, highest)
    if model.alphas is None and getattr(model, "couplings", None) is None:
        fitted = model.solve_summary(summary)
    else:
        metric = _metric(model, summarised)
        fitted = model.solve_candidates(
            summary, metric, lambda ridges, alphas: leave_queries_out(parts, summarised, metric, ridges, alphas)
        )
    return fitted, summary.factors


def _metric(model: LeastSquares, summarised: Summarised) -> str:
    """Return the metric that chooses among candidates, as on one machine."""
    if summarised.summary.free.n_queries < 2:
        raise InputError(
            "only one query has scored rows to compare, but leave-query-out needs two; pass alpha and coupling instead "
            "of alphas and couplings."
        )
    if model.metric == EVIDENCE:
        raise InputError("metric is 'evidence', which cannot be computed over parts; choose a metric, or pass alpha.")
    if model.metric is not None:
        return str(parse_metric(model.metric))
    return "nDCG@10" if summarised.sums.are_grades else "disagreement"


Integers = NDArray[np.int64]


def predict_parts(model: Any, parts: Any, client: Any = None) -> Floats:
    """
    Score the rows of parts, in their order.

    client: where tasks run; None is this machine. Dask unpickles what workers send: use trusted clusters only.
    """
    parts = _checked(model, parts, client)
    out = np.empty(parts.n_rows)
    for some in parts.engine.gather(parts.over(_scores_part, model, "scores")):
        for numbers, values in some:
            out[numbers] = values
    return out


def _checked(model: Any, parts: Any, client: Any) -> Parts:
    """Return parts with the columns of the model; raise `InputError` for other names, or another order of them."""
    checked = parts if isinstance(parts, Parts) else Parts(parts, client)
    known, names = getattr(model, "feature_names_in_", None), checked.feature_names
    if known is None or names is None or list(known) == list(names):
        return checked
    if len(known) != len(names):
        raise InputError(
            f"the parts have {len(names)} columns, but the model was fitted on {len(known)}; pass parts with the same "
            "columns."
        )
    i = next(k for k, (item, other) in enumerate(zip(names, known, strict=True)) if item != other)
    raise InputError(
        f"the parts have {names[i]!r} as column {i + 1}, but the model was fitted on {known[i]!r}; pass parts with "
        "the same columns in the same order."
    )


def _scores_part(problems: Iterator[WholeQueries], model: Any) -> list[tuple[Integers, Floats]]:
    return [
        (problem.numbers, predict_with_qid(model, laid_out_for(model, problem.data.X), problem.data.queries.codes))
        for problem in problems
    ]
