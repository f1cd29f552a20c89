"""Records in the format of PubMed (.nbib): tags of four characters and indented continuation lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from corank_lab.records.writers.standard import OutputRecord, squeeze, tag_lines

TAGS = {
    "pmid": "PMID", "title": "TI", "abstract": "AB", "authors": "FAU", "year": "DP", "journal": "JT", "doi": "AID",
    "keywords": "OT", "accession": "AN", "id": "ID", "url": "UR", "references": "CR",
}  # fmt: skip
"""Tag of each standard value; the last four are not PubMed's own."""

NOTE = "GN"
WIDTH = 82
WRAPPED = ("TI", "AB")
_TAG = re.compile(r"[A-Z][A-Z0-9]{1,3}")


def nbib_text(records: Sequence[OutputRecord]) -> str:
    """Return records in the format of PubMed; fields without a tag become general notes (``GN``)."""
    texts = []
    for record in records:
        # PMID begins a record, also without a number
        lines = [] if record.text("pmid") else ["PMID-"]
        for tag, name, value in tag_lines(record, "nbib", TAGS):
            is_tag = bool(_TAG.fullmatch(tag))
            is_new_doi = tag == "AID" and name == "doi"
            text = squeeze(value) + (" [doi]" if is_new_doi else "")
            lines.append(_line(tag if is_tag else NOTE, text if is_tag else f"{squeeze(name)}: {text}"))
        lines += [_line(NOTE, record.mark)] if record.mark else []
        lines += [
            _line(NOTE, f"{squeeze(name)}: {squeeze(text)}") for name, text in record.more.items() if text.strip()
        ]
        texts.append("\n".join(lines) + "\n")
    return "\n".join(texts)


def _line(tag: str, value: str) -> str:
    # other values may be lists, in which every line is a value
    lines = textwrap.wrap(value, WIDTH, break_long_words=False, break_on_hyphens=False) if tag in WRAPPED else [value]
    return f"{tag:<4}- " + "\n      ".join(lines)
