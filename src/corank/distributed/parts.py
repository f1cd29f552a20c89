"""
Parts: rows in many places, seen as whole queries.

The first pass gathers the query ids of each part. A query that stands in several parts moves to the one that holds most
of its rows, of equals to the first; nothing else moves. Its rows are put together in the order of parts and of rows in
them. The second pass then sees every query whole, in one place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.distributed.engine import Engine, Here
from corank.distributed.on_dask import Dask
from corank.distributed.sources import Found, Reader, Rows, described, kind_of_ids, sources_of
from corank.errors import InputError

Integers = NDArray[np.int64]
Parcels = dict[int, "Parcel"]


@dataclass(frozen=True)
class Pass:
    """
    One pass over the parts.

    Attributes
    ----------
    name : str
        What was done.
    n_tasks : int
        Tasks, one a part.
    seconds : float
        From the first task to the last result, by the clock.
    bytes_moved : int
        Bytes of rows that went from one part to another.
    """

    name: str
    n_tasks: int
    seconds: float
    bytes_moved: int = 0


@dataclass(frozen=True, eq=False)
class Census:
    """
    The query ids of a part, each once.

    ids, counts, firsts (n_queries,): the queries in the order of their first rows, how many rows they have, and these.
    found: what else a first look finds, without the ids of rows.
    """

    ids: NDArray[Any]
    counts: Integers
    firsts: Integers
    found: Found

    @property
    def n_rows(self) -> int:
        """Number of rows of the part."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Share:
    """
    What a part has to do with straddling queries.

    first_row: number of its first row among the rows of all parts.
    straddling: ids of those that have rows here.
    homes: the part that each of them moves to.
    here: number of this part.
    """

    first_row: int
    straddling: NDArray[Any]
    homes: Integers
    here: int


@dataclass(frozen=True, eq=False)
class Parcel:
    """
    Rows of straddling queries on their way.

    numbers (n,): their numbers among the rows of all parts.
    """

    rows: Rows
    numbers: Integers


@dataclass(frozen=True, eq=False)
class Problem:
    """
    Whole queries of a part.

    data: the rows.
    numbers (n,): their numbers among the rows of all parts.
    """

    data: RankingData
    numbers: Integers


@dataclass(eq=False)
class Parts:
    """
    Rows in many places: files, frames or arrays, on this machine or on a cluster.

    Parameters
    ----------
    parts : path, sequence, Dask DataFrame, or tuple of three Dask arrays
        Paths of stores, Parquet files, LETOR or CSV text (a folder that is no store stands for its files, and an
        address such as ``s3://`` is read by fsspec), tuples (X, y, qid), data frames with columns for y and qid, or
        delayed ones of these.
    client : distributed.Client, Engine or None
        Where tasks run; None is this machine, one part after the other.
    split : {"move", "refuse"}
        What is done with a query that stands in several parts.
    unscored, y, qid
        How files and frames are read, see `corank.read`.
    verbose : bool
        Whether to show how far a pass has come, on a terminal or in a notebook.

    Attributes
    ----------
    passes : list of Pass
        What was done so far.

    Examples
    --------
    >>> parts = Parts([([[0.0], [1.0]], [0, 1], ["a", "b"]), ([[2.0]], [1], ["a"])])
    >>> parts.n_rows, parts.n_queries, parts.n_straddling
    (3, 2, 1)
    """

    parts: Any
    client: Any = None
    split: Literal["move", "refuse"] = "move"
    unscored: float | None = None
    y: str | None = "label"
    qid: str | None = None
    verbose: bool = False
    passes: list[Pass] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._held: list[Any] | None = None
        if self.split not in ("move", "refuse"):
            raise InputError(f"split is {self.split!r}; choose 'move' or 'refuse'.")
        self.sources = sources_of(self.parts)
        self.engine: Engine
        if isinstance(self.client, Engine):
            self.engine = self.client
        else:
            self.engine = Here(self.verbose) if self.client is None else Dask(self.client, self.verbose)

    @cached_property
    def census(self) -> list[Census]:
        """Query ids of each part: the first pass."""
        began, reader = time.perf_counter(), Reader(self.unscored, self.y, self.qid)
        handles = self.engine.map(_count, self.sources, [reader] * len(self.sources), name="query ids")
        found: list[Census] = self.engine.gather(handles)
        self._require_alike(found)
        self.passes.append(Pass("query ids", len(found), time.perf_counter() - began))
        return found

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return sum(one.n_rows for one in self.census)

    @cached_property
    def n_features(self) -> int:
        """Number of columns of all parts."""
        return max(one.found.n_features or 0 for one in self.census)

    @property
    def n_queries(self) -> int:
        """Number of queries of all parts."""
        return len(self._ids[0])

    @property
    def n_straddling(self) -> int:
        """Number of queries that stand in several parts."""
        return int(np.count_nonzero(self._homes >= 0))

    @property
    def reader(self) -> Reader:
        """How parts are read, now that their columns are known."""
        return Reader(self.unscored, self.y, self.qid, self.n_features)

    @property
    def lowest_row(self) -> int:
        """Number of the first row of the lowest query id: a row that the set of rows alone decides."""
        for share, one in zip(self._shares, self.census, strict=True):
            at = np.flatnonzero(one.ids == self._ids[0][0])
            if one.n_rows and len(at):
                return share.first_row + int(one.firsts[at[0]])
        return 0

    def kept(self) -> Parts:
        """
        Keep the rows where they are summed, for methods that pass over them many times.

        Returns
        -------
        Parts
            The same parts. On a cluster, tasks find rows in the memory of the workers from now on; on one machine each
            pass reads them again.
        """
        if self._held is None and self.engine.keeps:
            self._held = self.over(_hold, None, "rows")
        return self

    def over(self, function: Callable[..., Any], settings: Any, name: str) -> list[Any]:
        """
        Run a task for each part that has rows, as whole queries.

        Parameters
        ----------
        function : callable
            Takes an iterator of `Problem` and `settings`.
        settings : object
            What all tasks are told.
        name : str
            What is done.

        Returns
        -------
        list
            A handle for each of these parts.
        """
        full = self._full
        if self._held is not None:
            return self.engine.map(_over_held, self._held, [function] * len(full), [settings] * len(full), name=name)
        return self.engine.map(
            _over_whole,
            [self.sources[at] for at in full],
            [self.reader] * len(full),
            [self._shares[at] for at in full],
            [self._arrivals[at] for at in full],
            [function] * len(full),
            [settings] * len(full),
            name=name,
        )

    def summed(self, function: Callable[..., Any], settings: Any, name: str) -> Any:
        """
        Add up what a task returns for each part, in a tree by number.

        Parameters
        ----------
        function, settings, name
            As in `over`; what the function returns can be added.

        Returns
        -------
        object
            The sum.
        """
        _ = self._arrivals
        began = time.perf_counter()
        handles = self.over(function, settings, name)
        (total,) = self.engine.gather([self.engine.reduce(_sum, handles, name)])
        self.passes.append(Pass(name, len(handles), time.perf_counter() - began))
        return total

    def rows(self, numbers: Integers) -> Any:
        """
        Fetch rows from where they are.

        Parameters
        ----------
        numbers : array of int64
            Numbers of rows, counted through all parts.

        Returns
        -------
        array or CSR matrix
            The rows, in this order.
        """
        first = np.array([share.first_row for share in self._shares])
        part = np.searchsorted(first, numbers, side="right") - 1
        # of parts that begin at one row, the last is the one with rows
        used = np.unique(part)
        wanted = [numbers[part == at] - first[at] for at in used]
        handles = self.engine.map(
            _rows_of, [self.sources[at] for at in used], [self.reader] * len(used), wanted, name="chosen rows"
        )
        pieces = self.engine.gather(handles)
        X = sparse.vstack(pieces).tocsr() if any(map(sparse.issparse, pieces)) else np.concatenate(pieces)
        order = np.concatenate([np.flatnonzero(part == at) for at in used])
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return X[back]

    def _require_alike(self, found: list[Census]) -> None:
        """Raise one sentence where parts differ in columns or in the kind of their query ids."""
        seen: dict[str, tuple[int, Any]] = {}
        is_open = all(one.found.is_open for one in found if one.n_rows)
        for at, one in enumerate(found):
            if not one.n_rows:
                continue
            facts: dict[str, Any] = {"query ids": kind_of_ids(one.ids), "columns": one.found.names}
            facts["features"] = None if is_open else one.found.n_features
            for what, value in facts.items():
                if value is None:
                    continue
                before, other = seen.setdefault(what, (at, value))
                if other != value:
                    raise InputError(
                        f"{described(self.sources, before)} has {_told(what, other, value)}, but "
                        f"{described(self.sources, at)} has {_told(what, value, other)}; bring all parts to one form."
                    )
        if not seen:
            raise InputError(f"none of the {len(found)} parts has a row; pass parts with rows.")

    @cached_property
    def _full(self) -> list[int]:
        return [at for at, one in enumerate(self.census) if one.n_rows]

    @cached_property
    def _ids(self) -> tuple[NDArray[Any], Integers]:
        """All query ids, and the number of each id of each part that has rows, part after part."""
        parts = [self.census[at].ids for at in self._full]
        ids, codes = np.unique(np.concatenate(parts), return_inverse=True)
        return ids, codes

    @cached_property
    def _homes(self) -> Integers:
        """The part that each query moves to; -1 where it stands in one part only."""
        ids, codes = self._ids
        part = np.repeat(self._full, [len(self.census[at].ids) for at in self._full])
        counts = np.concatenate([self.census[at].counts for at in self._full])
        # the last of each query is the part that holds most of it, of equals the first
        order = np.lexsort((-part, counts, codes))
        last = np.append(np.flatnonzero(np.diff(codes[order])), len(order) - 1)
        homes = part[order][last]
        return np.where(np.bincount(codes, minlength=len(ids)) > 1, homes, -1)

    @cached_property
    def _shares(self) -> list[Share]:
        homes, codes = self._homes, self._ids[1]
        if self.split == "refuse" and self.n_straddling:
            at = int(np.flatnonzero(homes >= 0)[0])
            places = [described(self.sources, k) for k in self._full if self._ids[0][at] in self.census[k].ids]
            raise InputError(
                f"query {self._ids[0][at]!s} stands in {' and '.join(places[:3])}, and {self.n_straddling} queries in "
                "all straddle parts; write whole queries into each part, or pass split='move'."
            )
        shares, begin, first_row = [], 0, 0
        for at, one in enumerate(self.census):
            own = homes[codes[begin : begin + len(one.ids)]] if one.n_rows else np.empty(0, dtype=np.int64)
            begin += len(own)
            shares.append(Share(first_row, one.ids[: len(own)][own >= 0], own[own >= 0], at))
            first_row += one.n_rows
        return shares

    @cached_property
    def _arrivals(self) -> list[list[Any]]:
        """Handles of the parcels that come to each part."""
        began, arrivals = time.perf_counter(), [list[Any]() for _ in self.sources]
        senders = [at for at in self._full if (self._shares[at].homes != at).any()]
        if not senders:
            return arrivals
        sent = self.engine.map(
            _send, [self.sources[at] for at in senders], [self.reader] * len(senders),
            [self._shares[at] for at in senders], name="straddling rows",
        )  # fmt: skip
        routes = [(at, home) for at in senders for home in np.unique(self._shares[at].homes) if home != at]
        by_sender = dict(zip(senders, sent, strict=True))
        parcels = self.engine.map(
            _pick, [by_sender[at] for at, _ in routes], [int(home) for _, home in routes], name="parcels"
        )
        for (_, home), parcel in zip(routes, parcels, strict=True):
            arrivals[home].append(parcel)
        moved = sum(self.engine.gather(self.engine.map(_weigh, parcels, name="bytes moved")))
        self.passes.append(Pass("straddling rows", len(senders), time.perf_counter() - began, moved))
        return arrivals


def _told(what: str, value: Any, other: Any) -> str:
    if what == "query ids":
        return f"query ids that are {value}"
    if what == "features":
        return f"{value} columns"
    if len(value) != len(other):
        return f"{len(value)} columns"
    at = next(k for k, (a, b) in enumerate(zip(value, other, strict=True)) if a != b)
    return f"{value[at]!r} as column {at + 1}"


def _sum(parts: Sequence[Any]) -> Any:
    """Add results up; None is that of a part whose queries all have their home elsewhere."""
    total = None
    for part in parts:
        total = part if total is None else total if part is None else total + part
    return total


def _count(source: Any, reader: Reader) -> Census:
    found = reader.look(source)
    queries = Queries.of(found.qid, len(found.qid))
    kind_of_ids(queries.ids)
    ids = queries.ids.astype(np.str_) if queries.ids.dtype.kind in "OT" and len(queries) else queries.ids
    return Census(ids, queries.sizes, queries.order[queries.starts[:-1]], found._replace(qid=ids[:0]))


def _is_among(qid: NDArray[Any], ids: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isin(qid.astype(np.str_) if qid.dtype.kind in "OT" else qid, ids)


def _send(source: Any, reader: Reader, share: Share) -> Parcels:
    """Read the rows of a part that move, each for its home."""
    rows, parcels = reader.rows(source), {}
    for home in np.unique(share.homes[share.homes != share.here]):
        at = np.flatnonzero(_is_among(rows.qid, share.straddling[share.homes == home]))
        parcels[int(home)] = Parcel(rows.take(at), share.first_row + at)
    return parcels


def _pick(parcels: Parcels, home: int) -> Parcel:
    return parcels[home]


def _weigh(parcel: Parcel) -> int:
    return parcel.rows.nbytes


def _rows_of(source: Any, reader: Reader, numbers: Integers) -> Any:
    X = reader.rows(source).X[numbers]
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def _hold(problems: Iterator[Problem], settings: None) -> list[Problem]:
    return list(problems)


def _over_held(held: list[Problem], function: Callable[..., Any], settings: Any) -> Any:
    return function(iter(held), settings)


def _over_whole(
    source: Any, reader: Reader, share: Share, arrivals: list[Parcel], function: Callable[..., Any], settings: Any
) -> Any:
    return function(_problems(source, reader, share, arrivals), settings)


def _problems(source: Any, reader: Reader, share: Share, arrivals: list[Parcel]) -> Iterator[Problem]:
    """Yield the queries that stand here alone, and those that straddle and have their home here."""
    rows = reader.rows(source)
    if not len(share.straddling):
        yield _problem(rows, share.first_row + np.arange(len(rows.y)))
        return
    alone = np.flatnonzero(~_is_among(rows.qid, share.straddling))
    if len(alone):
        # a run of neighbours is a window on X, not a copy
        is_run = alone[-1] - alone[0] == len(alone) - 1
        chosen = slice(alone[0], alone[-1] + 1) if is_run else alone
        yield _problem(rows.take(chosen), share.first_row + alone)
    homed = share.straddling[share.homes == share.here]
    if len(homed):
        at = np.flatnonzero(_is_among(rows.qid, homed))
        yield _joined([Parcel(rows.take(at), share.first_row + at), *arrivals])


def _joined(parcels: list[Parcel]) -> Problem:
    """Put rows together in the order of their numbers."""
    numbers = np.concatenate([one.numbers for one in parcels])
    order = np.argsort(numbers)
    X = [one.rows.X for one in parcels]
    stacked = sparse.vstack(X).tocsr() if any(map(sparse.issparse, X)) else np.concatenate(X)
    y, qid = (np.concatenate([one.rows[k] for one in parcels])[order] for k in (1, 2))
    return _problem(Rows(stacked[order], y, qid), numbers[order])


def _problem(rows: Rows, numbers: Integers) -> Problem:
    queries = Queries.of(rows.qid, len(rows.y))
    return Problem(RankingData.of_checked(rows.X, rows.y, queries), numbers)
