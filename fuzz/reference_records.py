"""
Slow reference readers of records: CSV letter by letter, RIS line by line, JSON lines value by value.

They return None for a text that must be rejected.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

NAMES = {
    "id": ["id", "record_id", "openalex_id", "pmid"],
    "title": ["title", "primary_title"],
    "abstract": ["abstract", "abstract note", "abstract_note"],
    "references": ["references", "referenced_works", "cited_works"],
    "label": [
        "included", "label_included", "relevant", "label", "final_included", "included_label", "included_final",
        "included_flag", "include",
    ],
}  # fmt: skip
LABELS = {
    **dict.fromkeys(["1", "1.0", "true", "yes", "y", "relevant", "included"], 1.0),
    **dict.fromkeys(["0", "0.0", "false", "no", "n", "irrelevant"], 0.0),
    **dict.fromkeys(["", "-1", "-1.0", "nan", "none", "null", "na"], math.nan),
}


@dataclass(frozen=True)
class Work:
    """A record."""

    id: str = ""
    title: str = ""
    abstract: str = ""
    references: list[str] = field(default_factory=list)
    label: float = math.nan

    def key(self) -> tuple[Any, ...]:
        """Return values that can be compared, None for NaN."""
        return self.id, self.title, self.abstract, self.references, None if math.isnan(self.label) else self.label


def read_works(content: bytes, kind: str) -> list[Work] | None:
    """Return the records of a file (csv, ris or jsonl) with ids filled in."""
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        return None
    works = {"csv": _table, "ris": _ris, "jsonl": _json_lines}[kind](text)
    if not works or not any(work.title or work.abstract for work in works):
        return None
    named = [Work(work.id or str(at), *list(work.__dict__.values())[1:]) for at, work in enumerate(works, 1)]
    return named if len({work.id for work in named}) == len(named) else None


def _table(text: str) -> list[Work] | None:
    lines = [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]
    if not lines:
        return None
    rows = _cells(text, max([",", ";", "\t"], key=lines[0].count))
    if rows is None:
        return None
    rows = [row for row in rows if any(row)]
    if not rows:
        return None
    header = [name.strip() for name in rows[0]]
    if any(len(row) != len(header) for row in rows) or not _are_different(header):
        return None
    return _works([dict(zip(header, row, strict=True)) for row in rows[1:]], header)


def _are_different(names: list[str]) -> bool:
    named = [name.lower() for name in names if name]
    return len(set(named)) == len(named)


def _cells(text: str, mark: str) -> list[list[str]] | None:
    """Return rows of cells; quotes are special at the beginning of a cell only, and doubled inside it."""
    rows, row, cell, at = [], [], "", 0
    state = "begin"  # of a cell; "plain", "quoted", "closed" behind the second quote
    is_empty = True
    while at < len(text):
        letter = text[at]
        is_end = letter in "\r\n"
        if state == "quoted":
            if letter == '"' and text[at + 1 : at + 2] == '"':
                cell, at = cell + '"', at + 1
            elif letter == '"':
                state = "closed"
            else:
                cell += letter
        elif letter == mark or is_end:
            if letter == mark or not is_empty:
                row.append(cell)
            if is_end:
                rows.append(row)
                row, is_empty = [], True
                at += text[at : at + 2] == "\r\n"
            else:
                is_empty = False
            cell, state = "", "begin"
        elif state == "closed":
            return None
        elif state == "begin" and letter == '"':
            state, is_empty = "quoted", False
        else:
            cell, state, is_empty = cell + letter, "plain", False
        at += 1
    if state == "quoted":
        return None
    if not is_empty:
        row.append(cell)
        rows.append(row)
    return rows


def _json_lines(text: str) -> list[Work] | None:
    rows: list[dict[str, Any]] = []
    for line in text.split("\n"):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                return None
            if not isinstance(row, dict):
                return None
            rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return _works(rows, names) if rows else None


def _works(rows: list[dict[str, Any]], names: list[str]) -> list[Work] | None:
    places = {}
    for ours, spellings in NAMES.items():
        for spelling in spellings:
            called = [name for name in names if name.strip().lower() == spelling]
            if called:
                places[ours] = called[0]
                break
    if "title" not in places and "abstract" not in places:
        return None
    works = []
    for row in rows:
        given = {ours: row.get(name) for ours, name in places.items()}
        cited = given.get("references")
        if cited is None or cited in ("", False, 0, {}):
            cited = []
        if isinstance(cited, str):
            cited = re.split(r"[\s|]+", cited)
        if not isinstance(cited, list):
            return None
        label = LABELS.get(_said(given.get("label")).strip().lower())
        if label is None:
            return None
        texts = [_said(given.get(name)).strip() for name in ("id", "title", "abstract")]
        works.append(Work(*texts, [one for work in cited if (one := _said(work).strip(" ,;"))], label))
    return works


def _said(value: Any) -> str:
    """Return text unchanged, "" for None, otherwise JSON; invalid characters become question marks."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join("?" if 0xD800 <= ord(letter) <= 0xDFFF else letter for letter in text)


def _ris(text: str) -> list[Work] | None:
    works: list[Work] = []
    values: list[tuple[str, str]] = []
    for line in re.split(r"\r\n|\r|\n", text):
        found = re.match(r"([A-Z][A-Z0-9])  -( .*)?$", line.rstrip(), re.DOTALL)
        if found:
            values.append((found[1], (found[2] or "").strip()))
        elif line.strip():
            if not values:
                return None
            tag, value = values.pop()
            values.append((tag, f"{value} {line.strip()}"))
        if values and values[-1][0] == "ER":
            works.append(_ris_work(values))
            values = []
    return None if values else works


def _ris_work(values: list[tuple[str, str]]) -> Work:
    def of(*tags: str) -> list[str]:
        tag = next((tag for tag in tags if tag in dict(values)), "")
        return [value for name, value in values if name == tag]

    marks = {"asreview_relevant": 1.0, "asreview_irrelevant": 0.0, "asreview_not_relevant": 0.0}
    label = math.nan
    for note in of("N1"):
        label = marks.get(note.strip().lower(), label)
    title, abstract = " ".join(of("TI", "T1")), "\n".join(of("AB", "N2"))
    return Work(" ".join(of("ID", "AN")).strip(), title, abstract, of("CR"), label)
