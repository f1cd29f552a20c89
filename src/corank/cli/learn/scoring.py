"""
Score the rows of files for `corank rank`: LETOR text in blocks, other formats at once.

A model that scores rows independently needs one block at a time. A model that uses the other rows of a query, and a
TREC run, which contains ranks, need whole queries; if the rows of a query are not adjacent, the text is read at once.
Output is written after all input was read, so an error in the last line leaves no output.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.cli.learn.models import nonzero_columns, preferred_layout, warn_of_absent_features
from corank.cli.options import ColumnOptions
from corank.cli.rows import FittedModel, read_rows, say_order
from corank.data.durable.compressed import STANDARD, is_stream, write_text
from corank.data.durable.text import TextFile, spool_bytes
from corank.data.io.letor_reader import RowBlock, Scattered, changes, group_file, stream_letor, whole_queries
from corank.data.io.read import common_format, open_source
from corank.data.io.trec import run_lines
from corank.data.queries import Queries
from corank.data.routing import predict_with_qid, predicts_by_qid


@dataclass(frozen=True, eq=False)
class ScoringRequest:
    """What to score, and how to write the scores."""

    model: FittedModel
    sources: Sequence[TextFile | Path]
    columns: ColumnOptions
    tag: str | None  # name of the TREC run; None to write one score per line

    @classmethod
    def of(
        cls, model: FittedModel, data: Iterable[Path], columns: ColumnOptions, tag: str | None = None
    ) -> ScoringRequest:
        """Open the files."""
        return cls(model, [open_source(item) for item in data], columns, tag)

    @property
    def ranker(self) -> Any:
        """The ranker or pipeline."""
        return self.model.ranker


@dataclass
class Tally:
    """Counts of the scored rows."""

    n_rows: int = 0
    queries: set[str] = field(default_factory=set)  # ids of the queries
    seconds: float = 0.0
    occurs: NDArray[np.bool_] | None = None  # result of `nonzero_columns`
    names_documents: bool = False  # whether rows have document ids

    def note(self, block: RowBlock) -> None:
        """Add the rows of a block."""
        self.n_rows += len(block)
        self.occurs = nonzero_columns(block.X, self.occurs)
        self.names_documents = block.docids is not None
        starts = [] if block.qid is None else block.qid[changes(block.qid)].tolist()
        self.queries.update(map(str, starts))


def write_scores(request: ScoringRequest, output: Path | None, *, overwrite: bool) -> Tally:
    """Score rows and write the scores atomically."""
    began = time.perf_counter()
    if _can_stream(request):
        try:
            tally = _write(request, _stream(request), output, overwrite)
        except Scattered:
            tally = _write(request, _read_all(request), output, overwrite)
    else:
        tally = _write(request, _read_all(request), output, overwrite)
    if tally.occurs is not None:
        warn_of_absent_features(tally.occurs, request.sources[0], request.model.path)
    tally.seconds = time.perf_counter() - began
    return tally


def _can_stream(request: ScoringRequest) -> bool:
    """Return whether text can be scored in blocks; other faults are reported by reading it at once."""
    columns = request.columns
    if common_format(request.sources) != "text" or request.model.n_features is None:
        return False
    if columns.label or columns.id_column or columns.drop or columns.keep or columns.qid not in (None, "none"):
        return False
    if not _by_query(request):
        return True
    return columns.qid is None and not any(map(group_file, request.sources))


def _by_query(request: ScoringRequest) -> bool:
    return request.tag is not None or predicts_by_qid(request.ranker)


def _stream(request: ScoringRequest) -> Iterator[RowBlock]:
    say_order(None, request.sources[0], request.model)
    blocks = stream_letor(
        request.sources,
        n_features=request.ranker.n_features_in_,
        layout=preferred_layout(request.ranker),
        docids=request.tag is not None,
    )
    if _by_query(request):
        return whole_queries(blocks)
    return blocks if request.columns.qid is None else (RowBlock(block.X, None) for block in blocks)


def _read_all(request: ScoringRequest) -> Iterator[RowBlock]:
    rows = read_rows(
        request.sources,
        replace(request.columns, judges="keep"),
        needs_labels=False,
        model=request.model,
        layout=preferred_layout(request.ranker),
    )
    queries = rows.data.queries
    yield RowBlock(rows.X, queries.ids[queries.codes], rows.docids if request.tag is not None else None)


def _write(request: ScoringRequest, blocks: Iterator[RowBlock], output: Path | None, overwrite: bool) -> Tally:
    tally = Tally()
    lines = _lines(request, blocks, tally)
    if output is not None and not is_stream(output):
        with write_text(output, overwrite=overwrite) as stream:
            stream.writelines(lines)
        return tally
    spool = spool_bytes(lines, "the output")
    spool.seek(0)
    with write_text(output or STANDARD) as stream:
        shutil.copyfileobj(spool, stream)
    return tally


def _lines(request: ScoringRequest, blocks: Iterator[RowBlock], tally: Tally) -> Iterator[bytes]:
    """Score blocks, and yield the lines of each."""
    needs_qid = predicts_by_qid(request.ranker)
    for block in blocks:
        codes = Queries.of(block.qid, len(block)).codes if needs_qid else None
        scores = predict_with_qid(request.ranker, block.X, codes)
        if request.tag is None:
            numbers = np.asarray(scores, dtype=np.float64).tolist()
            yield "".join(f"{score!r}\n" for score in numbers).encode()
        else:
            if tally.n_rows and tally.names_documents != (block.docids is not None):
                raise Scattered
            # without document ids, rows are numbered from 1
            numbers = np.arange(tally.n_rows + 1, tally.n_rows + len(block) + 1)
            docids = numbers if block.docids is None else block.docids
            yield b"".join(run_lines(block.qid, docids, scores, request.tag))  # type: ignore[arg-type]
        tally.note(block)
