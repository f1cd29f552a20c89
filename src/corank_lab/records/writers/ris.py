"""Records as RIS: lines of a tag and a value; fields without a tag become notes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corank_lab.records.writers.standard import OutputRecord, squeeze, tag_lines

TAGS = {
    "id": "ID", "title": "TI", "abstract": "AB", "authors": "AU", "year": "PY", "journal": "T2", "doi": "DO",
    "pmid": "PM", "accession": "AN", "keywords": "KW", "url": "UR", "references": "CR",
}  # fmt: skip
"""Tag of each standard value."""

NOTE = "N1"
TYPES = {
    "article": "JOUR", "book": "BOOK", "inbook": "CHAP", "incollection": "CHAP", "inproceedings": "CPAPER",
    "conference": "CPAPER", "phdthesis": "THES", "mastersthesis": "THES", "techreport": "RPRT", "unpublished": "UNPB",
}  # fmt: skip
"""Types of RIS by the types of BibTeX."""

_TAG = re.compile(r"[A-Z][A-Z0-9]")


def ris_text(records: Sequence[OutputRecord]) -> str:
    """Return records as RIS; every value is one line."""
    lines: list[str] = []
    for record in records:
        lines += [f"TY  - {_type(record)}"]
        for tag, name, value in tag_lines(record, "ris", TAGS):
            if tag in ("TY", "ER"):
                continue
            is_tag = bool(_TAG.fullmatch(tag))
            lines += [f"{tag if is_tag else NOTE}  - {'' if is_tag else squeeze(name) + ': '}{squeeze(value)}"]
        lines += [f"{NOTE}  - {record.mark}"] if record.mark else []
        lines += [f"{NOTE}  - {squeeze(name)}: {squeeze(text)}" for name, text in record.more.items() if text.strip()]
        lines += ["ER  - ", ""]
    return "\n".join(lines) + "\n"


def _type(record: OutputRecord) -> str:
    own = record.fields.get("TY", []) if record.family == "ris" else []
    if own and own[0].strip():
        return squeeze(own[0])
    entry = next(
        (values[0] for name, values in record.fields.items() if name == "type" and record.family == "bibtex"), ""
    )
    return TYPES.get(entry.casefold(), "JOUR" if "journal" in record.values else "GEN")
