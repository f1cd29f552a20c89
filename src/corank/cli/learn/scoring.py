"""
Rows of files, scored: LETOR text a piece at a time, everything else at once.

A model that scores row by row needs no more than a piece of the text at a time. One that looks at the other rows of a
query, and a run, whose ranks do, take whole queries; where the rows of a query do not stand together the text is read
whole. Nothing is written before all was read: an error in the last line leaves no output behind.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.cli.judge.preferences import read_named
from corank.cli.learn.models import layout_of, occurring, warn_of_absent_features
from corank.core.parsing.digits import number_lines
from corank.data.formats.compressed import STANDARD, is_stream, write_text
from corank.data.formats.read import common_format, open_source
from corank.data.formats.text import TextFile, spool_bytes
from corank.data.formats.trec import run_lines
from corank.data.letor.stream import RowBlock, Scattered, changes, stream_letor, whole_queries
from corank.data.problem.queries import Queries
from corank.data.problem.routing import predict_with_qid, predicts_by_qid
from corank.errors import InputError


@dataclass(frozen=True, eq=False)
class Request:
    """
    What to score, and how it is written.

    ranker, model: a fitted ranker or pipeline, and the file it came from.
    sources: files of rows, opened.
    label, qid, id_column: columns of a table; a qid of "none" ignores query ids.
    tag: name of the run to write; None writes one score a line.
    """

    ranker: Any
    model: Path
    sources: Sequence[TextFile | Path]
    label: str | None
    qid: str | None
    tag: str | None
    id_column: str | None = None

    @classmethod
    def of(
        cls,
        ranker: Any,
        model: Path,
        data: Iterable[Path],
        label: str | None = None,
        qid: str | None = None,
        tag: str | None = None,
        id_column: str | None = None,
    ) -> Request:
        """Open the files."""
        return cls(ranker, model, [open_source(one) for one in data], label, qid, tag, id_column)


@dataclass
class Tally:
    """
    What went by.

    n_rows, queries: rows, and the ids of their queries.
    seconds: from opening the files to the last line.
    occurs: columns that are anywhere other than 0.
    names_documents: whether rows came with the names of documents.
    """

    n_rows: int = 0
    queries: set[str] = field(default_factory=set)
    seconds: float = 0.0
    occurs: NDArray[np.bool_] | None = None
    names_documents: bool = False

    def note(self, block: RowBlock) -> None:
        """Count the rows of a block."""
        self.n_rows += len(block)
        self.occurs = occurring(block.X, self.occurs)
        self.names_documents = block.docids is not None
        starts = [] if block.qid is None else block.qid[changes(block.qid)].tolist()
        self.queries.update(map(str, starts))


def write_scores(request: Request, output: Path | None, *, overwrite: bool) -> Tally:
    """
    Score rows, and write what came of it whole or not at all.

    output: a file or a stream; None for standard output.
    overwrite: whether a file that stands there is replaced.
    """
    began = time.perf_counter()
    if _in_pieces(request):
        try:
            tally = _write(request, _pieces(request), output, overwrite)
        except Scattered:
            tally = _write(request, _whole(request), output, overwrite)
    else:
        tally = _write(request, _whole(request), output, overwrite)
    if tally.occurs is not None:
        warn_of_absent_features(tally.occurs, request.sources[0], request.model)
    tally.seconds = time.perf_counter() - began
    return tally


def _in_pieces(request: Request) -> bool:
    """Whether text can be scored a piece at a time; what else is wrong with it, reading all says."""
    if (
        common_format(request.sources) != "text"
        or request.label not in (None, "label")
        or request.id_column is not None
    ):
        return False
    if request.qid not in (None, "none") or getattr(request.ranker, "n_features_in_", None) is None:
        return False
    return request.qid is None or not _by_query(request)


def _by_query(request: Request) -> bool:
    return request.tag is not None or predicts_by_qid(request.ranker)


def _pieces(request: Request) -> Iterator[RowBlock]:
    blocks = stream_letor(
        request.sources,
        n_features=request.ranker.n_features_in_,
        layout=layout_of(request.ranker),
        docids=request.tag is not None,
    )
    if _by_query(request):
        return whole_queries(blocks)
    return blocks if request.qid is None else (RowBlock(block.X, None) for block in blocks)


def _whole(request: Request) -> Iterator[RowBlock]:
    wanted, source = getattr(request.ranker, "n_features_in_", None), request.sources[0]
    rows = read_named(
        request.sources,
        request.qid,
        request.id_column,
        y=request.label,
        n_features=wanted,
        layout=layout_of(request.ranker),
    )
    if wanted not in (None, rows.data.n_features):
        raise InputError(
            f"{source} has {rows.data.n_features} features, but {request.model} was fitted on {wanted}; "
            "rank rows of the features it knows."
        )
    queries = rows.data.queries
    yield RowBlock(rows.X, queries.ids[queries.codes], rows.docids if request.tag is not None else None)


def _write(request: Request, blocks: Iterator[RowBlock], output: Path | None, overwrite: bool) -> Tally:
    tally = Tally()
    lines = _lines(request, blocks, tally)
    if output is not None and not is_stream(output):
        with write_text(output, overwrite=overwrite) as stream:
            stream.writelines(lines)
        return tally
    kept = spool_bytes(lines, "the output")
    kept.seek(0)
    with write_text(output or STANDARD) as stream:
        shutil.copyfileobj(kept, stream)
    return tally


def _lines(request: Request, blocks: Iterator[RowBlock], tally: Tally) -> Iterator[bytes]:
    """Score blocks, and yield the lines of each at once."""
    asks = predicts_by_qid(request.ranker)
    for block in blocks:
        codes = Queries.of(block.qid, len(block)).codes if asks else None
        scores = predict_with_qid(request.ranker, block.X, codes)
        if request.tag is None:
            yield number_lines(np.asarray(scores, dtype=np.float64))
        else:
            if tally.n_rows and tally.names_documents != (block.docids is not None):
                raise Scattered
            # a file without document ids: its rows are numbered from 1
            numbers = np.arange(tally.n_rows + 1, tally.n_rows + len(block) + 1)
            docids = numbers if block.docids is None else block.docids
            yield b"".join(run_lines(block.qid, docids, scores, request.tag))  # type: ignore[arg-type]
        tally.note(block)
