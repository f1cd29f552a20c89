"""
Stream LETOR text in blocks of a few megabytes, for scoring files larger than memory.

Threads parse pieces ahead of the consumer and read the file once; memory is that of a few pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from corank._lazy import is_sparse
from corank.core.threads import n_threads
from corank.data.durable.text import Source, open_text
from corank.data.io.letor_pieces import Piece, Pieces, cut_texts
from corank.data.io.letor_reader import ReadPlan, begins_with_qid, in_memory

T = TypeVar("T")

PIECES_AHEAD = 2
"""Pieces per thread that are parsed ahead of the consumer."""

PIECE = 1 << 22
"""Approximate bytes of a piece: large enough to amortise the fixed cost of one call to `predict`."""


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
    """Read LETOR text piece by piece."""
    texts = [open_text(source) for source in sources]
    first = next(filter(None, (text.first_line() for text in texts)), None)
    if first is None:  # no row, or only after many comments
        raise Scattered
    has_qid = begins_with_qid(first)

    def parse(piece: Piece) -> RowBlock | None:
        pieces = Pieces.surveyed(texts, [piece], n_jobs=1)
        if pieces.bare_return < 0 and not pieces.rows.any():
            return None
        rows = ReadPlan.of(pieces, n_features, np.dtype(np.float32), layout, has_qid).read(pieces, None, in_memory)
        return RowBlock(rows.X, rows.qid, rows.docids if docids else None)

    yield from filter(None, _ahead(parse, cut_texts(texts, PIECE)))


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
