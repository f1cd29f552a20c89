"""
LETOR text, which is SVMlight's with query ids: ``label qid:Q id:value id:value ... # comment``, one row a line.

Ids count from 1 and rise along a line; features that are not named are 0. Reading takes two passes over the file,
both piece by piece on threads: one counts rows and values, one parses straight into the final arrays. O(bytes) time;
the memory is that of the result, and of a few pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from corank.core.parse import BARE_RETURN, ID_RANGE, INTEGER_QID, NO_QID, QID_POSITIONS, TEXT_QID, Rules, Sheet
from corank.data.collection import Collection, as_names, as_texts
from corank.data.letor_faults import LARGEST_ID, USUAL_ID, explain
from corank.data.letor_writer import write_letor as write_letor
from corank.data.pieces import Fault, Outcome, Pieces
from corank.data.text import Source, as_sources, open_text
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


def read_letor(
    path: Source | Sequence[Source],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    layout: Literal["auto", "dense", "csr"] = "auto",
    unscored: float | None = None,
    n_jobs: int | None = None,
    allocate: Allocate | None = None,
) -> Collection:
    """
    Read LETOR / SVMlight text, plain or compressed (gzip, xz, zstandard).

    Numbers are rounded to the nearest float64, as Python's `float` does, then to `dtype`.

    Parameters
    ----------
    path : path or sequence of paths
        The file, or files whose rows are put one after the other; "-" is standard input.
    n_features : int, optional
        Number of columns of X; the largest id in the files by default, which is then at most 16,777,216.
    dtype : float32 or float64, default float32
        Type of X.
    layout : {"auto", "dense", "csr"}, default "auto"
        Whether X is an array or a CSR matrix; "auto" takes an array when at least a quarter of the features
        are named.
    unscored : float, optional
        Label that marks an unscored row; it becomes NaN in y.
    n_jobs : int, optional
        Number of threads; every available processor by default.
    allocate : callable, optional
        Gives the room for y and the arrays of X; zeros in memory by default.

    Returns
    -------
    Collection
        Rows, labels, query ids, comments, and the document of each row: X in ``#docid = X``, else the first word.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("2 qid:7 1:0.5 3:1 #docid = GX1\\n-1 qid:7 2:0.25 #docid = GX2\\n")
    >>> file = read_letor(path, unscored=-1, layout="dense")
    >>> file.X.tolist(), file.y.tolist(), file.qid.tolist(), file.docids.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]], [2.0, nan], [7, 7], ['GX1', 'GX2'])
    """
    kind = as_precision(dtype, layout)
    if n_features is not None and not 1 <= n_features <= LARGEST_ID:
        raise InputError(f"n_features is {n_features}; pass a number from 1 to {LARGEST_ID}.")
    sources = as_sources(path)
    pieces = Pieces.of([open_text(one) for one in sources], n_jobs)
    plan = _Plan.of(pieces, n_features, kind, layout)
    return plan.read(pieces, unscored, allocate or _in_memory)


def as_precision(dtype: DTypeLike, layout: str) -> np.dtype[Any]:
    """
    Check how X shall be kept.

    Parameters
    ----------
    dtype : float32 or float64
        Type of X.
    layout : {"auto", "dense", "csr"}
        Whether X is an array or a CSR matrix.

    Returns
    -------
    dtype
        The type.
    """
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InputError(f"dtype is {kind}; choose float32 or float64.")
    if layout not in ("auto", "dense", "csr"):
        raise InputError(f"layout is {layout!r}; choose 'auto', 'dense' or 'csr'.")
    return kind


def _in_memory(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    return np.zeros(shape, dtype)


@dataclass(frozen=True)
class _Plan:
    """What the first pass decided about the result."""

    n_rows: int
    n_features: int | None
    width: int
    value_counts: NDArray[np.int64]
    dense: bool
    dtype: np.dtype[Any]
    has_qid: bool

    @classmethod
    def of(cls, pieces: Pieces, n_features: int | None, dtype: np.dtype[Any], layout: str) -> _Plan:
        if pieces.bare_return >= 0:
            raise explain(pieces, Fault(BARE_RETURN, pieces.bare_return), n_features)
        n_rows = int(pieces.rows.sum())
        if n_rows == 0:
            names = ", ".join(str(text) for text in pieces.texts)
            raise InputError(f"{names} has no rows, only blank lines and comments; expected 'label qid:Q id:value'.")
        has_qid = _FIRST_ROW.match(pieces.first_row()) is not None
        value_counts = pieces.later_colons if has_qid else pieces.colons
        n_values = int(value_counts.sum())
        width = n_features or pieces.largest_id
        dense = layout == "dense" or (layout == "auto" and n_values >= DENSE_FROM * n_rows * width)
        # an id beyond the limit cannot be laid out; the parser stops there and names it
        dense &= width <= (n_features or USUAL_ID)
        return cls(n_rows, n_features, width, value_counts, dense, dtype, has_qid)

    def read(self, pieces: Pieces, unscored: float | None, allocate: Allocate) -> Collection:
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
                replace(self, dense=False).read(pieces, None, _in_memory)
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
