"""
Parts of a data set, seen as complete queries.

The first pass collects the query ids of each part. A query whose rows are in several parts moves to the part that holds
most of its rows (the first of equals); no other row moves. Its rows are joined in the order of parts and of rows in
them. Later passes see every query complete, in one place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank._moved import old_parameters
from corank.base.transformers import QueryScaler
from corank.data.column_roles import ColumnChoice
from corank.deploy.distributed.engine import DaskEngine, LocalEngine
from corank.deploy.distributed.sources import Reader, kind_of_ids, part_name, sources_of
from corank.deploy.distributed.tasks import (
    QueryCounts,
    Routing,
    bytes_of,
    count,
    over_scaled,
    over_whole,
    pick,
    send,
    sum_up,
    take_rows,
)
from corank.errors import InputError

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Pass:
    """One pass through the parts."""

    name: str  # name of the pass
    n_tasks: int  # number of tasks, one per part
    seconds: float  # wall-clock time
    bytes_moved: int = 0  # bytes of rows that moved between parts


@old_parameters(unscored="unjudged")
@dataclass(eq=False)
class Parts:
    """
    Parts of a data set: files, frames or arrays, on this machine or on a cluster.

    parts: Paths of stores, Parquet files, LETOR or CSV text, tuples (X, y, qid), data frames with columns for y and
        qid, or delayed ones of these. A folder that is not a store means its files. An address such as ``s3://`` is
        read by fsspec.
    client: Where tasks run; None means this machine, one part after the other. Dask unpickles what workers send: use
        trusted clusters only.
    unjudged, y, qid, docid, drop, keep: How files and frames are read, see `corank.read`.
    """

    parts: Any
    client: Any = None
    split: Literal["move", "refuse"] = "move"  # how to treat a query whose rows are in several parts
    unjudged: float | None = None
    y: str | Literal[False] | None = None
    qid: str | None = None
    docid: str | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    verbose: bool = False  # whether to show a progress bar on a terminal or in a notebook
    passes: list[Pass] = field(default_factory=list)  # the passes so far

    def __post_init__(self) -> None:
        self._scaler: QueryScaler | None = None
        if self.split not in ("move", "refuse"):
            raise InputError(f"split is {self.split!r}; choose 'move' or 'refuse'.")
        self.sources = sources_of(self.parts)
        self.engine: LocalEngine | DaskEngine
        if isinstance(self.client, LocalEngine | DaskEngine):
            self.engine = self.client
        else:
            self.engine = LocalEngine(self.verbose) if self.client is None else DaskEngine(self.client, self.verbose)

    @cached_property
    def census(self) -> list[QueryCounts]:
        """Query ids of each part, from the first pass."""
        began, reader = time.perf_counter(), Reader(self.unjudged, self._columns)
        handles = self.engine.map(count, self.sources, [reader] * len(self.sources), name="query ids")
        result: list[QueryCounts] = self.engine.gather(handles)
        self._require_alike(result)
        self.passes.append(Pass("query ids", len(result), time.perf_counter() - began))
        return result

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return sum(item.n_rows for item in self.census)

    @property
    def n_features(self) -> int:
        """Number of columns of all parts."""
        return max(item.info.n_features or 0 for item in self.census)

    @property
    def feature_names(self) -> tuple[Any, ...] | None:
        """Column labels of frames, CSV and Parquet files, which a fitted model remembers; None without any."""
        return next((item.info.feature_names for item in self.census if item.info.feature_names), None)

    @property
    def n_queries(self) -> int:
        """Number of queries of all parts."""
        return len(self._ids[0])

    @property
    def n_straddling(self) -> int:
        """Number of queries whose rows are in several parts."""
        return int(np.count_nonzero(self._homes >= 0))

    @property
    def reader(self) -> Reader:
        """Reader of parts with the common number of columns."""
        return Reader(self.unjudged, self._columns, self.n_features)

    @property
    def _columns(self) -> ColumnChoice:
        return ColumnChoice(self.y, self.qid, self.docid, drop=self.drop, keep=self.keep)

    def scaled(self, scaler: QueryScaler) -> Parts:
        """Scale the columns of each query in each pass."""
        _ = self._arrivals
        other = copy(self)
        other._scaler = scaler
        return other

    def over(self, function: Callable[..., Any], settings: Any, name: str) -> list[Any]:
        """Run a task for each part that has rows, on complete queries."""
        return self._over(self._full, function, settings, name)

    def summed(self, function: Callable[..., Any], settings: Any, name: str) -> Any:
        """Add up the results of a task for each part, in a tree ordered by number."""
        _ = self._arrivals
        began = time.perf_counter()
        handles = self.over(function, settings, name)
        (total,) = self.engine.gather([self.engine.reduce(sum_up, handles, name)])
        self.passes.append(Pass(name, len(handles), time.perf_counter() - began))
        return total

    def rows(self, numbers: Integers) -> Any:
        """Fetch rows from the parts where their queries are complete."""
        first = np.array([routing.first_row for routing in self._routings])
        # of several parts with one first row, the last one has rows
        used = np.unique(np.searchsorted(first, numbers, side="right") - 1)
        places = np.unique(np.concatenate([used, *(self._routings[i].homes for i in used)]))
        handles = self._over(places.tolist(), take_rows, np.unique(numbers), "chosen rows")
        result = [item for some in self.engine.gather(handles) for item in some]
        known, pieces = np.concatenate([own for own, _ in result]), [rows for _, rows in result]
        X = sparse.vstack(pieces).tocsr() if any(map(sparse.issparse, pieces)) else np.concatenate(pieces)
        order = np.argsort(known)
        return X[order[np.searchsorted(known[order], numbers)]]

    def _over(self, places: list[int], function: Callable[..., Any], settings: Any, name: str) -> list[Any]:
        """Run a task for some of the parts."""
        n = len(places)
        if self._scaler is not None:
            function, settings = over_scaled, (self._scaler, function, settings)
        return self.engine.map(
            over_whole, [self.sources[i] for i in places], [self.reader] * n, [self._routings[i] for i in places],
            [self._arrivals[i] for i in places], [function] * n, [settings] * n, name=name,
        )  # fmt: skip

    def _require_alike(self, counts: list[QueryCounts]) -> None:
        """Raise if parts differ in columns or in the type of their query ids."""
        seen: dict[str, tuple[int, Any]] = {}
        is_open = all(item.info.is_open for item in counts if item.n_rows)
        for i, item in enumerate(counts):
            if not item.n_rows:
                continue
            facts: dict[str, Any] = {"query ids": kind_of_ids(item.ids), "columns": item.info.names}
            facts["features"] = None if is_open else item.info.n_features
            for what, value in facts.items():
                if value is None:
                    continue
                before, other = seen.setdefault(what, (i, value))
                if other != value:
                    raise InputError(
                        f"{part_name(self.sources, before)} has {_describe(what, other, value)}, but "
                        f"{part_name(self.sources, i)} has {_describe(what, value, other)}; make all parts alike."
                    )
        if not seen:
            raise InputError(f"all {len(counts)} parts are empty; pass parts with rows.")

    @cached_property
    def _full(self) -> list[int]:
        return [i for i, item in enumerate(self.census) if item.n_rows]

    @cached_property
    def _ids(self) -> tuple[NDArray[Any], Integers]:
        """All query ids, and for each part with rows the position of each of its ids among them."""
        parts = [self.census[i].ids for i in self._full]
        ids, codes = np.unique(np.concatenate(parts), return_inverse=True)
        return ids, codes

    @cached_property
    def _homes(self) -> Integers:
        """Part that each query moves to; -1 for a query of one part."""
        ids, codes = self._ids
        part = np.repeat(self._full, [len(self.census[i].ids) for i in self._full])
        counts = np.concatenate([self.census[i].counts for i in self._full])
        # the last entry of each query is the part that holds most of its rows, the first of equals
        order = np.lexsort((-part, counts, codes))
        last = np.append(np.flatnonzero(np.diff(codes[order])), len(order) - 1)
        homes = part[order][last]
        return np.where(np.bincount(codes, minlength=len(ids)) > 1, homes, -1)

    @cached_property
    def _routings(self) -> list[Routing]:
        homes, codes = self._homes, self._ids[1]
        if self.split == "refuse" and self.n_straddling:
            i = int(np.flatnonzero(homes >= 0)[0])
            places = [part_name(self.sources, k) for k in self._full if self._ids[0][i] in self.census[k].ids]
            raise InputError(
                f"query {self._ids[0][i]!s} has rows in {' and '.join(places[:3])}, and {self.n_straddling} queries "
                "are spread over parts; write complete queries into each part, or pass split='move'."
            )
        routings, begin, first_row = [], 0, 0
        for i, item in enumerate(self.census):
            own = homes[codes[begin : begin + len(item.ids)]] if item.n_rows else np.empty(0, dtype=np.int64)
            begin += len(own)
            routings.append(Routing(first_row, item.ids[: len(own)][own >= 0], own[own >= 0], i))
            first_row += item.n_rows
        return routings

    @cached_property
    def _arrivals(self) -> list[list[Any]]:
        """Handles of the rows that move to each part."""
        began, arrivals = time.perf_counter(), [list[Any]() for _ in self.sources]
        senders = [i for i in self._full if (self._routings[i].homes != i).any()]
        if not senders:
            return arrivals
        sent = self.engine.map(
            send, [self.sources[i] for i in senders], [self.reader] * len(senders),
            [self._routings[i] for i in senders], name="straddling rows",
        )  # fmt: skip
        routes = [(i, home) for i in senders for home in np.unique(self._routings[i].homes) if home != i]
        by_sender = dict(zip(senders, sent, strict=True))
        moving = self.engine.map(
            pick, [by_sender[i] for i, _ in routes], [int(home) for _, home in routes], name="rows to move"
        )
        for (_, home), parcel in zip(routes, moving, strict=True):
            arrivals[home].append(parcel)
        moved = sum(self.engine.gather(self.engine.map(bytes_of, moving, name="bytes moved")))
        self.passes.append(Pass("straddling rows", len(senders), time.perf_counter() - began, moved))
        return arrivals


def _describe(what: str, value: Any, other: Any) -> str:
    if what == "query ids":
        return f"query ids that are {value}"
    if what == "features":
        return f"{value} columns"
    if len(value) != len(other):
        return f"{len(value)} columns"
    i = next(k for k, (a, b) in enumerate(zip(value, other, strict=True)) if a != b)
    return f"{value[i]!r} as column {i + 1}"
