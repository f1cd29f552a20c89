"""Parse records from CSV, RIS and JSON lines; columns are found by name, in any case."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from corank.data.formats.table_text import LINE_END, csv_rows, jsonl_rows
from corank.errors import InputError

COLUMNS = {
    "id": ("id", "record_id", "openalex_id", "pmid"),
    "title": ("title", "primary_title"),
    "abstract": ("abstract", "abstract note", "abstract_note", "abstract_inverted_index"),
    "references": ("references", "referenced_works", "cited_works"),
    "label": (
        "included", "label_included", "relevant", "label", "final_included", "included_label", "included_final",
        "included_flag", "include",
    ),
}  # fmt: skip
"""Names of each column; the first that is present is used."""

TAGS = {"id": ("ID", "AN"), "title": ("TI", "T1"), "abstract": ("AB", "N2"), "references": ("CR",)}
"""Tags in RIS; the first that is present in a record is used."""

YES, NO = ("1", "1.0", "true", "yes", "y", "relevant", "included"), ("0", "0.0", "false", "no", "n", "irrelevant")
UNJUDGED = ("", "-1", "-1.0", "nan", "none", "null", "na")
MARKS = {"asreview_relevant": 1.0, "asreview_irrelevant": 0.0, "asreview_not_relevant": 0.0}
"""Judgements in RIS notes, in ASReview's format."""

_TAG = re.compile(r"([A-Z][A-Z0-9])  -(?: (.*))?$", re.DOTALL)
_BETWEEN = re.compile(r"[\s|]+")


@dataclass(frozen=True)
class ParsedRecord:
    """One record of a file; `label` is NaN if it is not judged."""

    id: str = ""
    title: str = ""
    abstract: str = ""
    references: tuple[str, ...] = ()
    label: float = math.nan
    fields: Mapping[str, list[str]] = field(default_factory=dict)


def parse_csv(text: str, name: str) -> list[ParsedRecord]:
    """
    Parse a table with a header; cells are separated by commas, semicolons or tabs, as in the header.

    text: content of the file.
    name: name of the file, for messages.
    """
    header, rows = csv_rows(text, name)
    columns = _columns(header, name) if header else {}
    return [_entry(row, columns, where) for where, row in rows]


def parse_jsonl(text: str, name: str) -> list[ParsedRecord]:
    """
    Parse one JSON object per line; references are a list or text, an abstract is text or OpenAlex's inverted index.

    text, name: as in `parse_csv`.
    """
    names, rows = jsonl_rows(text, name)
    columns = _columns(names, name) if rows else {}
    return [_entry(row, columns, where) for where, row in rows]


def parse_ris(text: str, name: str) -> list[ParsedRecord]:
    """
    Parse RIS: lines of a tag and a value; a record ends with ``ER``. Judgements are notes in ASReview's format.

    text, name: as in `parse_csv`.
    """
    entries = []
    for lines in _ris_records(text, name):
        tags = {field: next((tag for tag in tags if tag in lines), "") for field, tags in TAGS.items()}
        taken = {tag: lines.pop(tag, []) for tag in tags.values()}
        values = {field: taken[tag] for field, tag in tags.items()}
        marks = [MARKS[mark] for note in lines.get("N1", ()) if (mark := note.strip().lower()) in MARKS]
        lines["N1"] = [note for note in lines.get("N1", ()) if not note.strip().lower().startswith("asreview_")]
        entries.append(
            ParsedRecord(
                " ".join(values["id"]).strip(), " ".join(values["title"]), "\n".join(values["abstract"]),
                tuple(values["references"]), marks[-1] if marks else math.nan,
                {tag: found for tag, found in lines.items() if found and tag != "ER"},
            )
        )  # fmt: skip
    return entries


def _ris_records(text: str, name: str) -> Iterator[dict[str, list[str]]]:
    lines: dict[str, list[str]] = {}
    last = ""
    for at, line in enumerate(LINE_END.split(text), 1):
        found = _TAG.match(line.rstrip())
        if found:
            last = found[1]
            lines.setdefault(last, []).append((found[2] or "").strip())
        elif line.strip() and last:
            lines[last][-1] += " " + line.strip()  # continuation of a long value
        elif line.strip():
            raise InputError(
                f"{name}, line {at}: expected a tag such as 'TY  - ', found {line[:40]!r}; check that the file is RIS."
            )
        if last == "ER":
            yield lines
            lines, last = {}, ""
    if lines:
        raise InputError(f"{name} ends inside a record; its last line must be 'ER  - '.")


def _columns(names: list[str], name: str) -> dict[str, str]:
    """Map our fields to the columns of the file; absent columns are left out."""
    folded = {one.strip().lower(): one for one in reversed(names)}
    found = {
        field: folded[spelled]
        for field, spellings in COLUMNS.items()
        if (spelled := next((spelling for spelling in spellings if spelling in folded), None)) is not None
    }
    if "title" not in found and "abstract" not in found:
        raise InputError(
            f"{name} has the columns {', '.join(names)[:200]}; name at least one of them title or abstract."
        )
    return found


def _entry(row: Mapping[str, Any], columns: Mapping[str, str], where: str) -> ParsedRecord:
    values = {field: row.get(column) for field, column in columns.items()}
    references = values.get("references") or ()
    if isinstance(references, str):
        references = _BETWEEN.split(references)
    elif not isinstance(references, list | tuple):
        raise InputError(f"{where}: references are {references!r}; expected ids as text or as a list.")
    used = set(columns.values())
    return ParsedRecord(
        id=_text(values.get("id")).strip(),
        title=_text(values.get("title")).strip(),
        abstract=_abstract(values.get("abstract"), where).strip(),
        references=tuple(cited for one in references if (cited := _text(one).strip(" ,;"))),
        label=_label(_text(values.get("label")), where),
        fields={_text(key): [shown] for key, value in row.items() if key not in used and (shown := _text(value))},
    )


def _abstract(value: Any, where: str) -> str:
    """Return an abstract; an inverted index of OpenAlex (positions of each word) becomes text."""
    if not isinstance(value, dict):
        return _text(value)
    places = [
        (at, word) for word, positions in value.items() if isinstance(positions, list) for at in positions
        if type(at) is int
    ]  # fmt: skip
    n_listed = sum(len(positions) if isinstance(positions, list) else 1 for positions in value.values())
    if len(places) < n_listed:
        raise InputError(f"{where}: expected a list of positions for each word of the inverted index of the abstract.")
    return _text(" ".join(word for _, word in sorted(places)))


def _text(value: Any) -> str:
    """Text unchanged, other values as JSON; lone surrogates, which UTF-8 cannot encode, become question marks."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def _label(value: str, where: str) -> float:
    folded = value.strip().lower()
    if folded in UNJUDGED:
        return math.nan
    if folded not in (*YES, *NO):
        raise InputError(
            f"{where}: the judgement is {value!r}; expected 1 (relevant), 0 (not relevant), or an empty cell."
        )
    return float(folded in YES)
