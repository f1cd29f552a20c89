"""ClickLog: lists shown to users, and their clicks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.collection import as_texts
from corank.data.inputs import as_numbers
from corank.data.queries import Queries, is_missing
from corank.errors import InputError

Ints = NDArray[np.int64]
MAX_POSITION = 1_000_000
"""Largest position of a list; memory is needed for every position."""


@dataclass(frozen=True, eq=False, repr=False)
class ClickLog:
    """
    Lists that were shown, with one row per document shown; made by `ClickLog.of` or `read_clicks`.

    propensity: Probability that the row is examined, known when the list was made; None if the log has none.
    log_propensity: Logarithm of the probability that the row was shown at its position, given the rows above it, as in
        `Impression`; None if the log has none.
    complete: Whether the row's list is complete; in other lists, documents that were not clicked may be missing. None
        if all lists are complete. Methods that need them leave incomplete lists out, or refuse them.
    """

    impression: Ints  # number of the list of each row, from 0
    qid: NDArray[np.object_]  # qid, docids: query and document of the row
    docids: NDArray[np.object_]
    position: Ints  # position in the list; the first is 1
    clicked: NDArray[np.bool_]  # whether the document was clicked, once or more
    propensity: NDArray[np.float64] | None = None
    complete: NDArray[np.bool_] | None = None
    log_propensity: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        qid: ArrayLike,
        docids: ArrayLike,
        position: ArrayLike,
        clicked: ArrayLike,
        *,
        impression: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        complete: ArrayLike | None = None,
        log_propensity: ArrayLike | None = None,
    ) -> ClickLog:
        """Check a log of lists and clicks."""
        queries, documents = _names(qid), _names(docids)
        n = len(queries)
        places, clicks = as_numbers(position, "position", "position"), as_numbers(clicked, "clicked", "0 or 1")
        for name, values in (("docids", documents), ("position", places), ("clicked", clicks)):
            if len(values) != n:
                raise InputError(f"{name} has {len(values)} values for {n} query ids; pass one for each row shown.")
        _require((places >= 1) & (places <= MAX_POSITION), places, "position", f"a position from 1 to {MAX_POSITION}")
        _require(places == np.floor(places), places, "position", "a whole number")
        _require((clicks == 0) | (clicks == 1), clicks, "clicked", "0 or 1")
        if impression is None:
            same = (queries[1:] == queries[:-1]) & (places[1:] > places[:-1])
            lists = np.cumsum(np.concatenate([np.zeros(min(n, 1)), ~same])).astype(np.int64)
        else:
            lists = Queries.of(impression, n).codes
        chance = None if propensity is None else as_numbers(propensity, "propensity", "probability")
        if chance is not None:
            if len(chance) != n:
                raise InputError(f"propensity has {len(chance)} values for {n} rows shown; pass one for each.")
            _require((chance > 0) & (chance <= 1), chance, "propensity", "a probability above 0")
        whole = None if complete is None else as_numbers(complete, "complete", "0 or 1")
        if whole is not None:
            if len(whole) != n:
                raise InputError(f"complete has {len(whole)} values for {n} rows shown; pass one for each.")
            _require((whole == 0) | (whole == 1), whole, "complete", "0 or 1")
        partial = None if whole is None or whole.all() else whole.astype(bool)
        drawn = None if log_propensity is None else as_numbers(log_propensity, "log_propensity", "logarithm")
        if drawn is not None:
            if len(drawn) != n:
                raise InputError(f"log_propensity has {len(drawn)} values for {n} rows shown; pass one for each.")
            # sums of probabilities may exceed 1 by rounding
            _require((drawn <= 1e-9) & np.isfinite(drawn), drawn, "log_propensity", "the logarithm of a probability")
        log = cls(lists, queries, documents, places.astype(np.int64), clicks.astype(bool), chance, partial, drawn)
        log._require_lists()
        return log

    def __len__(self) -> int:
        return len(self.position)

    def __repr__(self) -> str:
        n_queries = len(np.unique(self.query_codes))
        return (
            f"<ClickLog: {self.n_impressions} lists of {n_queries} queries, {len(self)} documents shown, "
            f"{int(self.clicked.sum())} clicked>"
        )

    @property
    def n_impressions(self) -> int:
        """Number of lists."""
        return int(self.impression.max()) + 1 if len(self) else 0

    @cached_property
    def query_codes(self) -> Ints:
        """Number of each row's query, in order of first appearance."""
        return Queries.of(self.qid, len(self)).codes

    @cached_property
    def items(self) -> Ints:
        """Number of each row's pair of query and document."""
        documents = Queries.of(self.docids, len(self)).codes
        return _numbered(self.query_codes, documents)

    def find(self, qid: ArrayLike, docids: ArrayLike) -> Ints:
        """Match the rows of the log with rows of features."""
        queries, documents = _names(qid), _names(docids)
        if len(queries) != len(documents):
            raise InputError(f"docids has {len(documents)} values for {len(queries)} query ids; pass one for each row.")
        number = {pair: row for row, pair in enumerate(zip(queries.tolist(), documents.tolist(), strict=True))}
        if len(number) < len(queries):
            raise InputError(
                f"{len(queries) - len(number)} rows repeat the query and document of another; pass distinct rows."
            )
        shown = zip(self.qid.tolist(), self.docids.tolist(), strict=True)
        return np.fromiter((number.get(pair, -1) for pair in shown), dtype=np.int64, count=len(self))

    def part(self, rows: NDArray[np.bool_]) -> ClickLog:
        """Return the log of some rows."""
        columns = (self.qid, self.docids, self.position, self.clicked)
        return ClickLog.of(
            *(column[rows] for column in columns),
            impression=self.impression[rows],
            propensity=None if self.propensity is None else self.propensity[rows],
            complete=None if self.complete is None else self.complete[rows],
            log_propensity=None if self.log_propensity is None else self.log_propensity[rows],
        )

    def _require_lists(self) -> None:
        """Raise for lists of two queries, and for documents or positions that occur twice in a list."""
        if not len(self):
            raise InputError("the log has no rows; pass at least one document that was shown.")
        first = np.zeros(self.n_impressions, dtype=np.int64)
        first[self.impression[::-1]] = self.query_codes[::-1]
        mixed = np.flatnonzero(first[self.impression] != self.query_codes)
        if len(mixed):
            raise InputError(
                f"row {mixed[0]} of the log has query {self.qid[mixed[0]]!r}, but its list has another one; pass "
                "distinct ids of lists in impression."
            )
        for what, values in (("document", self.items), ("position", self.position)):
            numbers = _numbered(self.impression, values)
            if numbers.max() + 1 < len(self):
                row = int(np.flatnonzero(np.bincount(numbers)[numbers] > 1)[-1])
                raise InputError(
                    f"row {row} of the log repeats a {what} of its list; pass distinct ids of lists in impression."
                )


def _numbered(first: Ints, second: Ints) -> Ints:
    """Number the distinct pairs of two columns from 0."""
    width = int(second.max()) + 1 if len(second) else 1
    numbers: Ints = np.unique(first * width + second, return_inverse=True)[1].astype(np.int64)
    return numbers


def _names(values: ArrayLike) -> NDArray[np.object_]:
    ids: Any = values if isinstance(values, list | tuple) else np.asarray(values).tolist()
    if not isinstance(ids, list | tuple):
        raise InputError(f"ids are {values!r}; pass one for each row.")
    missing = next((row for row, value in enumerate(ids) if is_missing(value)), None)
    if missing is not None:
        raise InputError(f"row {missing} has no id of its query or document; pass both for every row.")
    texts = [str(value) for value in ids]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:  # half characters, from JSON, could not be written again
        texts = [text.encode("utf-8", "replace").decode() for text in texts]
    return as_texts(texts)


def _require(fits: NDArray[np.bool_], values: NDArray[np.float64], name: str, wanted: str) -> None:
    bad = np.flatnonzero(~fits)
    if len(bad):
        raise InputError(f"{name} is {values[bad[0]]:g} at row {bad[0]} of the log; pass {wanted}.")
