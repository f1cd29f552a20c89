"""Recognise the format of a record file by its content, and parse it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from corank.data import LINE_END
from corank.errors import InputError
from corank_lab.records.parsers.documents import is_load_file, is_mail, parse_load_file, parse_mail
from corank_lab.records.parsers.parsed import LoadedFile, ParsedFile, decode
from corank_lab.records.parsers.tables import is_labelled, parse_labelled
from corank_lab.records.parsers.tagged import DIALECTS, parse_tagged

_HEAD = 200_000
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
_BIBTEX = re.compile(r"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)
MIN_TAG_SHARE = 0.3
"""Share of the lines that must begin with a tag, for files without a known beginning."""


def parse_file(loaded: LoadedFile) -> ParsedFile:
    """Parse a file of any known format; raise `InputError` for others."""
    content, name = loaded.content, loaded.name
    if content.startswith(b"PK\x03\x04"):
        from corank_lab.records.parsers.tables import parse_excel

        return parse_excel(content, name)
    if is_mail(content):
        return parse_mail(content, name)
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise InputError(f"{name} is {what}.")
    text, remark = decode(content)
    parsed = _parser(text, name)(text, name)
    return replace(parsed, remarks=(remark, *parsed.remarks)) if remark else parsed


def _parser(text: str, name: str) -> Callable[[str, str], ParsedFile]:
    from corank_lab.records.parsers.bibtex import parse_bibtex
    from corank_lab.records.parsers.objects import parse_json
    from corank_lab.records.parsers.tables import parse_table
    from corank_lab.records.parsers.xml import parse_xml

    head = text[:_HEAD].lstrip().replace("\r\n", "\n").replace("\r", "\n")
    if _HTML.match(head):
        raise InputError(f"{name} is a web page; export the records as RIS, CSV or Excel.")
    if head.startswith("<") and (head.startswith(("<?xml", "<!")) or re.match(r"<[A-Za-z][\w:.-]*[\s/>]", head)):
        return parse_xml
    if head.startswith(("{", "[{")) or re.match(r"\[\s*[{\[\]]", head):
        return parse_json
    if is_load_file(head):
        return parse_load_file
    if is_labelled([line for line in head[:20_000].split("\n") if line.strip()]):
        return parse_labelled
    dialect = _dialect(head)
    if dialect:
        return lambda text, name: parse_tagged(text, name, dialect)
    if _is_bibtex(head):
        return parse_bibtex
    return parse_table


def _is_bibtex(head: str) -> bool:
    result = _BIBTEX.search(head)
    # a table may quote an address at the beginning of a line, but not before its header
    return result is not None and all(
        not line.strip() or line.lstrip().startswith(("%", "@", "#", "//")) or "," not in line
        for line in head[: result.start()].split("\n")
    )


def _dialect(head: str) -> str:
    """Return the dialect of a tagged file, or an empty string."""
    begins = {name: dialect.begin for name, dialect in DIALECTS.items() if dialect.begin is not None}
    matches = [
        (found.start(), i, name) for i, (name, item) in enumerate(begins.items()) if (found := item.search(head))
    ]
    lines = [line for line in LINE_END.split(head) if line.strip()]
    counts = {name: len(begins[name].findall(head)) for name in ("RIS", "loose RIS")}
    for _, _, name in sorted(matches):
        if name == "RIS" and counts["RIS"] < counts["loose RIS"]:
            continue
        if any(DIALECTS[name].tag.match(line.rstrip()) for line in lines[:50]):
            return name
    for name in ("Ovid", "Cochrane"):
        tags = [tag[1].rstrip() for line in lines if (tag := DIALECTS[name].tag.match(line.rstrip()))]
        if len(tags) >= max(2, MIN_TAG_SHARE * len(lines)) and {"TI", "T1"} & set(tags):
            return "RIS" if name == "Ovid" and "ER" in tags else name
    tags = [tag[1] for line in lines if (tag := DIALECTS["EndNote tagged"].tag.match(line))]
    return "EndNote tagged" if len(tags) >= max(2, MIN_TAG_SHARE * len(lines)) and "%T" in tags else ""
