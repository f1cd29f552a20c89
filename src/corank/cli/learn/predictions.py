"""Hold the PREDICTIONS of `corank evaluate`, a run or scores, against its TRUTH."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from corank.data.formats.read import detect_format, is_number, open_source, read
from corank.data.formats.text import TextFile, open_text
from corank.data.formats.trec import QRELS_COLUMNS, RUN_COLUMNS, Qrels, read_qrels, read_scores
from corank.data.problem.collection import Collection
from corank.errors import InputError
from corank.metrics import Evaluation, evaluate, evaluate_run


def read_truth(path: Path, unscored: float | None, label: str = "label", qid: str | None = None) -> Qrels | Collection:
    """
    Read grades from qrels, LETOR text, a store, Parquet or CSV, told apart by what they are.

    path: the file or folder.
    unscored: label that marks an unjudged row.
    label, qid: columns of a table.
    """
    source = open_source(path)
    kind = detect_format(source)
    if isinstance(source, TextFile) and kind in ("text", "csv"):
        words = _first_words(source)
        # a line of LETOR text has a colon in its second word (qid:7, or 1:0.5), and a table begins with names
        if len(words) == len(QRELS_COLUMNS) and b":" not in words[1] and (kind == "text" or is_number(words[3])):
            qrels = read_qrels(source)
            return qrels if unscored is None else replace(qrels, y=np.where(qrels.y == unscored, np.nan, qrels.y))
    return read(source, unscored=unscored, y=label, qid=qid)


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
    text = open_text(predictions)
    words = _first_words(text)
    if len(words) == len(RUN_COLUMNS):
        if truth.docids is None or truth.qid is None:
            missing = "documents" if truth.docids is None else "queries"
            raise InputError(f"{path} names no {missing}, so the run {text} cannot be matched; pass a score file.")
        return evaluate_run(truth, text, metrics, convention=convention)
    if len(words) > 1 and b":" in words[1]:
        raise InputError(f"{text} is LETOR text, not predictions; name the truth first, then its predictions.")
    if len(words) != 1:
        raise InputError(
            f"{text} has {len(words)} columns; expected one score a line, as corank rank writes it, or a TREC "
            f"run: {' '.join(RUN_COLUMNS)}."
        )
    scores = read_scores(text)
    if len(scores) != len(truth.y):
        raise InputError(f"{text} has {len(scores)} scores for {len(truth.y)} rows of {path}; pass one per row.")
    return evaluate(truth.y, scores, truth.qid, metrics, convention=convention, docids=truth.docids)


def _first_words(text: TextFile) -> list[bytes]:
    words = text.first_line().split()
    if not words:
        raise InputError(f"{text} has no rows.")
    return words
