"""
Summary of parts: the sums of least-squares ranking, and leave-query-out in a second pass.

Columns of a linear kernel take one pass over the rows: sums of columns as they are serve every choice of columns and
every scale of them. Features seen from basis rows take two, and a third where columns are scaled: what they are scaled
by, the chosen rows, the sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.scaled import ScaledRows
from corank.core.sums.bins import ExactSum
from corank.data.problem.ranking import RankingData
from corank.distributed.parts import Parts
from corank.distributed.sums import Spread, Sums, SumSettings, spread_part, sum_part
from corank.distributed.tasks import WholeQueries
from corank.errors import InputError
from corank.kernels import FeatureMap, stack_features
from corank.pairwise import Moments
from corank.parameters import rng_of
from corank.rls.accuracy import Held, Sizes
from corank.rls.frame import Frame, RowFrame
from corank.rls.least_squares import LeastSquares
from corank.rls.leave_out import views_out
from corank.rls.spectrum import Ridge
from corank.rls.summary import Summary

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Summarised:
    """
    A summary, and what else was found on the way.

    sums: the sums it was made of.
    """

    summary: Summary
    sums: Sums


def summarise_parts(parts: Parts, model: LeastSquares) -> Summarised:
    """Sum over parts for a model: its views, basis rows and scale of columns, chosen as on one machine."""
    rng = rng_of(model.random_state).spawn(2)[1]
    views, _ = model._dealt(parts.n_features, rng)
    if all(view.kernel.is_linear and view.basis is None for view in views) and not model._wants_basis:
        maps = tuple(FeatureMap.of_columns(view, _width(view.columns, parts.n_features)) for view in views)
        return summarise_maps(parts, maps, model.query_weight, model.ties, scale=model.scale)
    if not isinstance(model.basis, str) or model.basis != "random" or model.n_basis is None:
        raise InputError(
            "a basis over parts is drawn at random, one number of rows for each view; set n_basis and basis='random', "
            "or use a linear kernel."
        )
    factors = None
    if model.scale and all(view.kernel.scales_columns for view in views):
        spread: Spread = parts.summed(spread_part, None, "scale of columns")
        factors = spread.factors
    names: _Names = parts.summed(_names_part, (model.query_weight, model.ties), "row numbers")
    # the same dice as above
    rng = rng_of(model.random_state).spawn(2)[1]
    seen = _Seen(rows_of_parts(parts, factors), parts.n_features, np.sort(names.unscored))
    maps = model._maps(seen, names.frame, rng)  # type: ignore[arg-type]
    settings = SumSettings(model.query_weight, model.ties, len(maps) > 1, None, maps, factors)
    return _summed(parts, maps, settings, factors)


def summarise_maps(
    parts: Parts, maps: tuple[FeatureMap, ...], query_weight: str, ties: bool, scale: bool
) -> Summarised:
    """Sum over parts for given features; of columns, which may be scaled by what the same pass finds."""
    are_columns = all(phi.basis is None for phi in maps)
    if not are_columns:
        return _summed(parts, maps, SumSettings(query_weight, ties, len(maps) > 1, None, maps), None)
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


def leave_queries_out(parts: Parts, found: Summarised, metric: str, ridges: list[Ridge], alphas: Floats) -> Floats:
    """
    Judge every candidate by queries that its model did not see: one more pass.

    Returns: means of the metric over the queries (n_couplings, n_alphas).
    """
    told = _Judging(found.summary, metric, ridges, alphas, _sizes(found))
    sums: ExactSum = parts.summed(_judge_part, told, "leave-query-out")
    total, used = sums.value.reshape(2, len(ridges), len(alphas))
    return np.asarray(np.divide(total, used, out=np.full(total.shape, np.nan), where=used > 0))


@dataclass(frozen=True, eq=False)
class PartRows:
    """
    The rows of all parts as one table that is never in one place; rows are fetched when they are asked for.

    n_rows: number of rows.
    columns: which columns are seen.
    """

    parts: Parts
    n_rows: int
    columns: Integers

    ndim = 2
    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.n_rows, len(self.columns)

    def __getitem__(self, chosen: Any) -> Any:
        if isinstance(chosen, tuple):
            return PartRows(self.parts, self.n_rows, self.columns[chosen[1]])
        numbers = range(*chosen.indices(self.n_rows)) if isinstance(chosen, slice) else chosen
        return self.parts.rows(np.asarray(numbers, dtype=np.int64))[:, self.columns]


def rows_of_parts(parts: Parts, factors: Floats | None) -> ScaledRows:
    """Return the rows of all parts as one table that is read where it is asked for, columns times factors if any."""
    # whoever looks for a bandwidth fetches a few rows of a `ScaledRows`, and would check all of another table
    rows: Any = PartRows(parts, parts.n_rows, np.arange(parts.n_features))
    return ScaledRows(rows, np.ones(parts.n_features, dtype=np.float32) if factors is None else factors)


@dataclass(frozen=True, eq=False)
class _Seen:
    """What choosing basis rows looks at of a problem."""

    X: Any
    n_features: int
    unscored_rows: Integers
    weights: None = None


@dataclass(frozen=True, eq=False)
class _Names:
    """
    Numbers of rows among those of all parts.

    compared, query: rows that are compared, query by query and by score, and the first row of each one's query.
    unscored: rows without a score.
    """

    compared: Integers
    query: Integers
    unscored: Integers

    def __add__(self, other: _Names) -> _Names:
        both = zip(
            (self.compared, self.query, self.unscored), (other.compared, other.query, other.unscored), strict=True
        )
        return _Names(*map(np.concatenate, both))

    @property
    def frame(self) -> _Compared:
        """The compared rows as one machine lists them."""
        rows = self.compared[np.argsort(self.query, kind="stable")]
        return _Compared(rows, len(np.unique(self.query)))


@dataclass(frozen=True, eq=False)
class _Compared:
    """What choosing basis rows looks at of a frame."""

    rows: Integers
    n_queries: int


def _names_part(problems: Iterator[WholeQueries], settings: tuple[str, bool]) -> _Names | None:
    total = None
    for problem in problems:
        data, numbers = problem.data, problem.numbers
        frame = Frame.of(data, *settings)
        first = numbers[data.queries.order[data.starts[:-1]]][data.queries.codes[frame.rows]]
        own = _Names(numbers[frame.rows], first, numbers[data.unscored_rows])
        total = own if total is None else total + own
    return total


def _summed(parts: Parts, maps: tuple[FeatureMap, ...], wanted: SumSettings, factors: Floats | None) -> Summarised:
    sums: Sums = parts.summed(sum_part, wanted, "sums")
    return _summary(parts, maps, sums, *sums.moments(), factors, wanted.query_weight, wanted.ties)


def _summary(
    parts: Parts, maps: tuple[FeatureMap, ...], sums: Sums, scored: Moments, unscored: Moments | None,
    factors: Floats | None, query_weight: str, ties: bool,
) -> Summarised:  # fmt: skip
    pairs, drawn, _, drawn_unscored, _ = sums.weights.value
    weights = (float(drawn if ties else pairs), float(drawn_unscored))
    summary = Summary(maps, scored, unscored, weights, sums.free, query_weight, ties, factors, parts.n_features)
    return Summarised(summary, sums)


def _width(columns: Integers | None, n_features: int) -> int:
    return n_features if columns is None else len(columns)


@dataclass(frozen=True, eq=False)
class _Judging:
    """What every task of leave-query-out is told."""

    summary: Summary
    metric: str
    ridges: list[Ridge]
    alphas: Floats
    sizes: Sizes


def _sizes(found: Summarised) -> Sizes:
    """What rounding errors are relative to, as `corank.rls.systems.FeatureSystem` has it."""
    summary, compared = found.summary, found.sums.weights.value[4]
    bases = [phi.basis for phi in summary.maps if phi.basis is not None]
    length = sum(float(np.mean(basis.diagonal(basis.rows))) for basis in bases)
    return Sizes(
        float(np.sqrt(summary.scored.pair[-1, -1] / summary.weights[0])), float(compared / summary.weights[0]) * length,
        max(phi.inflation for phi in summary.maps),
    )  # fmt: skip


def _judge_part(problems: Iterator[WholeQueries], told: _Judging) -> ExactSum | None:
    """Add up a metric over the queries of a part, and how many have one, for each coupling and alpha."""
    total = None
    for problem in problems:
        own = ExactSum.of(_values(problem.data, told))
        total = own if total is None else total + own
    return total


def _values(data: RankingData, told: _Judging) -> Floats:
    """Return for each query its metric, 0 where it has none, and whether it has one; a column for each candidate."""
    summary, alphas = told.summary, told.alphas
    frame = Frame.of(data, summary.query_weight, summary.ties, summary.weights[0])
    assert isinstance(frame, RowFrame)
    X = data.X if summary.factors is None else ScaledRows(data.X, summary.factors)
    pieces = [
        views_out(told.ridges, Z, t, starts, frame.shares[some], summary.blocks, alphas, told.sizes)
        for some, starts, Z, t in frame.designs(X, stack_features(summary.maps))
    ]
    n_candidates = len(told.ridges) * len(alphas)
    if not pieces:
        return np.zeros((0, 2 * n_candidates))
    held = [Held(*map(np.concatenate, zip(*of_one, strict=True))) for of_one in zip(*pieces, strict=True)]
    found = np.column_stack([result.values for one in held for result in frame.results(one, told.metric)])
    return np.hstack([np.nan_to_num(found), (~np.isnan(found)).astype(np.float64)])
