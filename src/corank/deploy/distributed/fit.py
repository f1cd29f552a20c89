"""
Fit least-squares rankers to parts, and score parts.

A linear kernel takes one pass: sums of unscaled columns serve every choice and every scale of columns. Features of
basis rows take two passes, and a third if columns are scaled: scale, chosen rows, sums. Choices by leave-query-out take
one more. `QueryScaler` learns nothing from the rows and scales inside each part, in every pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from corank.base.contract import check_parameters, install, named_columns, warn_of_useless_coupling
from corank.base.kernels.basis import FeatureMap, stack_features
from corank.base.pairs import Moments
from corank.base.transformers import QueryScaler
from corank.core.exact_sums import ExactSum
from corank.core.rows.access import ScaledRows
from corank.data.ranking import RankingData
from corank.data.routing import predict_with_qid
from corank.deploy.distributed.parts import Parts
from corank.deploy.distributed.tasks import (
    Spread,
    Sums,
    SumSettings,
    WholeQueries,
    laid_out_for,
    spread_part,
    sum_part,
    sum_up,
)
from corank.errors import InputError
from corank.metrics import parse_metric
from corank.models.rls import CoRankRLS, PairSums, RankRLS
from corank.models.rls.frame import ComparedRows, ScoredRows
from corank.models.rls.least_squares import LeastSquares
from corank.models.rls.leave_out import ErrorScales, LeaveOutScores, views_out
from corank.models.rls.spectrum import Ridge
from corank.models.rls.systems import EVIDENCE
from corank.parameters import rng_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

R = TypeVar("R", bound=RankRLS | CoRankRLS | Pipeline)


def fit_parts(model: R, parts: Any, client: Any = None) -> R:
    """
    Fit a ranker to parts of a data set, one after the other on this machine, or on a cluster.

    The result is the model that one machine would learn from all rows. Up to 192 columns and on one type of processor,
    it is byte-identical for any division into parts, any order of the work and any lost workers. It agrees with
    ``fit`` up to rounding. The names of columns are remembered and checked as by ``fit``; a failed fit changes nothing.

    model: RankRLS or CoRankRLS, alone or in a pipeline after `QueryScaler`.
    parts, client: `Parts`, or what it takes; Dask unpickles what workers send: use trusted clusters only.
    """
    scaler, ranker = _steps(model)
    for step in (ranker, *([] if scaler is None else [scaler])):
        check_parameters(step)
    parts = parts if isinstance(parts, Parts) else Parts(parts, client)
    named = named_columns(parts.n_features, parts.feature_names)
    scaled, notes = None, named
    if scaler is not None:
        scaled = install(copy(scaler), None, {**named, "n_queries_": parts.n_queries})
        parts, notes = parts.scaled(scaled), named_columns(parts.n_features)
    record, factors = _fit(ranker, parts)
    learnt = install(copy(ranker), record, notes if factors is None else {**notes, "column_scale_": factors})
    # only assignments from here on, so that an interrupt leaves the old model or the new one
    if scaler is not None:
        scaler.__dict__ = vars(scaled)
    ranker.__dict__ = vars(learnt)
    return model


def _steps(model: Any) -> tuple[QueryScaler | None, Any]:
    """Return the scaler, or None, and the ranker of a model; raise `InputError` for others."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    *before, ranker = [step for step in steps if step is not None and step != "passthrough"]
    other = next((step for step in before if type(step) is not QueryScaler), before[1] if len(before) > 1 else None)
    if other is not None or type(ranker) not in (RankRLS, CoRankRLS):
        raise InputError(
            f"{type(ranker if other is None else other).__name__} cannot be fitted to parts; use RankRLS or CoRankRLS, "
            "alone or after QueryScaler, or fit on one machine."
        )
    return (before[0] if before else None), ranker


def pair_sums(
    parts: Any,
    maps: RankRLS | CoRankRLS | tuple[FeatureMap, ...],
    client: Any = None,
    *,
    query_weight: str = "pairs",
    ties: bool = False,
) -> PairSums:
    """
    Sum over parts, to the same bytes for any division; `fit_pair_sums` then solves without reading the rows again.

    maps: a model, which chooses views, basis rows and the scale of columns; or feature maps for unscaled rows, which
        `query_weight` and `ties` apply to.
    parts, client: `Parts`, or what it takes; Dask unpickles what workers send: use trusted clusters only.
    """
    parts = parts if isinstance(parts, Parts) else Parts(parts, client)
    if isinstance(maps, LeastSquares):
        check_parameters(maps)
        return _summarise(parts, maps).summary
    return _summarise_maps(parts, tuple(maps), query_weight, ties, scale=False).summary


def _fit(model: Any, parts: Parts) -> tuple[Any, Floats | None]:
    """Return the fitted record, and the column factors."""
    summarised = _summarise(parts, model)
    summary = summarised.summary
    summary.require_pairs()
    if isinstance(model, CoRankRLS) and len(summary.maps) > 1:
        highest = model.coupling if model.couplings is None else max(model.couplings)
        if highest > 0.0 and (summary.unscored is None or not summary.unscored.pair_weight > 0.0):
            warn_of_useless_coupling(highest)
    if model.alphas is None and getattr(model, "couplings", None) is None:
        fitted = model.solve_summary(summary)
    else:
        metric = _metric(model, summarised)
        fitted = model.solve_candidates(
            summary, metric, lambda ridges, alphas: _leave_queries_out(parts, summarised, metric, ridges, alphas)
        )
    return fitted, summary.factors


def _metric(model: LeastSquares, summarised: _Summarised) -> str:
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


def predict_parts(model: Any, parts: Any, client: Any = None) -> Floats:
    """
    Score the rows of parts, in their order.

    parts, client: `Parts`, or what it takes; Dask unpickles what workers send: use trusted clusters only.
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


@dataclass(frozen=True, eq=False)
class _Summarised:
    """A summary and the sums it was computed from."""

    summary: PairSums
    sums: Sums


def _summarise(parts: Parts, model: LeastSquares) -> _Summarised:
    """Sum over parts for a model, with views, basis rows and scale of columns chosen as on one machine."""
    rng = rng_of(model.random_state).spawn(2)[1]
    views, _ = model.split_views(parts.n_features, rng, parts.feature_names)
    if all(view.kernel.is_linear and view.basis is None for view in views) and not model.uses_basis:
        maps = tuple(FeatureMap.of_columns(view, _width(view.columns, parts.n_features)) for view in views)
        return _summarise_maps(parts, maps, model.query_weight, model.ties, scale=model.scale)
    if not isinstance(model.basis, str) or model.basis != "random" or not model.uses_basis:
        raise InputError(
            "over parts, a basis must be random and of given size; set n_basis and basis='random', or use a linear "
            "kernel."
        )
    factors = None
    if model.scale and all(view.kernel.scales_columns for view in views):
        spread: Spread = parts.summed(spread_part, None, "scale of columns")
        factors = spread.factors
    numbers: _RowNumbers = parts.summed(_numbers_part, (model.query_weight, model.ties), "row numbers")
    # the same generator as above
    rng = rng_of(model.random_state).spawn(2)[1]
    # the attributes of a problem, and of its compared rows in the order of one machine, that choosing basis rows needs
    problem: Any = SimpleNamespace(
        X=_rows_of_parts(parts, factors), n_features=parts.n_features, unscored_rows=np.sort(numbers.unscored),
        names=parts.feature_names, weights=None,
    )  # fmt: skip
    compared = numbers.compared[np.argsort(numbers.query, kind="stable")]
    frame: Any = SimpleNamespace(rows=compared, n_queries=len(np.unique(numbers.query)))
    maps = model.choose_maps(problem, frame, rng)
    settings = SumSettings(model.query_weight, model.ties, len(maps) > 1, maps, factors)
    return _summed(parts, maps, settings, factors)


def _summarise_maps(
    parts: Parts, maps: tuple[FeatureMap, ...], query_weight: str, ties: bool, scale: bool
) -> _Summarised:
    """Sum over parts for given feature maps; plain columns may be scaled, from the same pass."""
    are_columns = all(phi.basis is None for phi in maps)
    if not are_columns:
        return _summed(parts, maps, SumSettings(query_weight, ties, len(maps) > 1, maps), None)
    sums: Sums = parts.summed(sum_part, SumSettings(query_weight, ties, len(maps) > 1), "sums")
    factors = sums.spread.factors if scale else None
    chosen = [np.arange(parts.n_features) if phi.view.columns is None else phi.view.columns for phi in maps]
    slots = np.append(np.concatenate(chosen), parts.n_features)
    scale_of = np.append(np.ones(parts.n_features) if factors is None else factors, 1.0)[slots]

    def laid_out(moments: Moments) -> Moments:
        return Moments(moments.pair[np.ix_(slots, slots)] * np.outer(scale_of, scale_of), None, moments.pair_weight)

    scored, unscored = sums.moments()
    return _summary(parts, maps, sums, laid_out(scored), None if unscored is None else laid_out(unscored), factors,
                    query_weight, ties)  # fmt: skip


def _leave_queries_out(
    parts: Parts, summarised: _Summarised, metric: str, ridges: list[Ridge], alphas: Floats
) -> Floats:
    """Evaluate every candidate by leave-query-out, in one more pass."""
    settings = _LeaveOutSettings(summarised.summary, metric, ridges, alphas, _error_scales(summarised))
    sums: ExactSum = parts.summed(_evaluate_part, settings, "leave-query-out")
    total, used = sums.value.reshape(2, len(ridges), len(alphas))
    return np.asarray(np.divide(total, used, out=np.full(total.shape, np.nan), where=used > 0))


@dataclass(frozen=True, eq=False)
class _PartRows:
    """The rows of all parts as one table; rows are fetched when they are indexed."""

    parts: Parts
    n_rows: int
    columns: Integers  # the chosen columns

    ndim = 2
    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.n_rows, len(self.columns)

    def __getitem__(self, chosen: Any) -> Any:
        if isinstance(chosen, tuple):
            return _PartRows(self.parts, self.n_rows, self.columns[chosen[1]])
        numbers = range(*chosen.indices(self.n_rows)) if isinstance(chosen, slice) else chosen
        return self.parts.rows(np.asarray(numbers, dtype=np.int64))[:, self.columns]


def _rows_of_parts(parts: Parts, factors: Floats | None) -> ScaledRows:
    """Return the rows of all parts as one table, read on demand, with columns times factors if any."""
    # the search for a bandwidth reads a few rows of `ScaledRows`, but would check all rows of another table
    rows: Any = _PartRows(parts, parts.n_rows, np.arange(parts.n_features))
    return ScaledRows(rows, np.ones(parts.n_features, dtype=np.float32) if factors is None else factors)


@dataclass(frozen=True, eq=False)
class _RowNumbers:
    """
    Numbers of rows among those of all parts.

    compared, query: compared rows, sorted by query and score, and the first row of the query of each.
    """

    compared: Integers
    query: Integers
    unscored: Integers  # unjudged rows

    def __add__(self, other: _RowNumbers) -> _RowNumbers:
        both = zip(
            (self.compared, self.query, self.unscored), (other.compared, other.query, other.unscored), strict=True
        )
        return _RowNumbers(*map(np.concatenate, both))


def _numbers_part(problems: Iterator[WholeQueries], settings: tuple[str, bool]) -> _RowNumbers | None:
    def of_problem(problem: WholeQueries) -> _RowNumbers:
        data, numbers = problem.data, problem.numbers
        frame = ComparedRows.of(data, *settings)
        first = numbers[data.queries.order[data.starts[:-1]]][data.queries.codes[frame.rows]]
        return _RowNumbers(numbers[frame.rows], first, numbers[data.unscored_rows])

    total: _RowNumbers | None = sum_up(map(of_problem, problems))
    return total


def _summed(parts: Parts, maps: tuple[FeatureMap, ...], settings: SumSettings, factors: Floats | None) -> _Summarised:
    sums: Sums = parts.summed(sum_part, settings, "sums")
    return _summary(parts, maps, sums, *sums.moments(), factors, settings.query_weight, settings.ties)


def _summary(
    parts: Parts, maps: tuple[FeatureMap, ...], sums: Sums, scored: Moments, unscored: Moments | None,
    factors: Floats | None, query_weight: str, ties: bool,
) -> _Summarised:  # fmt: skip
    pairs, drawn, _, drawn_unscored, _ = sums.weights.value
    weights = (float(drawn if ties else pairs), float(drawn_unscored))
    # labels of a frame that are numbers are not names
    names = named_columns(parts.n_features, parts.feature_names).get("feature_names_in_")
    summary = PairSums(
        maps, scored, unscored, weights, sums.free, query_weight, ties, factors, parts.n_features,
        None if names is None else tuple(names),
    )  # fmt: skip
    return _Summarised(summary, sums)


def _width(columns: Integers | None, n_features: int) -> int:
    return n_features if columns is None else len(columns)


@dataclass(frozen=True, eq=False)
class _LeaveOutSettings:
    """Settings of leave-query-out."""

    summary: PairSums
    metric: str
    ridges: list[Ridge]
    alphas: Floats
    scales: ErrorScales


def _error_scales(summarised: _Summarised) -> ErrorScales:
    """Return the scales of rounding errors, as in `corank.models.rls.systems.FeatureSystem`."""
    summary, compared = summarised.summary, summarised.sums.weights.value[4]
    bases = [phi.basis for phi in summary.maps if phi.basis is not None]
    length = sum(float(np.mean(basis.diagonal(basis.rows))) for basis in bases)
    return ErrorScales(
        float(np.sqrt(summary.scored.pair[-1, -1] / summary.weights[0])), float(compared / summary.weights[0]) * length,
        max(phi.inflation for phi in summary.maps),
    )  # fmt: skip


def _evaluate_part(problems: Iterator[WholeQueries], settings: _LeaveOutSettings) -> ExactSum | None:
    """Sum a metric over the queries of a part, and count queries with a value, for each coupling and alpha."""
    total: ExactSum | None = sum_up(ExactSum.of(_values(problem.data, settings)) for problem in problems)
    return total


def _values(data: RankingData, settings: _LeaveOutSettings) -> Floats:
    """Return for each query and candidate the metric, 0 if undefined, and whether it is defined."""
    summary, alphas = settings.summary, settings.alphas
    frame = ComparedRows.of(data, summary.query_weight, summary.ties, summary.weights[0])
    assert isinstance(frame, ScoredRows)
    X = data.X if summary.factors is None else ScaledRows(data.X, summary.factors)
    pieces = [
        views_out(settings.ridges, Z, t, starts, frame.shares[some], summary.blocks, alphas, settings.scales)
        for some, starts, Z, t in frame.designs(X, stack_features(summary.maps))
    ]
    n_candidates = len(settings.ridges) * len(alphas)
    if not pieces:
        return np.zeros((0, 2 * n_candidates))
    held = [LeaveOutScores(*map(np.concatenate, zip(*of_one, strict=True))) for of_one in zip(*pieces, strict=True)]
    values = np.column_stack([result.values for item in held for result in frame.results(item, settings.metric)])
    return np.hstack([np.nan_to_num(values), (~np.isnan(values)).astype(np.float64)])
