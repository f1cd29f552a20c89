"""Read the TRUTH and PREDICTIONS of `corank evaluate`: grades, and the scores or runs that are held against them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.cli.problem import read_problem
from corank.data.compressed import open_text
from corank.data.trec import QRELS_COLUMNS, RUN_COLUMNS, Qrels, Run, join_run, read_qrels, read_run
from corank.errors import InputError


@dataclass(frozen=True, eq=False)
class Truth:
    """
    Judged rows.

    Attributes
    ----------
    path : Path
        Where they came from, for messages.
    y : array of float64
        Grades, NaN where unjudged.
    qid : array
        Query of each row.
    docids : array or None
        Document of each row, where the file names them.
    """

    path: Path
    y: NDArray[np.float64]
    qid: NDArray[Any]
    docids: NDArray[Any] | None


@dataclass(frozen=True, eq=False)
class Scored:
    """
    What `corank.metrics.evaluate` takes: aligned rows, and how many queries could not be matched.

    Attributes
    ----------
    y, scores, qid : arrays
        Grades, scores and queries.
    docids : array or None
        Documents.
    retrieved : array of bool or None
        False for judged rows that a run left out.
    n_absent : int
        Judged queries for which a run has nothing; they are left out, as trec_eval does.
    """

    y: NDArray[np.float64]
    scores: NDArray[np.float64]
    qid: NDArray[Any]
    docids: NDArray[Any] | None
    retrieved: NDArray[np.bool_] | None
    n_absent: int


def read_truth(path: Path, unscored: float | None) -> Truth:
    """
    Read grades from qrels, LETOR text, a store or Parquet, told apart by what they are.

    Parameters
    ----------
    path : Path
        The file or folder.
    unscored : float, optional
        Label that marks an unjudged row.

    Returns
    -------
    Truth
        The grades.
    """
    if not path.is_dir() and path.suffix != ".parquet":
        words = _first_words(path)
        # a line of LETOR text has a colon in its second word: qid:7, or 1:0.5
        if len(words) == len(QRELS_COLUMNS) and b":" not in words[1]:
            qrels = read_qrels(path)
            y = qrels.y if unscored is None else np.where(qrels.y == unscored, np.nan, qrels.y)
            return Truth(path, y, qrels.qid, qrels.docids)
    problem = read_problem([path], unscored=unscored)
    queries = problem.data.queries
    return Truth(path, np.asarray(problem.data.y), queries.ids[queries.codes], problem.source.docids)


def read_predictions(path: Path, truth: Truth) -> Scored:
    """
    Read a score file (one number a line, a line for each row of the truth) or a TREC run.

    Parameters
    ----------
    path : Path
        The file.
    truth : Truth
        The judged rows.

    Returns
    -------
    Scored
        Rows to evaluate.
    """
    words = _first_words(path)
    if len(words) == len(RUN_COLUMNS):
        return _joined(read_run(path), path, truth)
    if len(words) != 1:
        raise InputError(
            f"{path} has {len(words)} columns; expected one score a line, or a TREC run: {' '.join(RUN_COLUMNS)}."
        )
    scores = _read_scores(path)
    if len(scores) != len(truth.y):
        raise InputError(f"{path} has {len(scores)} scores for {len(truth.y)} rows of {truth.path}; pass one per row.")
    return Scored(truth.y, scores, truth.qid, truth.docids, None, 0)


def _joined(run: Run, path: Path, truth: Truth) -> Scored:
    if truth.docids is None:
        raise InputError(f"{truth.path} names no documents, so the run {path} cannot be matched; pass a score file.")
    names = np.array([str(query) for query in truth.qid.tolist()], dtype=object)
    judged = ~np.isnan(truth.y)
    wanted, found = set(names.tolist()), set(run.qid.tolist())
    if not wanted & found:
        raise InputError(f"{path} and {truth.path} have no query in common; check that their query ids agree.")
    # as in trec_eval, only queries that are in both files are evaluated
    kept = np.array([query in wanted for query in run.qid.tolist()])
    part = Run(run.qid[kept], run.docids[kept], run.scores[kept], run.tag)
    joined = join_run(part, Qrels(names[judged], truth.docids[judged], truth.y[judged]))
    missed = np.array([query in found for query in joined.missed_qid.tolist()], dtype=bool)
    n_missed = int(missed.sum())
    return Scored(
        np.concatenate([joined.y, joined.missed_y[missed]]),
        np.concatenate([joined.scores, np.zeros(n_missed)]),
        np.concatenate([joined.qid, joined.missed_qid[missed]]),
        np.concatenate([joined.docids, np.full(n_missed, "", dtype=object)]),
        np.arange(len(joined.y) + n_missed) < len(joined.y),
        len(wanted - found),
    )


def _read_scores(path: Path) -> NDArray[np.float64]:
    lines = bytes(open_text(path).mapped).rstrip().split(b"\n")
    scores = np.empty(len(lines))
    for row, line in enumerate(lines):
        try:
            scores[row] = float(line)
        except ValueError:
            scores[row] = math.nan
        if not math.isfinite(scores[row]):
            word = line.strip().decode(errors="replace")[:40]
            raise InputError(f"{path}, line {row + 1}: expected a finite score, found {word!r}.")
    return scores


def _first_words(path: Path) -> list[bytes]:
    """Words of the first line that is neither blank nor a comment; a comment behind them is left out."""
    text = open_text(path).mapped
    begin = 0
    while begin < len(text):
        stop = text.find(b"\n", begin)
        stop = len(text) if stop < 0 else stop
        words = text[begin:stop].split(b"#")[0].split()
        if words:
            return words
        begin = stop + 1
    raise InputError(f"{path} has no rows.")
