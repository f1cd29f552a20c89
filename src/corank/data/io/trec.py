"""
TREC files: runs (``query Q0 document rank score tag``) and qrels (``query iteration document grade``).

Ids are strings, as in trec_eval. The rank column of a run is ignored: the scores order the documents. Reading takes
O(bytes), joining O(rows).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core import parsing
from corank.core.jit import is_small
from corank.data.collection import as_texts
from corank.data.column_roles import list_names
from corank.data.durable.compressed import write_text
from corank.data.durable.text import BARE_RETURN_MESSAGE, Source, TextFile, is_number, open_text
from corank.data.inputs import as_scores
from corank.data.io.letor_pieces import Piece, cut_lines, split_small
from corank.data.io.tables import read_table
from corank.data.judges import JudgeGrades
from corank.data.queries import Queries
from corank.errors import InputError, import_extra, warn

PIECE = 1 << 24
EVERY_ROW, FIRST_ROW = slice(None), slice(1)


def read_columns(text: TextFile, names: tuple[str, ...], kept: dict[str, slice], number: str) -> list[NDArray[Any]]:
    """Read lines of blank-separated columns, piece by piece."""
    parts = [_split(piece, names, kept, number) for piece in cut_lines(text, 0, PIECE)]
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if len(joined[0]) == 0:
        raise InputError(f"{text} contains only blank lines; expected lines of the form '{' '.join(names)}'.")
    return joined


def _split(piece: Piece, names: tuple[str, ...], kept: dict[str, slice], number: str) -> list[NDArray[Any]]:
    content = piece.read()
    if is_small(piece.length):
        result = split_small(content[: piece.length].tobytes(), len(names), names.index(number))
        if result is not None:
            words = [as_texts(result[1][names.index(name)])[rows] for name, rows in kept.items()]
            return [result[0], *words]
    n_lines = int(np.count_nonzero(content == ord("\n")))
    fields = parsing.Fields(
        np.empty((n_lines, len(kept), 2), dtype=np.int64),
        np.empty(n_lines, dtype=np.bool_),
        np.empty(n_lines),
        np.empty((n_lines, 2), dtype=np.int64),
    )
    keep = np.array([list(kept).index(name) if name in kept else -1 for name in names])
    code, position, row = parsing.split_lines(content, piece.length, keep, names.index(number), fields)
    if code != parsing.DONE:
        raise _fault(piece.text, code, piece.begin + position, names, number)
    numbers = fields.numbers[:row]
    for k in np.flatnonzero(np.isnan(numbers)).tolist():
        begin, end = fields.number_spans[k].tolist()
        numbers[k] = float(content[begin:end].tobytes())
        if np.isinf(numbers[k]):
            raise _fault(piece.text, parsing.BAD_NUMBER, piece.begin + begin, names, number)
    spans, fresh = fields.spans[:row], fields.fresh[:row]
    texts = [
        _decode(content, spans[rows, k], None if k else fresh)  # adjacent rows of a query share one string
        for k, rows in enumerate(kept.values())
    ]
    return [numbers, *texts]


def _decode(
    content: NDArray[np.uint8], spans: NDArray[np.int64], fresh: NDArray[np.bool_] | None
) -> NDArray[np.object_]:
    """Decode spans to strings; a span that is not fresh repeats the previous string."""
    text = content.tobytes()
    words = [text[a:b].decode(errors="surrogateescape") for a, b in (spans if fresh is None else spans[fresh]).tolist()]
    return as_texts(words) if fresh is None else np.asarray(as_texts(words)[np.cumsum(fresh) - 1])


def _fault(text: TextFile, code: int, position: int, names: tuple[str, ...], number: str) -> InputError:
    line, column = text.locate(position)
    if text.has_bare_return(position):
        problem = BARE_RETURN_MESSAGE
    elif code == parsing.BAD_NUMBER:
        result = text.word(position).decode(errors="replace")[:40]
        problem = f"expected a finite number as the {number}, found {result!r}; correct the line"
    else:
        few = "fewer" if code == parsing.FEW_COLUMNS else "more"
        problem = f"expected {len(names)} columns ({' '.join(names)}), found {few}; correct the line"
    return InputError(f"{text}, line {line}, column {column}: {problem}.")


RUN_COLUMNS = ("query", "Q0", "document", "rank", "score", "tag")
QRELS_COLUMNS = ("query", "iteration", "document", "grade")
RANKED_COLUMNS = ("query", "document", "rank")
"""Columns of a run without scores, as MS MARCO has them."""


def is_qrels(words: Sequence[bytes]) -> bool:
    """Return whether a line may be one of TREC qrels; the second word of LETOR text has a colon (qid:7 or 1:0.5)."""
    return len(words) == len(QRELS_COLUMNS) and b":" not in words[1] and is_number(words[3])


def is_run(words: Sequence[bytes]) -> bool:
    """Return whether a line may be one of a run, with or without scores."""
    if len(words) == len(RUN_COLUMNS):
        return is_number(words[3]) and is_number(words[4])
    return len(words) == len(RANKED_COLUMNS) and is_number(words[2])


_NAME = re.compile(r"[^ \t\r\n]+").fullmatch


@dataclass(frozen=True, eq=False)
class Run:
    """
    A run: documents retrieved for queries.

    qid, docids: Query and document of each row.
    scores: Higher is better.
    tag: Name of the run.
    """

    qid: NDArray[np.object_]
    docids: NDArray[np.object_]
    scores: NDArray[np.float64]
    tag: str


@dataclass(frozen=True, eq=False)
class Qrels:
    """
    Relevance judgements (qrels) of documents for queries.

    qid, docids: Query and document of each row.
    y: Grades.
    judged: All grades, if lines of the same document were merged.
    """

    qid: NDArray[np.object_]
    docids: NDArray[np.object_]
    y: NDArray[np.float64]
    judged: JudgeGrades | None = None


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """
    A run with the grades of its documents.

    y, scores, qid, docids: Grade, score, query and document of each row of the run.
    missed_qid, missed_y: Query and grade of judged documents that the run did not retrieve; the ideal order includes
        them.
    """

    y: NDArray[np.float64]
    scores: NDArray[np.float64]
    qid: NDArray[np.object_]
    docids: NDArray[np.object_]
    missed_qid: NDArray[np.object_]
    missed_y: NDArray[np.float64]


def read_run(path: Source) -> Run:
    """Read a run file of six columns, plain or compressed."""
    kept = {"query": EVERY_ROW, "document": EVERY_ROW, "tag": FIRST_ROW}
    scores, qid, docids, tags = read_columns(open_text(path), RUN_COLUMNS, kept, "score")
    return Run(qid, docids, scores, tags[0])


def read_qrels(path: Source) -> Qrels:
    """Read a qrels file of four columns, plain or compressed."""
    y, qid, docids = read_columns(open_text(path), QRELS_COLUMNS, {"query": EVERY_ROW, "document": EVERY_ROW}, "grade")
    return Qrels(qid, docids, y)


def merge_qrels(qrels: Qrels, rule: str, path: object) -> Qrels:
    """
    Merge lines of the same document, such as grades of several judges, with a warning; see `merge_judges`.

    rule {"median", "mean", "majority"}: see `corank.metrics.agreement.aggregate_grades`.
    path: the file, for messages.
    """
    judged = JudgeGrades.of(qrels.y, qrels.qid, qrels.docids)
    if judged.n_documents == len(qrels.y):
        return qrels
    y = judged.aggregate(rule)
    warn(judged.words(rule, path))
    return Qrels(qrels.qid[judged.first], qrels.docids[judged.first], y, judged)


def read_scores(path: Source) -> NDArray[np.float64]:
    """Read a file with one score per line, plain or compressed."""
    return read_columns(open_text(path), ("score",), {}, "score")[0]


def write_run(
    path: str | os.PathLike[str],
    qid: ArrayLike,
    docids: ArrayLike,
    scores: ArrayLike,
    tag: str = "corank",
    *,
    overwrite: bool = False,
) -> None:
    """Write a run file atomically; the documents of each query are sorted by decreasing score and ranked from 1."""
    lines = run_lines(qid, docids, scores, tag)
    with write_text(path, overwrite=overwrite) as stream:
        stream.writelines(lines)


def run_lines(qid: ArrayLike, docids: ArrayLike, scores: ArrayLike, tag: str = "corank") -> Iterator[bytes]:
    """
    Return the lines of a run file as an iterator; parameters are as in `write_run` and are checked at once.

    The documents of each query are sorted by decreasing score, queries by first appearance.
    """
    documents = _names(docids, "docids")
    queries = Queries.of(qid, len(documents))
    names, values = _names(queries.plain_ids("a TREC file"), "qid"), as_scores(scores, len(documents))
    _names([tag], "tag")
    if np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise InputError(f"scores is NaN at row {row}; pass a number for every document.")
    ranks = queries.ranks(values)
    order = np.lexsort((ranks, queries.codes))
    rows = zip(*(part.tolist() for part in (order, queries.codes[order], ranks[order], values[order])), strict=True)
    return (
        f"{names[query]} Q0 {documents[row]} {rank} {score!r} {tag}\n".encode(errors="surrogateescape")
        for row, query, rank, score in rows
    )


def write_qrels(
    path: str | os.PathLike[str], qid: ArrayLike, docids: ArrayLike, y: ArrayLike, *, overwrite: bool = False
) -> None:
    """Write a qrels file atomically."""
    documents = _names(docids, "docids")
    queries = Queries.of(qid, len(documents))
    names, grades = _names(queries.plain_ids("a TREC file"), "qid"), as_scores(y, len(documents))
    with write_text(path, overwrite=overwrite) as stream:
        stream.writelines(
            f"{names[query]} 0 {document} {grade!r}".removesuffix(".0").encode(errors="surrogateescape") + b"\n"
            for query, document, grade in zip(queries.codes.tolist(), documents, grades.tolist(), strict=True)
            if grade == grade
        )


def join_run(run: Run, qrels: Qrels, *, unjudged: float = float("nan")) -> JudgedRun:
    """
    Look up the grade of every document of a run.

    >>> run = Run(np.array(["1", "1"], object), np.array(["a", "b"], object), np.array([0.5, 0.25]), "x")
    >>> qrels = Qrels(np.array(["1", "1"], object), np.array(["b", "c"], object), np.array([2.0, 1.0]))
    >>> judged = join_run(run, qrels, unjudged=0)
    >>> judged.y.tolist(), judged.missed_y.tolist()
    ([0.0, 2.0], [1.0])
    """
    grades: dict[tuple[str, str], float] = {}
    for query, document, grade in zip(qrels.qid, qrels.docids, qrels.y.tolist(), strict=True):
        if grades.setdefault((query, document), grade) != grade:
            raise InputError(
                f"the qrels contain two different grades for document {document!r} of query {query!r}; keep one, or "
                "aggregate them with corank.metrics.agreement.aggregate_grades."
            )
    keys = list(zip(run.qid, run.docids, strict=True))
    retrieved = set(keys)
    if (row := first_repeated(keys)) is not None:
        query, document = keys[row]
        raise InputError(f"the run contains document {document!r} twice for query {query!r}; keep one.")
    y = np.array([grades.get(key, unjudged) for key in keys], dtype=np.float64)
    missed = [(query, grade) for (query, document), grade in grades.items() if (query, document) not in retrieved]
    missed_qid = np.array([query for query, _ in missed], dtype=object)
    return JudgedRun(y, run.scores, run.qid, run.docids, missed_qid, np.array([grade for _, grade in missed]))


def first_repeated(keys: Sequence[Any]) -> int | None:
    """Return the first position of a value that occurred before; None if all differ."""
    if len(set(keys)) == len(keys):
        return None
    seen: set[Any] = set()
    return next(i for i, key in enumerate(keys) if key in seen or seen.add(key))  # type: ignore[func-returns-value]


def _names(values: ArrayLike, what: str) -> list[str]:
    names = [str(value) for value in np.asarray(values).tolist()]
    for row, name in enumerate(names):
        if not name:
            raise InputError(f"{what} is empty at row {row}; TREC files need a non-empty name.")
        if not _NAME(name):
            raise InputError(
                f"{what} is {name!r} at row {row}, but blanks separate the columns of a TREC file; replace them, for "
                f"example write {'_'.join(name.split())!r}."
            )
    return names


FrameStyle = Literal["ir_measures", "pyterrier"]
_COLUMNS = {
    "ir_measures": ("query_id", "doc_id", {"run": "score", "qrels": "relevance"}),
    "pyterrier": ("qid", "docno", {"run": "score", "qrels": "label"}),
}


def run_of(source: Any, tag: str = "run") -> Run:
    """Make a run of an object of another library."""
    queries, documents, values = _rows(source, "run")
    return Run(as_texts(queries), as_texts(documents), np.array(values, dtype=np.float64), tag)


def qrels_of(source: Any) -> Qrels:
    """Make judgements of an object of another library."""
    queries, documents, values = _rows(source, "qrels")
    return Qrels(as_texts(queries), as_texts(documents), np.array(values, dtype=np.float64))


def as_dict(source: Run | Qrels) -> dict[str, dict[str, Any]]:
    """Return a run or judgements as ``{query: {document: value}}``, for pytrec_eval, ranx and ir_measures."""
    result: dict[str, dict[str, Any]] = {}
    values = source.scores if isinstance(source, Run) else source.y
    for query, document, value in zip(source.qid, source.docids, values.tolist(), strict=True):
        if value == value:
            is_grade = isinstance(source, Qrels) and value.is_integer()
            result.setdefault(query, {})[document] = int(value) if is_grade else value
    return result


def as_frame(source: Run | Qrels, style: FrameStyle = "ir_measures") -> Any:
    """Return a run or judgements as a pandas DataFrame."""
    if style not in _COLUMNS:
        raise InputError(f"style is {style!r}; pass one of {', '.join(_COLUMNS)}.")
    pandas = import_extra("pandas", "frames")
    query, document, value = _COLUMNS[style]
    rows = [(q, d, v) for q, documents in as_dict(source).items() for d, v in documents.items()]
    return pandas.DataFrame(rows, columns=[query, document, value["run" if isinstance(source, Run) else "qrels"]])


def _rows(source: Any, kind: str) -> tuple[list[str], list[str], list[float]]:
    """Return queries, documents and values of a frame of another library, of nested mappings, or of ranx."""
    what = "scores" if kind == "run" else "grades"
    if hasattr(source, "columns"):
        table = read_table(source, f"the {kind}")
        values = ("score",) if kind == "run" else ("relevance", "label", "rel", "grade")
        usual: dict[str, tuple[str, ...]] = {
            "queries": ("qid", "query_id", "q_id"), "documents": ("docno", "doc_id", "docid"), what: values,
        }  # fmt: skip
        columns = []
        for title, names in usual.items():
            if (column := table.find(names)) is None:
                raise InputError(
                    f"{table.name} has no column of {title} ({', '.join(names)}); found {list_names(table.names)}."
                )
            columns.append(table.columns[column])
        rows: Iterable[tuple[Any, Any, Any]] = zip(*columns, strict=True)
    else:
        given = source.to_dict() if hasattr(source, "to_dict") else source
        if not isinstance(given, Mapping) or not all(isinstance(item, Mapping) for item in given.values()):
            raise InputError(
                f"found a {type(source).__name__}; pass {{query: {{document: value}}}}, a DataFrame or a ranx object."
            )
        rows = [(query, name, value) for query, documents in given.items() for name, value in documents.items()]
    columns = list(map(list, zip(*rows, strict=True)))
    if not columns:
        raise InputError(f"the {kind} {'has' if kind == 'run' else 'have'} no rows; pass at least one document.")
    return list(map(str, columns[0])), list(map(str, columns[1])), list(map(float, columns[2]))
