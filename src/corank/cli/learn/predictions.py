"""Read and evaluate the TRUTH and PREDICTIONS of `corank evaluate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.cli.rows import ColumnOptions, read_rows
from corank.data.collection import Dataset, as_texts
from corank.data.column_roles import ColumnChoice
from corank.data.io.judgements.judgement_list import JudgementList
from corank.data.io.judgements.reading import JSON, read_judgements
from corank.data.io.read import detect_format, is_number, open_source
from corank.data.io.search_responses import as_run, read_responses
from corank.data.io.table_text import csv_rows, suffix_of
from corank.data.io.text import TextFile, open_text
from corank.data.io.trec import QRELS_COLUMNS, RUN_COLUMNS, Qrels, Run, merge_qrels, read_qrels, read_run, read_scores
from corank.data.judges import JudgeGrades
from corank.errors import InputError
from corank.metrics import Evaluation, evaluate, evaluate_run


def read_truth(path: Path, unjudged: float | None, columns: ColumnOptions = ColumnOptions()) -> Qrels | Dataset:  # noqa: B008
    """Read grades from qrels, LETOR text, a store, Parquet or CSV; the format is detected."""
    if suffix_of(path) in JSON:
        return _qrels_of(read_judgements(path), columns.judges)
    source = open_source(path)
    kind = detect_format(source)
    if isinstance(source, TextFile) and kind == "csv" and _has_no_features(source, columns):
        listed = read_judgements(
            path, y=columns.label, qid=columns.qid, docid=columns.id_column, judge=columns.judge_column
        )
        return _qrels_of(replace(listed, y=np.where(listed.y == unjudged, np.nan, listed.y)), columns.judges)
    if isinstance(source, TextFile) and kind in ("text", "csv"):
        words = _first_words(source)
        # the second word of LETOR text has a colon (qid:7 or 1:0.5), and tables begin with column names
        if len(words) == len(QRELS_COLUMNS) and b":" not in words[1] and (kind == "text" or is_number(words[3])):
            qrels = read_qrels(source)
            qrels = qrels if unjudged is None else replace(qrels, y=np.where(qrels.y == unjudged, np.nan, qrels.y))
            return qrels if columns.judges == "keep" else merge_qrels(qrels, columns.judges, source)
    return read_rows([source], columns, needs_labels=True, unjudged=unjudged)


def _qrels_of(found: JudgementList, rule: str) -> Qrels:
    judged = found if rule == "keep" else found.final(rule)
    queries = as_texts(["all"] * len(judged)) if judged.qid is None else judged.qid
    return Qrels(queries, judged.docids, judged.y)


def _has_no_features(text: TextFile, columns: ColumnOptions) -> bool:
    """Return whether a table lists grades of documents, without features, so that it can only be compared with runs."""
    line = text.first_line().decode(errors="replace")
    names, _ = csv_rows(line, str(text))
    if columns.drop or columns.keep or len(names) > 4:
        return False
    choice = ColumnChoice(y=columns.label or False, docid=columns.id_column, judge=columns.judge_column)
    roles = choice.roles(names, text)
    return bool(roles.y and roles.docid and roles.qid and not roles.features)


def evaluate_predictions(
    path: Path, predictions: Path, truth: Qrels | Dataset, metrics: list[str], convention: str
) -> Evaluation:
    """Evaluate a score file (one number per line, aligned with the truth) or a TREC run."""
    if suffix_of(predictions) in JSON:
        return evaluate_run(
            truth, as_run(read_responses(predictions), str(predictions)), metrics, convention=convention
        )
    text = open_text(predictions)
    words = _first_words(text)
    if len(words) == len(RUN_COLUMNS):
        if truth.docids is None or truth.qid is None:
            missing = "documents" if truth.docids is None else "queries"
            raise InputError(f"{path} has no ids of {missing}, so the run {text} cannot be matched; pass a score file.")
        return evaluate_run(truth, text, metrics, convention=convention)
    if len(words) > 1 and b":" in words[1]:
        raise InputError(f"{text} is LETOR text, not predictions; pass the truth first, then its predictions.")
    if len(words) != 1:
        raise InputError(
            f"{text} has {len(words)} columns; expected one score per line, as corank rank writes it, or a TREC "
            f"run: {' '.join(RUN_COLUMNS)}."
        )
    scores = read_scores(text)
    n_rows = len(truth.y if truth.judged is None else truth.judged.document_of)
    if len(scores) != n_rows:
        raise InputError(f"{text} has {len(scores)} scores for {n_rows} rows of {path}; pass one per row.")
    if truth.judged is not None:
        scores = _scores_of_documents(scores, truth.judged, text)
    return evaluate(truth.y, scores, truth.qid, metrics, convention=convention, docids=truth.docids)


def read_run_file(path: Path) -> Run:
    """Read a TREC run or saved answers of a search engine."""
    if suffix_of(path) in JSON:
        return as_run(read_responses(path), str(path))
    text = open_text(path)
    if len(words := _first_words(text)) != len(RUN_COLUMNS):
        raise InputError(
            f"{text} has {len(words)} columns; with --gold, all files are TREC runs: {' '.join(RUN_COLUMNS)}."
        )
    return read_run(text)


def _scores_of_documents(scores: NDArray[np.float64], judged: JudgeGrades, text: TextFile) -> NDArray[np.float64]:
    """Return one score per document; raise `InputError` if rows of a document have different scores."""
    result = scores[judged.first]
    differs = np.flatnonzero(result[judged.document_of] != scores)
    if len(differs):
        row = int(differs[0])
        first = int(judged.first[judged.document_of[row]])
        raise InputError(
            f"{text} has the scores {scores[first]:g} and {scores[row]:g} for rows {first + 1} and {row + 1}, which "
            "are judgements of the same document; score both alike, or pass --judges keep."
        )
    return result


def _first_words(text: TextFile) -> list[bytes]:
    words = text.first_line().split()
    if not words:
        raise InputError(f"{text} has no rows; expected at least one line.")
    return words
