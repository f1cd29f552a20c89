"""How LETOR text becomes arrays: what a first pass over the pieces decides, and the second parses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from corank.core.parsing.letor import BARE_RETURN, ID_RANGE, INTEGER_QID, NO_QID, QID_POSITIONS, TEXT_QID, Rules, Sheet
from corank.data.letor.faults import LARGEST_ID, USUAL_ID, explain
from corank.data.letor.pieces import Fault, Outcome, Pieces
from corank.data.problem.collection import Collection, as_names, as_texts
from corank.errors import InputError

DENSE_FROM = 0.25
"""Share of named features from which layout "auto" chooses an array: up to twice the memory of CSR, but faster."""

Allocate: TypeAlias = Callable[[str, tuple[int, ...], DTypeLike], NDArray[Any]]
"""Gives zeroed room for an array of the result, by name, shape and type: in memory, or in the files of a store."""

_FIRST_ROW = re.compile(rb"(?:[ \t\r\n]++|#[^\n]*+\n)*+[^ \t\r\n#]++[ \t\r]++qid:")
_TOKEN = re.compile(rb"[^ \t\r\n#]+")
_COMMENT = re.compile(rb"[^\r\n]*")
_DOCID = re.compile(rb"[ \t]*(?:docid[ \t]*=[ \t]*)?([^ \t\r\n]*)")


@dataclass(frozen=True, eq=False)
class _Hashes:
    """Where each row's comment begins, -1 where it has none; read when it is asked for."""

    pieces: Pieces
    positions: NDArray[np.int64]

    def comments(self) -> NDArray[np.object_] | None:
        """Everything behind ``#``."""
        return self._behind(_COMMENT)

    def docids(self) -> NDArray[np.object_] | None:
        """X in ``#docid = X ...``, else the first word."""
        return self._behind(_DOCID)

    def _behind(self, pattern: re.Pattern[bytes]) -> NDArray[np.object_] | None:
        if (self.positions < 0).all():
            return None
        words = self.pieces.match(pattern, self.positions)
        return as_texts([word.decode(errors="surrogateescape") for word in words])


def in_memory(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Allocate zeros for an array of a result, in memory."""
    return np.zeros(shape, dtype)


@dataclass(frozen=True)
class Plan:
    """
    What the first pass decided about the result.

    n_features: number of columns that was asked for; None for the largest id.
    width: columns of a dense result.
    value_counts: values that each piece holds, at most.
    has_qid: whether rows have query ids.
    """

    n_rows: int
    n_features: int | None
    width: int
    value_counts: NDArray[np.int64]
    dense: bool
    dtype: np.dtype[Any]
    has_qid: bool

    @classmethod
    def of(
        cls, pieces: Pieces, n_features: int | None, dtype: np.dtype[Any], layout: str, has_qid: bool | None = None
    ) -> Plan:
        """Decide; `has_qid` says whether rows have query ids where these are not the first pieces of their texts."""
        if pieces.bare_return >= 0:
            raise explain(pieces, Fault(BARE_RETURN, pieces.bare_return), n_features)
        n_rows = int(pieces.rows.sum())
        if n_rows == 0:
            names = ", ".join(str(text) for text in pieces.texts)
            raise InputError(f"{names} has no rows, only blank lines and comments; expected 'label qid:Q id:value'.")
        if has_qid is None:
            has_qid = begins_with_qid(pieces.first_row())
        value_counts = pieces.later_colons if has_qid else pieces.colons
        n_values = int(value_counts.sum())
        width = n_features or pieces.largest_id
        dense = layout == "dense" or (layout == "auto" and n_values >= DENSE_FROM * n_rows * width)
        # an id beyond the limit cannot be laid out; the parser stops there and names it
        dense &= width <= (n_features or USUAL_ID)
        return cls(n_rows, n_features, width, value_counts, dense, dtype, has_qid)

    def read(self, pieces: Pieces, unscored: float | None, allocate: Allocate) -> Collection:
        """Parse the pieces into arrays."""
        sheet = self._sheet(allocate)
        rules = Rules(
            width=self.width if self.dense else -1,
            last_id=self.width if self.dense else self.n_features or USUAL_ID,
            qids=INTEGER_QID if self.has_qid else NO_QID,
            too_large=_too_large(self.dtype),
        )
        outcome, rules = self._parse(pieces, sheet, rules)
        X = self._rows(sheet, outcome.n_values, self.n_features or outcome.largest_id)
        if unscored is not None:
            sheet.y[sheet.y == unscored] = np.nan
        qid: NDArray[Any] | None = sheet.qid if self.has_qid else None
        if rules.qids == QID_POSITIONS:
            qid = _text_qids(pieces, sheet.qid)
        hashes = _Hashes(pieces, sheet.comments)
        return Collection(X, sheet.y, _qid=lambda: qid, _docids=hashes.docids, _comments=hashes.comments)

    def _parse(self, pieces: Pieces, sheet: Sheet, rules: Rules) -> tuple[Outcome, Rules]:
        try:
            return pieces.parse(sheet, rules, self.value_counts), rules
        except Fault as fault:
            if fault.code == TEXT_QID:
                return self._parse(pieces, sheet, rules._replace(qids=QID_POSITIONS))
            if fault.code == ID_RANGE and self.dense and self.n_features is None:
                # the width is the largest last id of a row: some row is out of order, and CSR shows where
                replace(self, dense=False).read(pieces, None, in_memory)
            raise explain(pieces, fault, self.n_features) from None

    def _sheet(self, allocate: Allocate) -> Sheet:
        n = self.n_rows
        n_values = int(self.value_counts.sum())
        index = np.dtype(np.int32 if n_values <= LARGEST_ID else np.int64)
        shape = (n, self.width) if self.dense else (n_values,)
        try:
            values = allocate("values", shape, self.dtype)
        except (MemoryError, ValueError):  # numpy's word for a size beyond the address space
            gigabytes = int(np.prod(shape, dtype=object)) * self.dtype.itemsize / 1e9
            raise InputError(
                f"{n} rows of {self.width} features need {gigabytes:.1f} GB, more than there is; "
                "read with layout='csr' or convert to a store."
            ) from None
        return Sheet(
            y=allocate("y", (n,), np.float64),
            qid=np.zeros(n if self.has_qid else 0, dtype=np.int64),
            comments=np.zeros(n, dtype=np.int64),
            values=values.reshape(-1),
            indices=np.zeros(0, index) if self.dense else allocate("indices", (n_values,), index),
            indptr=np.zeros(0, index) if self.dense else allocate("indptr", (n + 1,), index),
        )

    def _rows(self, sheet: Sheet, n_values: int, width: int) -> Any:
        if self.dense:
            X = sheet.values.reshape(self.n_rows, self.width)
            return X if width == self.width else np.ascontiguousarray(X[:, :width])
        arrays = (sheet.values[:n_values], sheet.indices[:n_values], sheet.indptr)
        X = sparse.csr_matrix(arrays, shape=(self.n_rows, width), copy=False)
        X.has_sorted_indices = X.has_canonical_format = True  # the parser made sure
        return X


def begins_with_qid(lines: bytes) -> bool:
    """
    Say whether the first row of some text has a query id.

    lines: text; blank lines and comments may come before the row.
    """
    return _FIRST_ROW.match(lines) is not None


def _too_large(dtype: np.dtype[Any]) -> float:
    """Return the least magnitude that rounds to infinity."""
    return 2.0**128 - 2.0**103 if dtype == np.float32 else float("inf")


def _text_qids(pieces: Pieces, positions: NDArray[np.int64]) -> NDArray[Any]:
    names: list[str] = []
    previous, name = b"", ""
    for token in pieces.match(_TOKEN, positions):
        if token != previous:
            previous, name = token, token.decode(errors="surrogateescape")
        names.append(name)
    return as_names(names)
