"""Hold the PREDICTIONS of `corank evaluate`, a run or scores, against its TRUTH."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data.collection import Collection
from corank.data.compressed import first_line, open_text
from corank.data.read import is_number, kind_of, read
from corank.data.trec import QRELS_COLUMNS, RUN_COLUMNS, Qrels, read_qrels
from corank.errors import InputError
from corank.metrics import Evaluation, evaluate, evaluate_run


def read_truth(path: Path, unscored: float | None, label: str = "label", qid: str | None = None) -> Qrels | Collection:
    """
    Read grades from qrels, LETOR text, a store, Parquet or CSV, told apart by what they are.

    path: the file or folder.
    unscored: label that marks an unjudged row.
    label, qid: columns of a table.
    """
    kind = kind_of(path)
    if kind in ("text", "csv"):
        words = _first_words(path)
        # a line of LETOR text has a colon in its second word (qid:7, or 1:0.5), and a table begins with names
        if len(words) == len(QRELS_COLUMNS) and b":" not in words[1] and (kind == "text" or is_number(words[3])):
            qrels = read_qrels(path)
            return qrels if unscored is None else replace(qrels, y=np.where(qrels.y == unscored, np.nan, qrels.y))
    return read(path, unscored=unscored, y=label, qid=qid)


def hold_against(
    path: Path, predictions: Path, truth: Qrels | Collection, metrics: list[str], convention: str
) -> Evaluation:
    """
    Evaluate a score file (one number a line, a line for each row of the truth) or a TREC run.

    path: where the truth came from, for messages.
    truth: the judged rows.
    metrics: names of metrics.
    convention: name of the convention.
    Returns: what was measured.
    """
    words = _first_words(predictions)
    if len(words) == len(RUN_COLUMNS):
        if truth.docids is None or truth.qid is None:
            missing = "documents" if truth.docids is None else "queries"
            raise InputError(
                f"{path} names no {missing}, so the run {predictions} cannot be matched; pass a score file."
            )
        return evaluate_run(truth, predictions, metrics, convention=convention)
    if len(words) > 1 and b":" in words[1]:
        raise InputError(f"{predictions} is LETOR text, not predictions; name the truth first, then its predictions.")
    if len(words) != 1:
        raise InputError(
            f"{predictions} has {len(words)} columns; expected one score a line, as corank rank writes it, or a TREC "
            f"run: {' '.join(RUN_COLUMNS)}."
        )
    scores = _read_scores(predictions)
    if len(scores) != len(truth.y):
        raise InputError(f"{predictions} has {len(scores)} scores for {len(truth.y)} rows of {path}; pass one per row.")
    return evaluate(truth.y, scores, truth.qid, metrics, convention=convention, docids=truth.docids)


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
    words = first_line(path, comment=b"#").split()
    if not words:
        raise InputError(f"{path} has no rows.")
    return words
