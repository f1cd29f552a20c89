"""
LETOR text a few megabytes at a time: for those who score rows and forget them.

Threads survey and parse pieces ahead of who takes them, so that a file is read once; the memory is that of a few
pieces, however large the file is.
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
from scipy import sparse

from corank.core.threads import n_threads
from corank.data.formats.text import Source, open_text
from corank.data.letor.pieces import Piece, Pieces, cut_texts
from corank.data.letor.plan import Plan, begins_with_qid, in_memory

T = TypeVar("T")

AHEAD = 2
"""Pieces for each thread that wait to be taken, so that none waits for its turn."""

PIECE = 1 << 22
"""Bytes of a piece, about: enough to hide what a call of a model costs besides its rows."""


class Scattered(Exception):
    """What is to be taken together does not stand together in the text, which must be read whole."""


@dataclass(frozen=True, eq=False)
class Block:
    """
    Rows that follow each other.

    qid, docids (n_rows,): query and document of each row; None where the text has none.
    """

    X: Any
    qid: NDArray[Any] | None
    docids: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def part(self, rows: slice) -> Block:
        """Return some of the rows."""
        return Block(self.X[rows], *(None if ids is None else ids[rows] for ids in (self.qid, self.docids)))


def stream_letor(
    sources: Sequence[Source],
    *,
    n_features: int,
    layout: Literal["auto", "dense"] = "auto",
    docids: bool = False,
) -> Iterator[Block]:
    """
    Read LETOR text piece by piece.

    sources: files, opened or not, whose rows follow each other.
    n_features: number of columns of X.
    layout: "auto" chooses an array or a CSR matrix for each piece.
    docids: whether documents are read too.
    Yields: the rows, in their order; raises `Scattered` where the first row is not found.
    """
    texts = [open_text(one) for one in sources]
    first = next(filter(None, (text.first_line() for text in texts)), None)
    if first is None:  # no row, or one far behind comments
        raise Scattered
    has_qid = begins_with_qid(first)

    def parse(piece: Piece) -> Block | None:
        pieces = Pieces.surveyed(texts, [piece], n_jobs=1)
        if pieces.bare_return < 0 and not pieces.rows.any():
            return None
        rows = Plan.of(pieces, n_features, np.dtype(np.float32), layout, has_qid).read(pieces, None, in_memory)
        return Block(rows.X, rows.qid, rows.docids if docids else None)

    yield from filter(None, _ahead(parse, cut_texts(texts, PIECE)))


def whole_queries(blocks: Iterator[Block]) -> Iterator[Block]:
    """
    Take rows together by their queries.

    blocks: rows that follow each other.
    Yields: the same rows, each block with all rows of its queries; raises `Scattered` where rows of other queries stand
        between those of one.
    """
    done: set[str] = set()
    carried: list[Block] = []
    for block in blocks:
        if block.qid is None:
            raise Scattered
        last = int(changes(block.qid)[-1])
        goes_on = last == 0 and carried and str(block.qid[0]) == str(carried[-1].qid[-1])  # type: ignore[index]
        if goes_on:
            carried.append(block)
            continue
        complete = [*carried, *([block.part(slice(0, last))] if last else [])]
        carried = [block.part(slice(last, None))]
        if complete:
            yield _noted(_joined(complete), done)
    if carried:
        yield _noted(_joined(carried), done)


def changes(qid: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rows at which another query begins, the first among them."""
    return np.concatenate([[0], np.flatnonzero(qid[1:] != qid[:-1]) + 1])


def _noted(block: Block, done: set[str]) -> Block:
    """Return a block whose queries did not come before."""
    qid = np.asarray(block.qid)
    names = [str(name) for name in qid[changes(qid)].tolist()]
    n_before = len(done)
    done.update(names)
    if len(done) < n_before + len(names):
        raise Scattered
    return block


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    rows = [block.X for block in blocks]
    X = sparse.vstack(rows, format="csr") if any(map(sparse.issparse, rows)) else np.concatenate(rows)
    docids = [block.docids for block in blocks if block.docids is not None]
    if len(docids) not in (0, len(blocks)):  # as one text, all of it has documents
        raise Scattered
    qid = np.concatenate([block.qid for block in blocks if block.qid is not None])
    return Block(X, qid, np.concatenate(docids) if docids else None)


def _ahead(work: Callable[[Piece], T], pieces: Iterator[Piece]) -> Iterator[T]:
    """Do something to every piece, a few ahead of who takes the results, in their order."""
    threads = n_threads()
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            waiting.extend(pool.submit(work, piece) for piece in islice(pieces, AHEAD * threads))
            while waiting:
                done = waiting.popleft().result()
                waiting.extend(pool.submit(work, piece) for piece in islice(pieces, 1))
                yield done
        finally:
            for future in waiting:
                future.cancel()
