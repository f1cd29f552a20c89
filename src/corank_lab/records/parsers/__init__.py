"""
Recognise the format of a record file by its content, and parse it.

A format is a pair in `FORMATS`: whether a text begins as that format, and its parser. A tagged format is an entry of
`corank_lab.records.parsers.tagged.DIALECTS` alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from corank.errors import InputError
from corank_lab.records.parsers.bibtex import parse_bibtex
from corank_lab.records.parsers.documents import is_load_file, is_mail, parse_load_file, parse_mail
from corank_lab.records.parsers.nested import parse_json, parse_xml
from corank_lab.records.parsers.parsed import LoadedFile, ParsedFile, decode, head_of
from corank_lab.records.parsers.tables import is_labelled, parse_excel, parse_labelled, parse_table
from corank_lab.records.parsers.tagged import find_dialect, parse_tagged

_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls); save it as .xlsx or CSV",
    b"%PDF": "a PDF file; export the records as RIS, CSV or Excel",
    b"{\\rtf": "a rich text file; export the records as RIS, CSV or Excel",
    b"PAR1": "a Parquet file; convert it to CSV",
    b"SQLite format 3": "a database; export the records as RIS, CSV or Excel",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"Rar!": "a RAR archive; unpack it first",
}
_HTML = re.compile(r"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_XML = re.compile(r"<(?:\?xml|!|[A-Za-z][\w:.-]*[\s/>])")
_JSON = re.compile(r"\{|\[\s*[{\[\]]")
_BIBTEX = re.compile(r"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)


def _is_bibtex(head: str) -> bool:
    result = _BIBTEX.search(head)
    # a table may quote an address at the beginning of a line, but not before its header
    return result is not None and all(
        not line.strip() or line.lstrip().startswith(("%", "@", "#", "//")) or "," not in line
        for line in head[: result.start()].split("\n")
    )


FORMATS: tuple[tuple[Callable[[str], object], Callable[[str, str], ParsedFile]], ...] = (
    (_XML.match, parse_xml), (_JSON.match, parse_json), (is_load_file, parse_load_file), (is_labelled, parse_labelled),
    (find_dialect, parse_tagged), (_is_bibtex, parse_bibtex), (lambda head: True, parse_table),
)  # fmt: skip
"""How each format of text is recognised, and its parser; the first that matches is used."""


def parse_file(loaded: LoadedFile) -> ParsedFile:
    """Parse a file of any known format; raise `InputError` for others."""
    content, name = loaded.content, loaded.name
    if content.startswith(b"PK\x03\x04"):
        return parse_excel(content, name)
    if is_mail(content):
        return parse_mail(content, name)
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise InputError(f"{name} is {what}.")
    text, remark = decode(content)
    head = head_of(text)
    if _HTML.match(head):
        raise InputError(f"{name} is a web page; export the records as RIS, CSV or Excel.")
    parsed = next(parse for is_format, parse in FORMATS if is_format(head))(text, name)
    return replace(parsed, remarks=(remark, *parsed.remarks)) if remark else parsed
