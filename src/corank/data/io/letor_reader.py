"""
Read LETOR text (SVMlight with query ids): ``label qid:Q id:value id:value ... # comment``, one row per line.

Feature ids start at 1 and increase along a line; absent features are 0. Threads read the file twice, piece by piece:
the first pass counts rows and values, the second parses into the final arrays. Time is O(bytes); memory is that of
the result and of a few pieces. `stream_letor` yields blocks of a few megabytes, for scoring files larger than memory:
threads parse pieces ahead of the consumer and read the file once.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from corank._lazy import is_sparse
from corank._moved import old_parameters
from corank.core import parsing as codes
from corank.core.parsing import ID_RANGE, INTEGER_QID, NO_QID, QID_POSITIONS, TEXT_QID, ParserSettings, Sheet
from corank.core.threads import n_threads
from corank.data.collection import Dataset, as_names, as_texts
from corank.data.durable.compressed import SUFFIXES
from corank.data.durable.text import BARE_RETURN_MESSAGE, STANDARD_INPUT, Source, TextFile, as_sources, open_text
from corank.data.io.letor_pieces import Fault, ParseResult, Piece, Pieces, cut_texts
from corank.errors import InputError, warn

MAX_ID = 2**31 - 1
MAX_USUAL_ID = 1 << 24
"""Largest feature id accepted without `n_features`: estimators allocate one weight per feature up to the largest."""
DENSE_FROM = 0.25
"""Density from which layout "auto" chooses an array: up to twice the memory of CSR, but faster."""

PIECES_AHEAD = 2
"""Pieces per thread that are parsed ahead of the consumer of a stream."""
BLOCK = 1 << 22
"""Approximate bytes of a block of a stream: large enough to amortise the fixed cost of one call to `predict`."""

T = TypeVar("T")
Allocate: TypeAlias = Callable[[str, tuple[int, ...], DTypeLike], NDArray[Any]]
"""Allocates a zeroed array of the result, given name, shape and type: in memory, or in the files of a store."""

_FIRST_ROW = re.compile(rb"(?:[ \t\r\n]++|#[^\n]*+\n)*+[^ \t\r\n#]++[ \t\r]++qid:")
_TOKEN = re.compile(rb"[^ \t\r\n#]+")
_COMMENT = re.compile(rb"[^\r\n]*")
# X of "docid = X", else the first word
_DOCID = re.compile(rb"[ \t]*(?:docid[ \t]*=[ \t]*)?([^ \t\r\n]*)")


def in_memory(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Allocate a zeroed array in memory."""
    return np.zeros(shape, dtype)


@dataclass(frozen=True)
class ReadPlan:
    """Shape and layout of the result, decided by the first pass."""

    n_rows: int
    n_features: int | None  # number of columns requested; None for the largest id
    width: int  # columns of a dense result
    value_counts: NDArray[np.int64]  # upper bound on the number of values in each piece
    dense: bool
    dtype: np.dtype[Any]
    has_qid: bool

    @classmethod
    def of(
        cls, pieces: Pieces, n_features: int | None, dtype: np.dtype[Any], layout: str, has_qid: bool | None = None
    ) -> ReadPlan:
        """Plan the result; pass `has_qid` if the pieces do not include the first row of the text."""
        if pieces.bare_return >= 0:
            raise explain(pieces, Fault(codes.BARE_RETURN, pieces.bare_return), n_features)
        n_rows = int(pieces.rows.sum())
        if n_rows == 0:
            names = ", ".join(str(text) for text in pieces.texts)
            raise InputError(
                f"{names} contains only blank lines and comments; expected rows of the form 'label qid:Q id:value'."
            )
        if has_qid is None:
            has_qid = begins_with_qid(pieces.first_row())
        value_counts = pieces.later_colons if has_qid else pieces.colons
        n_values = int(value_counts.sum())
        width = n_features or pieces.largest_id
        dense = layout == "dense" or (layout == "auto" and n_values >= DENSE_FROM * n_rows * width)
        # an id above the limit cannot be stored in a dense array; the parser reports it
        dense &= width <= (n_features or MAX_USUAL_ID)
        return cls(n_rows, n_features, width, value_counts, dense, dtype, has_qid)

    def read(self, pieces: Pieces, unjudged: float | None, allocate: Allocate) -> Dataset:
        """Parse the pieces into arrays."""
        sheet = self._sheet(allocate)
        rules = ParserSettings(
            width=self.width if self.dense else -1,
            last_id=self.width if self.dense else self.n_features or MAX_USUAL_ID,
            qids=INTEGER_QID if self.has_qid else NO_QID,
            too_large=_too_large(self.dtype),
        )
        outcome, rules = self._parse(pieces, sheet, rules)
        X = self._rows(sheet, outcome.n_values, self.n_features or outcome.largest_id)
        if unjudged is not None:
            sheet.y[sheet.y == unjudged] = np.nan
        qid: NDArray[Any] | None = sheet.qid if self.has_qid else None
        if rules.qids == QID_POSITIONS:
            qid = _text_qids(pieces, sheet.qid)

        def match(pattern: re.Pattern[bytes]) -> NDArray[np.object_] | None:
            """Read comments on demand."""
            if (sheet.comments < 0).all():
                return None
            words = pieces.match(pattern, sheet.comments)
            return as_texts([word.decode(errors="surrogateescape") for word in words])

        return Dataset(X, sheet.y, _qid=lambda: qid, _docids=lambda: match(_DOCID), _comments=lambda: match(_COMMENT))

    def _parse(self, pieces: Pieces, sheet: Sheet, rules: ParserSettings) -> tuple[ParseResult, ParserSettings]:
        try:
            return pieces.parse(sheet, rules, self.value_counts), rules
        except Fault as fault:
            if fault.code == TEXT_QID:
                return self._parse(pieces, sheet, rules._replace(qids=QID_POSITIONS))
            if fault.code == ID_RANGE and self.dense and self.n_features is None:
                # the width is the largest last id of a row, so some row is not in order: parsing to CSR finds it
                replace(self, dense=False).read(pieces, None, in_memory)
            raise explain(pieces, fault, self.n_features) from None

    def _sheet(self, allocate: Allocate) -> Sheet:
        n = self.n_rows
        n_values = int(self.value_counts.sum())
        index = np.dtype(np.int32 if n_values <= MAX_ID else np.int64)
        shape = (n, self.width) if self.dense else (n_values,)
        try:
            values = allocate("values", shape, self.dtype)
        except (MemoryError, ValueError):  # numpy raises ValueError for sizes beyond the address space
            gigabytes = int(np.prod(shape, dtype=object)) * self.dtype.itemsize / 1e9
            raise InputError(
                f"{n} rows of {self.width} features need {gigabytes:.1f} GB, which is more than the available memory; "
                "read with layout='csr' or convert the file to a store."
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
        from scipy import sparse  # takes long to import

        X = sparse.csr_matrix(arrays, shape=(self.n_rows, width), copy=False)
        X.has_sorted_indices = X.has_canonical_format = True  # the parser checks it
        return X


def begins_with_qid(lines: bytes) -> bool:
    """Return whether the first row has a query id; blank lines and comments may precede it."""
    return _FIRST_ROW.match(lines) is not None


def _too_large(dtype: np.dtype[Any]) -> float:
    """Return the smallest magnitude that rounds to infinity."""
    return 2.0**128 - 2.0**103 if dtype == np.float32 else float("inf")


def _text_qids(pieces: Pieces, positions: NDArray[np.int64]) -> NDArray[Any]:
    names: list[str] = []
    previous, name = b"", ""
    for token in pieces.match(_TOKEN, positions):
        if token != previous:
            previous, name = token, token.decode(errors="surrogateescape")
        names.append(name)
    return as_names(names)


@old_parameters(unscored="unjudged")
def read_letor(
    path: Source | Sequence[Source],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    layout: Literal["auto", "dense", "csr"] = "auto",
    unjudged: float | None = None,
    n_jobs: int | None = None,
    allocate: Allocate | None = None,
) -> Dataset:
    """
    Read LETOR / SVMlight text, plain or compressed (gzip, xz, zstandard), from one or several files.

    Numbers are rounded to the nearest float64, as by Python's `float`, then to `dtype`. The document id is X of
    ``#docid = X``, else the first word of the comment.

    n_features: number of columns of X; by default the largest id in the files, which must not exceed 16,777,216.
    layout: "dense", "csr", or "auto", which chooses an array if at least a quarter of the values are present.
    unjudged: label that marks an unjudged row; it becomes NaN in y.
    allocate: allocates y and the arrays of X; by default in memory.
    """
    kind = as_precision(dtype, layout)
    if n_features is not None and not 1 <= n_features <= MAX_ID:
        raise InputError(f"n_features is {n_features}; pass an integer from 1 to {MAX_ID}.")
    sources = as_sources(path)
    pieces = Pieces.of([open_text(source) for source in sources], n_jobs=n_jobs)
    return ReadPlan.of(pieces, n_features, kind, layout).read(pieces, unjudged, allocate or in_memory)


def as_precision(dtype: DTypeLike, layout: str) -> np.dtype[Any]:
    """Check `dtype` and `layout` of X, and return the type."""
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InputError(f"dtype is {kind}; choose float32 or float64.")
    if layout not in ("auto", "dense", "csr"):
        raise InputError(f"layout is {layout!r}; choose 'auto', 'dense' or 'csr'.")
    return kind


def explain(pieces: Pieces, fault: Fault, n_features: int | None) -> InputError:
    """Return the error for a parser fault: file, line, column, what was expected and what was found."""
    text, i = pieces.locate(fault.position)
    line, column = text.locate(i)
    return InputError(f"{text}, line {line}, column {column}: {_reason(text, i, fault.code, n_features)}.")


def _reason(text: TextFile, at: int, code: int, n_features: int | None) -> str:
    if code == codes.NO_ROOM:
        return "the file changed while it was read; read it again"
    if code == codes.BARE_RETURN or text.has_bare_return(at):
        return BARE_RETURN_MESSAGE
    result = text.word(at)
    shown = f"found {result.decode(errors='replace')[:40]!r}" if result else "found the end of the line"
    if any(c < 9 or 13 < c < 27 for c in result):
        return "found binary data; expected lines of the form 'label qid:Q id:value ...'"
    if code == codes.BAD_LABEL:
        return f"expected a label (a finite number), {shown}; write 'label qid:Q id:value ...'"
    if code == codes.BAD_QID:
        return f"expected qid:Q, as in the first row of the file, {shown}; give every row a query id, or none"
    if result.startswith(b"qid:"):
        return f"expected id:value, {shown}; give every row a query id, also the first, or none"
    name = result.partition(b":")[0]
    # isdigit of bytes: that of str also accepts other Unicode digits
    if code in (codes.BAD_ID, codes.ID_RANGE) and name.isdigit() and int(name) > (n_features or MAX_USUAL_ID):
        return _id_too_large(int(name), n_features)
    if code == codes.ID_ORDER:
        return f"expected feature ids from 1 in increasing order along the line, found {name.decode()}; sort the line"
    if code == codes.BAD_ID:
        return f"expected id:value, {shown}"
    if code == codes.LARGE_VALUE:
        return f"expected a value in the range of float32, {shown}; read the file with dtype=float64"
    return f"expected a finite value, {shown}"


def _id_too_large(feature: int, n_features: int | None) -> str:
    if n_features:
        return f"expected a feature id of at most n_features={n_features}, found {feature}; remove larger ids"
    if feature > MAX_ID:
        return f"expected a feature id of at most {MAX_ID}, found {feature}; number the features from 1"
    return (
        f"expected a feature id of at most {MAX_USUAL_ID}, found {feature}; if there are that many features, pass "
        "n_features="
    )


GROUP_SUFFIXES = (".query", ".group")
"""Suffixes that are appended to the name of the data."""


def group_file(source: TextFile | Path) -> Path | None:
    """Return the file with the query sizes of a source, or None if there is none."""
    if str(source) == STANDARD_INPUT:
        return None
    path = source.path if isinstance(source, TextFile) else source
    stems = [path, path.with_suffix("")] if path.suffix in SUFFIXES else [path]
    places = [stem.with_name(stem.name + suffix) for stem in stems for suffix in GROUP_SUFFIXES]
    return next((place for place in places if place.is_file()), None)


def with_groups(rows: Dataset, sources: Sequence[TextFile | Path]) -> Dataset:
    """
    Return rows with query ids 1, 2, ... from the group files of their sources, and say so; the rows if there are none.
    """
    files = [group_file(source) for source in sources]
    if not any(files):
        return rows
    if not all(files):
        absent = sources[files.index(None)]
        raise InputError(
            f"{next(filter(None, files))} has sizes of queries, but there is no such file beside {absent}; add it, or "
            "give every row a query id."
        )
    sizes = np.concatenate([_sizes(file) for file in files if file is not None])
    named = " and ".join(map(str, files))
    if sizes.sum() != len(rows.y):
        raise InputError(
            f"{named} has {len(sizes)} sizes of queries with sum {sizes.sum()}, but the data has {len(rows.y)} rows; "
            "correct the file, or ignore it with qid=False."
        )
    warn(f"the data has no query ids; {len(sizes)} queries were taken from the sizes in {named}.")
    qid = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return replace(rows, _qid=lambda: qid)


def _sizes(path: Path) -> NDArray[np.int64]:
    """Read one number of rows per line; blank lines are skipped."""
    text = open_text(path)
    lines = text.read().tobytes().splitlines()
    sizes: list[int] = []
    for number, line in enumerate(lines, start=1):
        word = line.strip()
        if not word:
            continue
        # isdigit of bytes: that of str also accepts other Unicode digits
        if not word.isdigit() or len(word) > 15:
            shown = word.decode(errors="replace")[:40]
            raise InputError(
                f"{path}, line {number}: expected the number of rows of a query, found {shown!r}; correct the file, or "
                "ignore it with qid=False."
            )
        sizes.append(int(word))
    return np.array(sizes, dtype=np.int64)


class Scattered(Exception):
    """Rows that belong together are not adjacent in the text; it must be read at once."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Adjacent rows of a text."""

    X: Any
    qid: NDArray[Any] | None  # qid, docids (n_rows,): query and document ids; None if the text has none
    docids: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def part(self, rows: slice) -> RowBlock:
        """Return a slice of the rows."""
        return RowBlock(self.X[rows], *(None if ids is None else ids[rows] for ids in (self.qid, self.docids)))


def stream_letor(
    sources: Sequence[Source],
    *,
    n_features: int,
    layout: Literal["auto", "dense"] = "auto",
    docids: bool = False,
) -> Iterator[RowBlock]:
    """Read LETOR text block by block."""
    texts = [open_text(source) for source in sources]
    first = next(filter(None, (text.first_line() for text in texts)), None)
    if first is None:  # no row, or only after many comments
        raise Scattered
    has_qid = begins_with_qid(first)

    def parse(piece: Piece) -> RowBlock | None:
        pieces = Pieces.of(texts, [piece], n_jobs=1)
        if pieces.bare_return < 0 and not pieces.rows.any():
            return None
        rows = ReadPlan.of(pieces, n_features, np.dtype(np.float32), layout, has_qid).read(pieces, None, in_memory)
        return RowBlock(rows.X, rows.qid, rows.docids if docids else None)

    yield from filter(None, _ahead(parse, cut_texts(texts, BLOCK)))


def whole_queries(blocks: Iterator[RowBlock]) -> Iterator[RowBlock]:
    """Regroup blocks so that each contains all rows of its queries."""
    done: set[str] = set()
    carried: list[RowBlock] = []
    for block in blocks:
        if block.qid is None:
            raise Scattered
        last = int(changes(block.qid)[-1])
        continues = last == 0 and carried and str(block.qid[0]) == str(carried[-1].qid[-1])  # type: ignore[index]
        if continues:
            carried.append(block)
            continue
        complete = [*carried, *([block.part(slice(0, last))] if last else [])]
        carried = [block.part(slice(last, None))]
        if complete:
            yield _check_new(_concatenate(complete), done)
    if carried:
        yield _check_new(_concatenate(carried), done)


def changes(qid: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rows at which a query begins, including the first row."""
    return np.concatenate([[0], np.flatnonzero(qid[1:] != qid[:-1]) + 1])


def _check_new(block: RowBlock, done: set[str]) -> RowBlock:
    """Return the block, or raise `Scattered` if one of its queries occurred before."""
    qid = np.asarray(block.qid)
    names = [str(name) for name in qid[changes(qid)].tolist()]
    n_before = len(done)
    done.update(names)
    if len(done) < n_before + len(names):
        raise Scattered
    return block


def _concatenate(blocks: list[RowBlock]) -> RowBlock:
    if len(blocks) == 1:
        return blocks[0]
    rows = [block.X for block in blocks]
    if any(map(is_sparse, rows)):
        from scipy import sparse  # takes long to import

        X = sparse.vstack(rows, format="csr")
    else:
        X = np.concatenate(rows)
    docids = [block.docids for block in blocks if block.docids is not None]
    if len(docids) not in (0, len(blocks)):  # read at once, all rows would have document ids
        raise Scattered
    qid = np.concatenate([block.qid for block in blocks if block.qid is not None])
    return RowBlock(X, qid, np.concatenate(docids) if docids else None)


def _ahead(function: Callable[[Piece], T], pieces: Iterator[Piece]) -> Iterator[T]:
    """Apply a function to every piece on threads, a few pieces ahead of the consumer, in order."""
    threads = n_threads()
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            waiting.extend(pool.submit(function, piece) for piece in islice(pieces, PIECES_AHEAD * threads))
            while waiting:
                done = waiting.popleft().result()
                waiting.extend(pool.submit(function, piece) for piece in islice(pieces, 1))
                yield done
        finally:
            for future in waiting:
                future.cancel()
