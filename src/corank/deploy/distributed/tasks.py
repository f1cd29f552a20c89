"""Tasks on one part: count queries, send the rows of queries that move, and iterate over complete queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags

from corank.base.transformers import QueryScaler
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows, require_finite
from corank.deploy.distributed.sources import PartInfo, Reader, Rows, kind_of_ids

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
