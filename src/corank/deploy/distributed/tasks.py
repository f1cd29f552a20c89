"""
Tasks on one part: count queries, send the rows of queries that move, iterate over complete queries, and sum over them.

The sums of the squared losses are byte-identical for any division into parts: the share of a query is computed from its
own rows, in their order, and added in integer bins, so the number of parts, the order of the work and the machines do
not change a byte, up to 192 columns. Above, blocks of rows are multiplied by BLAS, and sums agree to about 1e-12. The
cost is O(n d²) time and O(d²) memory in addition to the rows of a part; each part sends O(d²) numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags

from corank.base.kernels.basis import FeatureMap, stack_features
from corank.base.pairs import Moments
from corank.base.pairs.losses import query_factors
from corank.base.pairs.moments import RowPass, prepare_pass, take
from corank.base.solvers.penalty import Freedom, freedom
from corank.base.transformers import QueryScaler
from corank.core.exact_sums import (
    Bins,
    ExactSum,
    add_pair_products,
    add_sparse_spreads,
    add_spreads,
    add_triangle,
    fold,
    square,
)
from corank.core.rows.access import ScaledRows, as_core_rows
from corank.core.rows.products import MAX_COLUMNS
from corank.core.threads import cut, n_threads, parallel_map
from corank.data.columns import factors_of_spread
from corank.data.inputs import require_squares
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows, require_finite
from corank.deploy.distributed.sources import PartInfo, Reader, Rows, kind_of_ids

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Moving = dict[int, "NumberedRows"]


@dataclass(frozen=True, eq=False)
class QueryCounts:
    """
    The distinct query ids of a part.

    ids, counts, firsts (n_queries,): ids in the order of their first rows, numbers of rows, and first rows.
    """

    ids: NDArray[Any]
    counts: Integers
    firsts: Integers
    info: PartInfo  # the rest of `PartInfo`, without query ids of rows

    @property
    def n_rows(self) -> int:
        """Number of rows of the part."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Routing:
    """Where the rows of a part move whose queries are spread over parts."""

    first_row: int  # number of its first row among the rows of all parts
    straddling: NDArray[Any]  # ids of such queries with rows in this part
    homes: Integers  # the part that each of them moves to
    here: int  # number of this part


@dataclass(frozen=True, eq=False)
class NumberedRows:
    """Rows and their numbers among the rows of all parts."""

    rows: Rows
    numbers: Integers


@dataclass(frozen=True, eq=False)
class WholeQueries:
    """Complete queries of a part."""

    data: RankingData
    numbers: Integers  # (n,): numbers of the rows among the rows of all parts


def sum_up(parts: Iterable[Any]) -> Any:
    """Add up results in their order; None is the result of a part without queries."""
    total = None
    for part in parts:
        total = part if total is None else total if part is None else total + part
    return total


def count(source: Any, reader: Reader) -> QueryCounts:
    """Count the rows of each query of a part."""
    info = reader.inspect(source)
    queries = Queries.of(info.qid, len(info.qid))
    kind_of_ids(queries.ids)
    ids = queries.ids.astype(np.str_) if queries.ids.dtype.kind in "OT" and len(queries) else queries.ids
    return QueryCounts(ids, queries.sizes, queries.order[queries.starts[:-1]], info._replace(qid=ids[:0]))


def _is_among(qid: NDArray[Any], ids: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isin(qid.astype(np.str_) if qid.dtype.kind in "OT" else qid, ids)


def send(source: Any, reader: Reader, routing: Routing) -> Moving:
    """Read the rows of a part that move, by destination."""
    rows, moving = reader.rows(source), {}
    for home in np.unique(routing.homes[routing.homes != routing.here]):
        i = np.flatnonzero(_is_among(rows.qid, routing.straddling[routing.homes == home]))
        moving[int(home)] = NumberedRows(rows.take(i), routing.first_row + i)
    return moving


def pick(moving: Moving, home: int) -> NumberedRows:
    """Return the rows for one destination."""
    return moving[home]


def bytes_of(moved: NumberedRows) -> int:
    """Return the number of bytes that move."""
    return moved.rows.nbytes


def over_scaled(problems: Iterator[WholeQueries], task: tuple[QueryScaler, Callable[..., Any], Any]) -> Any:
    """Run a task on queries whose columns are scaled."""
    scaler, function, settings = task
    return function((_scaled(problem, scaler) for problem in problems), settings)


def _scaled(problem: WholeQueries, scaler: QueryScaler) -> WholeQueries:
    data = problem.data
    X = as_rows(scaler.transform(laid_out_for(scaler, data.X), qid=data.queries.codes))
    return replace(problem, data=replace(data, X=X))


def laid_out_for(model: Any, X: Any) -> Any:
    """Return dense rows for a model that does not support sparse ones; text is dense or sparse part by part."""
    return X.toarray() if sparse.issparse(X) and not get_tags(model).input_tags.sparse else X


def take_rows(problems: Iterator[WholeQueries], wanted: Integers) -> list[tuple[Integers, Any]]:
    """Return the wanted rows of this part and their numbers."""
    rows = []
    for problem in problems:
        i = np.flatnonzero(np.isin(problem.numbers, wanted))
        rows.append((problem.numbers[i], problem.data.X[i]))
    return rows


def over_whole(
    source: Any,
    reader: Reader,
    routing: Routing,
    arrivals: list[NumberedRows],
    function: Callable[..., Any],
    settings: Any,
) -> Any:
    """Run a task on the complete queries of a part."""
    return function(_problems(source, reader, routing, arrivals), settings)


def _problems(source: Any, reader: Reader, routing: Routing, arrivals: list[NumberedRows]) -> Iterator[WholeQueries]:
    """Yield the queries of this part alone, then those that are spread over parts and move to this one."""
    rows = reader.rows(source)
    if not len(routing.straddling):
        yield _problem(NumberedRows(rows, routing.first_row + np.arange(len(rows.y))))
        return
    alone = np.flatnonzero(~_is_among(rows.qid, routing.straddling))
    if len(alone):
        # consecutive rows are a view of X, not a copy
        is_run = alone[-1] - alone[0] == len(alone) - 1
        chosen = slice(alone[0], alone[-1] + 1) if is_run else alone
        yield _problem(NumberedRows(rows.take(chosen), routing.first_row + alone))
    homed = routing.straddling[routing.homes == routing.here]
    if len(homed):
        i = np.flatnonzero(_is_among(rows.qid, homed))
        yield _problem(joined([NumberedRows(rows.take(i), routing.first_row + i), *arrivals]))


def joined(pieces: list[NumberedRows]) -> NumberedRows:
    """Join rows in the order of their numbers."""
    numbers = np.concatenate([piece.numbers for piece in pieces])
    order = np.argsort(numbers)
    X = [piece.rows.X for piece in pieces]
    stacked = sparse.vstack(X).tocsr() if any(map(sparse.issparse, X)) else np.concatenate(X)
    y, qid = (np.concatenate([piece.rows[k] for piece in pieces])[order] for k in (1, 2))
    return NumberedRows(Rows(stacked[order], y, qid), numbers[order])


def _problem(numbered: NumberedRows) -> WholeQueries:
    rows = numbered.rows
    # readers allow missing values
    require_finite(rows.X)
    queries = Queries.of(rows.qid, len(rows.y))
    return WholeQueries(RankingData.of_checked(rows.X, rows.y, queries), numbered.numbers)


# number of rows from which threads pay off
_MIN_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class SumSettings:
    """
    Which sums to compute.

    maps, factors: feature maps of columns times factors; None uses the columns as they are.
    """

    query_weight: str = "pairs"  # query_weight, ties: see `corank.base.pairs.Moments.of`
    ties: bool = False
    unscored: bool = False  # whether to sum over pairs of unjudged rows, too
    maps: tuple[FeatureMap, ...] | None = None
    factors: Floats | None = None


@dataclass(frozen=True, eq=False)
class Spread:
    """Sums from which columns are scaled."""

    n_rows: int
    sums: ExactSum  # squared deviations of columns from the means of queries, and numbers of non-zero entries

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.n_rows + other.n_rows, self.sums + other.sums)

    @property
    def factors(self) -> Floats:
        """Factors of the columns."""
        return factors_of_spread(self.sums.value.reshape(2, -1) / self.n_rows)


@dataclass(frozen=True, eq=False)
class Sums:
    """
    Sums of some queries; those of different queries add up.

    pair, unscored: ``[Φ y]ᵀ L [Φ y]``, and the same over unjudged rows; None if not computed.
    weights: weight of scored pairs, without and with pairs of a row with itself; the same for unjudged rows; and
        Σ c_q W_q² over the queries with pairs.
    """

    free: Freedom  # number of differences to learn from
    are_grades: bool  # whether all scores are integers from 0 to 10
    spread: Spread
    pair: ExactSum
    unscored: ExactSum | None
    weights: ExactSum

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.free + other.free, self.are_grades and other.are_grades, self.spread + other.spread,
            self.pair + other.pair, _both(self.unscored, other.unscored), self.weights + other.weights,
        )  # fmt: skip

    def moments(self) -> tuple[Moments, Moments | None]:
        """Return the sums over scored and over unjudged rows."""
        weights = self.weights.value
        unscored = None if self.unscored is None else Moments(square(self.unscored.value), None, float(weights[2]))
        return Moments(square(self.pair.value), None, float(weights[0])), unscored


def sum_part(problems: Iterator[WholeQueries], settings: SumSettings) -> Sums | None:
    """Sum over the queries of a part; None without queries."""
    total: Sums | None = sum_up(_sums(problem.data, settings) for problem in problems)
    return total


def spread_part(problems: Iterator[WholeQueries], settings: None) -> Spread | None:
    """Sum the spread of columns over the queries of a part; None without queries."""
    total: Spread | None = sum_up(_spread(problem.data) for problem in problems)
    return total


def _sums(data: RankingData, settings: SumSettings) -> Sums:
    assert data.y is not None
    require_squares(data.y)
    scores = data.y[data.is_scored]
    scaled = data if settings.factors is None else replace(data, X=ScaledRows(data.X, settings.factors))
    features = None if settings.maps is None else stack_features(settings.maps)
    how: tuple[Any, ...] = (settings.ties, settings.query_weight)
    scored = prepare_pass(scaled, features, "scored", *how)
    assert isinstance(scored, RowPass)
    pairs, rows = _pair_weights(scored), _row_weights(scored)
    weights = [pairs, _drawn_weights(data, settings.query_weight, "scored"), *3 * [np.zeros(0)]]
    weights[4] = rows[pairs > 0.0] ** 2
    unscored = None
    if settings.unscored:
        rows_pass = prepare_pass(scaled, features, "unscored", *how)
        assert isinstance(rows_pass, RowPass)
        unscored = _over_runs(rows_pass)
        weights[2:4] = _pair_weights(rows_pass), _drawn_weights(data, settings.query_weight, "unscored")
    # overflow is reported by the solver
    with np.errstate(over="ignore", invalid="ignore"):
        pair = _over_runs(scored)
    sums = [ExactSum.of(terms[:, None]) for terms in weights]
    total = ExactSum(np.concatenate([item.top for item in sums]), np.hstack([item.limbs for item in sums]))
    are_grades = bool(((scores >= 0) & (scores <= 10) & (scores == np.round(scores))).all())
    return Sums(freedom(data, settings.ties), are_grades, _spread(data), pair, unscored, total)


def _both(this: ExactSum | None, other: ExactSum | None) -> ExactSum | None:
    return None if this is None or other is None else this + other


def _over_runs(rows_pass: RowPass) -> ExactSum:
    """Add up the products of columns over pairs of rows, on threads."""
    d = rows_pass.width
    starts = np.append(np.flatnonzero(np.diff(rows_pass.slots.query, prepend=-1)), len(rows_pass.order))

    def run(first: int, last: int) -> ExactSum:
        bins, carried = Bins.of(d * (d + 1) // 2), np.empty((3, rows_pass.width))
        block, workspace = np.empty((rows_pass.block, rows_pass.width)), np.empty((3 * rows_pass.block // 2 + 2, d))
        begin, stop = int(starts[first]), int(starts[last])
        while begin < stop:
            # complete queries, or a piece of a long one that begins at a fixed place in it
            full = int(starts[np.searchsorted(starts, begin + rows_pass.block, side="right") - 1])
            end = min(full if full > begin else begin + rows_pass.block, stop)
            rows, F = rows_pass.order[begin:end], block[: end - begin]
            F[:, :-1], F[:, -1] = rows_pass.features(take(rows_pass.X, rows)), rows_pass.y[rows]
            _add_pairs(rows_pass, begin, F, carried, workspace, bins)
            begin = end
        return bins.total()

    runs = cut(starts, n_threads() if len(rows_pass.order) > _MIN_ROWS else 1)
    total: ExactSum = sum_up(parallel_map(run, runs) or [Bins.of(d * (d + 1) // 2).total()])
    return total


def _add_pairs(rows_pass: RowPass, first: int, F: Floats, carried: Floats, workspace: Floats, bins: Bins) -> None:
    n, d = F.shape
    if d <= MAX_COLUMNS:
        add_pair_products(F, rows_pass.slots, first, carried, workspace, bins)
        return
    Z, plus, minus = np.empty((n, d)), np.empty((n // 2 + 1, d)), np.empty((n, d))
    n_plus, n_minus = fold(F, rows_pass.slots, first, carried[0], carried[1:], Z, plus, minus)
    P, M = plus[:n_plus], minus[:n_minus]
    add_triangle(Z.T @ Z + P.T @ P - M.T @ M, d, bins)


def _spread(data: RankingData) -> Spread:
    X, d = data.X, data.n_features
    w, order, starts = np.ones(data.n_rows), data.queries.order, data.starts

    def run(first: int, last: int) -> ExactSum:
        bins = Bins.of(2 * d)
        if sparse.issparse(X):
            add_sparse_spreads(as_core_rows(X), d, w, order, starts, first, last, bins)
        else:
            add_spreads(X, w, order, starts, first, last, bins)
        return bins.total()

    totals = parallel_map(run, cut(starts, n_threads() if data.n_rows > _MIN_ROWS else 1))
    return Spread(data.n_rows, sum_up(totals))


def _pair_weights(rows_pass: RowPass) -> Floats:
    """Return the weight of the pairs of each query, see `corank.base.pairs.moments.RowPass.pair_weight`."""
    slots = rows_pass.slots
    own = slots.diagonal - np.where(slots.grade < 0, slots.weight**2, 0.0)
    starts = np.flatnonzero(np.diff(slots.query, prepend=-1))
    return np.add.reduceat(own, starts) / 2 if len(starts) else np.zeros(0)


def _row_weights(rows_pass: RowPass) -> Floats:
    """Return √c_q W_q for each query."""
    starts = np.flatnonzero(np.diff(rows_pass.slots.query, prepend=-1))
    return np.add.reduceat(rows_pass.slots.weight, starts) if len(starts) else np.zeros(0)


def _drawn_weights(data: RankingData, query_weight: str, rows: str) -> Floats:
    """Return the weight of the pairs of each query, see `corank.base.pairs.losses.drawn_weight`."""
    members = data.scored_rows if rows == "scored" else data.unscored_rows
    n_q = np.bincount(data.queries.codes[members], minlength=len(data.queries)).astype(np.float64)
    if query_weight == "rows":
        return n_q / 2
    return np.asarray(query_factors(n_q, query_weight) * n_q**2 / 2)
