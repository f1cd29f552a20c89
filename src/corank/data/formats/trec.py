"""
TREC files: runs (``query Q0 document rank score tag``) and qrels (``query iteration document grade``).

Ids are strings, as in trec_eval; a run's rank column is not read, its scores order the documents. Reading is
O(bytes), joining O(rows).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.formats.compressed import write_text
from corank.data.formats.text import Source, open_text
from corank.data.formats.trec_columns import EVERY_ROW, FIRST_ROW, read_columns
from corank.data.problem.inputs import as_scores
from corank.data.problem.queries import Queries
from corank.errors import InputError

RUN_COLUMNS = ("query", "Q0", "document", "rank", "score", "tag")
QRELS_COLUMNS = ("query", "iteration", "document", "grade")
_NAME = re.compile(r"[^ \t\r\n]+").fullmatch


@dataclass(frozen=True, eq=False)
class Run:
    """
    Documents retrieved for queries, row by row.

    Attributes
    ----------
    qid, docids : arrays of str objects
        Query and document of each row.
    scores : array of float64
        Higher is better.
    tag : str
        Name of the run.
    """

    qid: NDArray[np.object_]
    docids: NDArray[np.object_]
    scores: NDArray[np.float64]
    tag: str


@dataclass(frozen=True, eq=False)
class Qrels:
    """
    Judged documents of queries, row by row.

    Attributes
    ----------
    qid, docids : arrays of str objects
        Query and document of each row.
    y : array of float64
        Grades.
    """

    qid: NDArray[np.object_]
    docids: NDArray[np.object_]
    y: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """
    A run with the grades of its documents.

    Attributes
    ----------
    y, scores, qid, docids : arrays
        Grade, score, query and document of each row of the run.
    missed_qid, missed_y : arrays
        Query and grade of the judged documents that the run did not retrieve: an ideal order counts them.
    """

    y: NDArray[np.float64]
    scores: NDArray[np.float64]
    qid: NDArray[np.object_]
    docids: NDArray[np.object_]
    missed_qid: NDArray[np.object_]
    missed_y: NDArray[np.float64]


def read_run(path: Source) -> Run:
    """
    Read a run file of six columns, plain or compressed.

    Parameters
    ----------
    path : path
        The file; "-" is standard input.

    Returns
    -------
    Run
        Its rows, in the order of the file.
    """
    kept = {"query": EVERY_ROW, "document": EVERY_ROW, "tag": FIRST_ROW}
    scores, qid, docids, tags = read_columns(open_text(path), RUN_COLUMNS, kept, "score")
    return Run(qid, docids, scores, tags[0])


def read_qrels(path: Source) -> Qrels:
    """
    Read a qrels file of four columns, plain or compressed.

    Parameters
    ----------
    path : path
        The file; "-" is standard input.

    Returns
    -------
    Qrels
        Its rows, in the order of the file.
    """
    y, qid, docids = read_columns(open_text(path), QRELS_COLUMNS, {"query": EVERY_ROW, "document": EVERY_ROW}, "grade")
    return Qrels(qid, docids, y)


def read_scores(path: Source) -> NDArray[np.float64]:
    """
    Read a file of one score a line, plain or compressed.

    Parameters
    ----------
    path : path
        The file; "-" is standard input.

    Returns
    -------
    array of float64
        The scores.
    """
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
    """
    Write a run file, each query's documents by falling score and numbered from 1, whole or not at all.

    Parameters
    ----------
    path : path
        The file to write, compressed as its suffix says; "-" is standard output.
    qid, docids : array-likes of shape (n_rows,)
        Query and document of each row, without blanks.
    scores : array-like of shape (n_rows,)
        Higher is better; rows with equal scores keep their order.
    tag : str, default "corank"
        Name of the run.
    overwrite : bool, default False
        Whether a file that stands at `path` is replaced.
    """
    lines = run_lines(qid, docids, scores, tag)
    with write_text(path, overwrite=overwrite) as stream:
        stream.writelines(lines)


def run_lines(qid: ArrayLike, docids: ArrayLike, scores: ArrayLike, tag: str = "corank") -> Iterator[bytes]:
    """
    Make the lines of a run file; what comes is checked before the first is asked for.

    Parameters
    ----------
    qid, docids : array-likes of shape (n_rows,)
        Query and document of each row, without blanks.
    scores : array-like of shape (n_rows,)
        Higher is better; rows with equal scores keep their order.
    tag : str, default "corank"
        Name of the run.

    Returns
    -------
    iterator of bytes
        Each query's documents by falling score, queries in the order in which they first appear.
    """
    documents = _names(docids, "docids")
    queries = Queries.of(qid, len(documents))
    names, values = _names(queries.plain_ids("a TREC file"), "qid"), as_scores(scores, len(documents))
    _names([tag], "tag")
    if np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise InputError(f"scores is NaN at row {row}; a run needs a score for every document.")
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
    """
    Write a qrels file, whole or not at all.

    Parameters
    ----------
    path : path
        The file to write, compressed as its suffix says; "-" is standard output.
    qid, docids : array-likes of shape (n_rows,)
        Query and document of each row, without blanks.
    y : array-like of shape (n_rows,)
        Grades; rows with NaN are unjudged and left out.
    overwrite : bool, default False
        Whether a file that stands at `path` is replaced.
    """
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

    Parameters
    ----------
    run : Run
        What was retrieved.
    qrels : Qrels
        What was judged.
    unjudged : float, default NaN
        Grade of a document without judgement: NaN leaves it unscored, 0 takes it as irrelevant.

    Returns
    -------
    JudgedRun
        Rows as in the run, and the judged documents it missed.

    Examples
    --------
    >>> run = Run(np.array(["1", "1"], object), np.array(["a", "b"], object), np.array([0.5, 0.25]), "x")
    >>> qrels = Qrels(np.array(["1", "1"], object), np.array(["b", "c"], object), np.array([2.0, 1.0]))
    >>> judged = join_run(run, qrels, unjudged=0)
    >>> judged.y.tolist(), judged.missed_y.tolist()
    ([0.0, 2.0], [1.0])
    """
    grades: dict[tuple[str, str], float] = {}
    for query, document, grade in zip(qrels.qid, qrels.docids, qrels.y.tolist(), strict=True):
        if grades.setdefault((query, document), grade) != grade:
            raise InputError(f"the qrels grade document {document!r} of query {query!r} twice, differently; keep one.")
    keys = list(zip(run.qid, run.docids, strict=True))
    retrieved = set(keys)
    if len(retrieved) < len(keys):
        seen: set[tuple[Any, Any]] = set()
        query, document = next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(f"the run retrieves document {document!r} twice for query {query!r}; keep one.")
    y = np.array([grades.get(key, unjudged) for key in keys], dtype=np.float64)
    missed = [(query, grade) for (query, document), grade in grades.items() if (query, document) not in retrieved]
    missed_qid = np.array([query for query, _ in missed], dtype=object)
    return JudgedRun(y, run.scores, run.qid, run.docids, missed_qid, np.array([grade for _, grade in missed]))


def _names(values: ArrayLike, what: str) -> list[str]:
    names = [str(value) for value in np.asarray(values).tolist()]
    for row, name in enumerate(names):
        if not name:
            raise InputError(f"{what} holds an empty name at row {row}; TREC files need a name there.")
        if not _NAME(name):
            raise InputError(
                f"{what} holds {name!r} at row {row}, but blanks part the columns of a TREC file; replace them, such "
                f"as by {'_'.join(name.split())!r}."
            )
    return names
