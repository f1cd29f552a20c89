"""
Write judgements in the formats of other tools, and count what a format cannot keep.

| format | one grade per document | judges, notes, unrateable, later |
|---|---|---|
| ``table`` (CSV), ``quepid-book`` (JSON) | no | kept |
| ``quepid`` (CSV), ``opensearch``, ``rank-eval`` (JSON), ``qrels``, ``ranklib`` (text) | yes | not kept |
| ``pairs`` (CSV: query, better and worse document) | yes; grades are lost too | not kept |

Judgements from clicks: clicks over expected clicks (COEC).

The click-through rate of position k is c_k = (clicks at k) / (documents shown at k). A document that was shown at the
positions k_1, ..., k_n of a query gets the grade

    (its clicks) / Σ_i c_{k_i} ,

so 1 means that it was clicked as often as any document at these positions. This corrects the position bias only as far
as relevance and position are unrelated in the log; `corank.clicks.position_bias` needs no such assumption.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any
from urllib.parse import quote

import numpy as np

from corank.data.collection import as_texts
from corank.data.durable.compressed import write_text
from corank.data.io.click_log import ClickLog
from corank.data.io.judgements import GRADED, LATER, UNRATEABLE, JudgementList
from corank.data.io.table_text import csv_text
from corank.errors import InputError, suggest_names

COMPLETE = ("table", "quepid-book")
"""Formats that keep judges, notes and answers without a grade."""

_FORMULA_SIGNS = ("-", "=", "+", "@", "\t", "\r")


def write_judgements(
    path: str | os.PathLike[str],
    judgements: JudgementList,
    format: str,
    *,
    rule: str = "median",
    name: str = "corank",
    index: str = "documents",
    overwrite: bool = False,
) -> list[str]:
    """
    Write judgements atomically in a format of the table above, and return what the format cannot keep, in words such as
    "2 notes".

    path: the suffixes .gz, .xz and .zst select compression, "-" is standard output.
    rule: grade of a document with several grades: "median", "mean" or "majority".
    name, index: name of the list or book, and index of the documents of `_rank_eval`.
    """
    if format not in JUDGEMENT_WRITERS:
        raise InputError(f"the format {format!r} is unknown; {suggest_names(format, list(JUDGEMENT_WRITERS))}.")
    if format in COMPLETE:
        lost: list[str] = []
    else:
        lost = _lost(judgements, rule)
        judgements = judgements.final(rule)
        if not len(judgements):
            raise InputError("there are no grades to write; grade some documents first.")
    text, more = JUDGEMENT_WRITERS[format](judgements, name, index)
    with write_text(path, overwrite=overwrite) as stream:
        stream.write(text.encode(errors="surrogateescape"))
    return lost + more


def _lost(judgements: JudgementList, rule: str) -> list[str]:
    """Return what a format with one grade per document cannot keep."""
    judges = set() if judgements.judges is None else set(judgements.judges.tolist()) - {""}
    n_notes = 0 if judgements.notes is None else int(np.count_nonzero(judgements.notes != ""))
    notes = "note" + "s" * (n_notes != 1)
    counts = ((n_notes, notes), (judgements.count(UNRATEABLE), "'unrateable'"), (judgements.count(LATER), "'later'"))
    result = [f"{count} {what}" for count, what in counts if count]
    if len(judges) > 1:
        result.insert(0, f"the {len(judges)} judges (each document has the {rule} of its grades)")
    elif judges:
        result.insert(0, "the name of the judge")
    return result


def _queries(judgements: JudgementList) -> list[str]:
    return ["all"] * len(judgements) if judgements.qid is None else judgements.qid.tolist()


def _grade(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _by_query(judgements: JudgementList) -> Iterator[tuple[str, list[tuple[str, int | float]]]]:
    """Yield each query with its documents and grades; queries are in the order in which they first appear."""
    names = _queries(judgements)
    order = {query: number for number, query in enumerate(dict.fromkeys(names))}
    rows = sorted(
        zip(names, judgements.docids.tolist(), judgements.y.tolist(), strict=True), key=lambda item: order[item[0]]
    )
    for query, group in groupby(rows, key=lambda entry: entry[0]):
        yield query, [(document, _grade(grade)) for _, document, grade in group]


def _as_table(judgements: JudgementList, name: str, index: str) -> tuple[str, list[str]]:
    columns = [judgements.judges, judgements.answers, judgements.notes]
    cells = [as_texts([""] * len(judgements)) if column is None else column for column in columns]
    rows: list[list[object]] = [["query", "query_text", "docid", "rating", "judge", "answer", "explanation"]]
    for query, document, grade, judge, answer, note in zip(
        _queries(judgements), judgements.docids, judgements.y.tolist(), *cells, strict=True
    ):
        is_graded = grade == grade
        kind = answer or (GRADED if is_graded else "")
        text = judgements.query_texts.get(query, "")
        rows.append([query, text, document, _grade(grade) if is_graded else "", judge, kind, note])
    return csv_text(rows), []


def _as_quepid(judgements: JudgementList, name: str, index: str) -> tuple[str, list[str]]:
    rows: list[list[object]] = [["query", "docid", "rating"]]
    for query, graded in _by_query(judgements):
        text = blank_before_formula(judgements.text_of(query))
        rows += [[text, blank_before_formula(document), grade] for document, grade in graded]
    return csv_text(rows, keep_formulas=True), []


def blank_before_formula(text: str) -> str:
    """Put a blank before signs that a spreadsheet would run, as Quepid does; readers strip it."""
    return f" {text}" if text.startswith(_FORMULA_SIGNS) else text


def _as_book(judgements: JudgementList, name: str, index: str) -> tuple[str, list[str]]:
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    n = len(judgements)
    judges, notes = (
        ([""] * n if item is None else item.tolist()) for item in (judgements.judges, judgements.notes)
    )  # fmt: skip
    answers = [GRADED] * n if judgements.answers is None else judgements.answers.tolist()
    for row, query in enumerate(_queries(judgements)):
        matches = pairs.setdefault((query, judgements.docids[row]), [])
        grade = float(judgements.y[row])
        if grade != grade and answers[row] == GRADED:
            continue  # an unjudged document
        matches.append(
            {
                "rating": None if grade != grade else grade, "unrateable": answers[row] == UNRATEABLE,
                "judge_later": answers[row] == LATER, "user_email": judges[row], "explanation": notes[row],
            }
        )  # fmt: skip
    grades = sorted({_grade(item) for item in judgements.y.tolist() if item == item})
    book: dict[str, Any] = {
        "name": name, "scale": grades, "scale_with_labels": {str(item): "" for item in grades},
        "query_doc_pairs": [
            {
                "query_text": judgements.text_of(query), "doc_id": document, "position": None, "information_need": "",
                "document_fields": {}, "notes": "", "options": {}, "judgements": result,
            }
            for (query, document), result in pairs.items()
        ],
    }  # fmt: skip
    lost = {query for query in judgements.query_texts if judgements.query_texts[query] != query}
    return _json(book), [f"{len(lost)} ids of queries (the book has their words)"] * bool(lost)


def _as_workbench(judgements: JudgementList, name: str, index: str) -> tuple[str, list[str]]:
    ratings = [
        {"query": judgements.text_of(query), "ratings": [{"docId": item, "rating": grade} for item, grade in graded]}
        for query, graded in _by_query(judgements)
    ]
    value = {"name": name, "description": "", "type": "IMPORT_JUDGMENT", "judgmentRatings": ratings}
    return _json(value), []


def _as_rank_eval(judgements: JudgementList, name: str, index: str) -> tuple[str, list[str]]:
    requests = []
    not_whole = 0
    for query, graded in _by_query(judgements):
        not_whole += sum(not isinstance(grade, int) for _, grade in graded)
        ratings = [{"_index": index, "_id": document, "rating": grade} for document, grade in graded]
        search = {"query": {"query_string": {"query": judgements.text_of(query)}}}
        requests.append({"id": query, "request": search, "ratings": ratings})
    if not_whole:
        raise InputError(
            f"{not_whole} grades are not whole numbers, which _rank_eval requires; round them, or aggregate judges by "
            "their median."
        )
    return _json({"requests": requests, "metric": {"dcg": {"k": 10, "normalize": True}}}), []


def _as_qrels(judgements: JudgementList, name: str, index: str) -> tuple[str, list[str]]:
    lines, encoded = [], set()
    for query, graded in _by_query(judgements):
        for document, grade in graded:
            names = encode_name(query), encode_name(document)
            encoded |= {old for old, new in zip((query, document), names, strict=True) if old != new}
            lines.append(f"{names[0]} 0 {names[1]} {grade}\n")
    lost = [f"the words of {len(judgements.query_texts)} queries"] * bool(judgements.query_texts)
    lost += [f"blanks in {len(encoded)} names (percent-encoded; --decode reverses this)"] * bool(encoded)
    return "".join(lines), lost


def _as_ranklib(judgements: JudgementList, name: str, index: str) -> tuple[str, list[str]]:
    head, lines, encoded = [], [], 0
    for number, (query, graded) in enumerate(_by_query(judgements), 1):
        words = " ".join(judgements.text_of(query).split())
        head.append(f"# qid:{number}: {words}\n")
        for document, grade in graded:
            encoded += encode_name(document) != document
            lines.append(f"{grade} qid:{number} # {encode_name(document)} {words}\n")
    note = f"blanks in {encoded} document ids (percent-encoded; --decode reverses this)"
    return "".join([*head, "\n", *lines]), [note] * bool(encoded)


def _as_pairs(judgements: JudgementList, name: str, index: str) -> tuple[str, list[str]]:
    rows: list[list[object]] = [["query", "better", "worse"]]
    for query, graded in _by_query(judgements):
        rows += [
            [query, better, worse] for better, high in graded for worse, low in graded if high > low
        ]  # fmt: skip
    if len(rows) == 1:
        raise InputError("no query has two different grades, so there are no pairs; grade more documents.")
    return csv_text(rows), ["the grades (pairs keep their order only)"]


def encode_name(name: str) -> str:
    """Percent-encode the blanks of a name, so that it is one word; a name without blanks stays as it is."""
    if not any(item.isspace() for item in name):
        return name
    return "".join(quote(item) if item.isspace() or item == "%" else item for item in name)


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


JUDGEMENT_WRITERS: dict[str, Callable[[JudgementList, str, str], tuple[str, list[str]]]] = {
    "table": _as_table,
    "quepid": _as_quepid,
    "quepid-book": _as_book,
    "opensearch": _as_workbench,
    "rank-eval": _as_rank_eval,
    "qrels": _as_qrels,
    "ranklib": _as_ranklib,
    "pairs": _as_pairs,
}
"""Each format: a function of judgements, name and index that returns the text, and what it does not keep."""


def click_judgements(log: ClickLog) -> JudgementList:
    """Return one grade for each document of a query: clicks over expected clicks."""
    kept = np.ones(len(log.qid), dtype=bool) if log.complete is None else log.complete
    if not log.clicked[kept].any():
        raise InputError("no complete list has a click, so no grades can be computed; log more lists.")
    position, clicked = log.position[kept], log.clicked[kept].astype(np.float64)
    rate = np.bincount(position, weights=clicked) / np.maximum(np.bincount(position), 1)
    pairs = list(zip(log.qid[kept].tolist(), log.docids[kept].tolist(), strict=True))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    code = np.array([numbers[pair] for pair in pairs])
    clicks, expected = np.bincount(code, weights=clicked), np.bincount(code, weights=rate[position])
    known = expected > 0
    y = np.round(clicks[known] / expected[known], 3)
    queries, documents = zip(*(pair for pair, is_known in zip(numbers, known, strict=True) if is_known), strict=True)
    return JudgementList(y, as_texts(list(queries)), as_texts(list(documents)))
