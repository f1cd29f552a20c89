"""
Files of tags: RIS, PubMed, Ovid, Cochrane, Web of Science, RefWorks and EndNote's refer format.

A line is a tag and a value; other lines continue the value. Dialects differ in the mark behind the tag, in how records
begin and end, and in whether the lines of a value are wrapped text or values of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from corank.data import LINE_END
from corank_lab.records.columns import WOS_COLUMNS
from corank_lab.records.parsers.parsed import FieldNames, ParsedFile, RawRecord, head_of

RIS_TAGS: dict[str, tuple[str, ...]] = {
    "title": ("TI", "T1", "BTI", "CT", "BT", "TT", "ST"),
    "abstract": ("AB", "N2", "OAB"),
    "year": ("PY", "Y1", "YR", "DP", "DA", "PD", "SO"),
    "authors": ("FAU", "AU", "A1", "AF"),
    "journal": ("JF", "JT", "JN", "JO", "T2", "JA", "J2", "J1", "JI", "BT", "TA", "C3", "SO"),
    "doi": ("DO", "DI", "DOI", "LID", "AID", "M3", "L3", "N1", "UR", "L2", "LK", "US"),
    "pmid": ("PMID", "PM", "C2", "C5", "C3", "XR", "AN", "UI"),
    "accession": ("AN", "UT", "UI", "U2", "UR"),
    "id": ("ID", "AN", "UT", "UI", "PMID", "U2", "U1"),
    "keywords": ("KW", "K1", "DE", "MH", "OT", "KY", "KP", "OD"),
    "url": ("UR", "US", "UL", "LK", "L2", "L1"),
    "references": ("CR",),
    "notes": ("N1", "RN", "NO", "GN"),
}
"""Tags of RIS, PubMed, Ovid and Cochrane; see `FieldNames`."""

WOS_TAGS = {field: tuple(tag.upper() for tag in tags) for field, tags in WOS_COLUMNS.items()}

REFWORKS_TAGS = {
    "title": ("T1", "TI", "T2"), "abstract": ("AB",), "year": ("YR", "FD"), "authors": ("A1", "AU"),
    "journal": ("JF", "JO", "T2", "SO"), "doi": ("DO",), "pmid": ("PM",), "accession": ("AN",), "id": ("ID", "AN"),
    "keywords": ("K1", "KW"), "url": ("UL", "LK"), "references": ("CR",), "notes": ("NO",),
}  # fmt: skip

REFER_TAGS = {
    "title": ("%T",), "abstract": ("%X",), "year": ("%D", "%8"), "authors": ("%A", "%E"), "journal": ("%J", "%B", "%S"),
    "doi": ("%R", "%U"), "accession": ("%M",), "id": ("%F", "%M"), "keywords": ("%K",), "url": ("%U", "%>"),
    "notes": ("%Z",),
}  # fmt: skip


def _begin(pattern: str) -> re.Pattern[str]:
    return re.compile(f"^{pattern}", re.MULTILINE)


@dataclass(frozen=True)
class Dialect:
    """A kind of tagged file: all that is known of it."""

    family: str  # the kind of names of its fields, for writers
    tag: re.Pattern[str]  # regular expression with the groups tag and value
    starts: frozenset[str]  # tags that begin a record
    ends: frozenset[str]  # tags that end one
    names: FieldNames  # see `FieldNames`
    wraps: bool = False  # whether a line that continues a value belongs to the same sentence, not to a new line
    lists: frozenset[str] = frozenset()  # tags of which every line is a value of its own
    begin: re.Pattern[str] | None = None  # how a record begins; None if only the share of lines with tags shows it


_RIS_DASH = re.compile(r"([A-Z][A-Z0-9])  -(?:\s+(.*)|)$", re.DOTALL)
_DASH = re.compile(r"([A-Z][A-Z0-9](?:[A-Z0-9 ]{2}))-(?:\s+(.*)|)$", re.DOTALL)
_LOOSE_DASH = re.compile(r"\s{0,3}([A-Z][A-Z0-9])\s{0,3}-(?:\s+(.*)|)$", re.DOTALL)
_COLON = re.compile(r"([A-Z][A-Z0-9]{1,3}):(?:\s+(.*)|)$", re.DOTALL)
_BLANK = re.compile(r"([A-Z][A-Z0-9])(?:[ \t](.*)|)$", re.DOTALL)
_PERCENT = re.compile(r"(%[A-Z0-9@!#$&()\[\]<>~^+*|?'=:\\.])(?:[ \t](.*)|)$", re.DOTALL)
_WOS_LISTS = frozenset(["AU", "AF", "BA", "BF", "CA", "BE", "ED", "CR", "C1", "C3", "RI", "OI"])
_RIS = frozenset(("TY",)), frozenset(("ER",))

DIALECTS = {
    "Web of Science": Dialect(
        "wos", _BLANK, frozenset(("PT",)), frozenset(("ER", "EF")), WOS_TAGS, True, _WOS_LISTS,
        _begin(r"(?:FN [^\n]*\n+VR |PT [A-Z]$|PT [A-Z][ ]*\r?\n)"),
    ),
    "PubMed": Dialect(
        "nbib", _DASH, frozenset(("PMID",)), frozenset(), RIS_TAGS, wraps=True, begin=_begin(r"PMID ?-(?: ?\d|[ \t]*$)")
    ),
    "RIS": Dialect("ris", _RIS_DASH, *_RIS, RIS_TAGS, begin=_begin(r"TY  -(?:\s|$)")),
    "loose RIS": Dialect("ris", _LOOSE_DASH, *_RIS, RIS_TAGS, begin=_begin(r"\s{0,3}TY\s{0,3}-(?:\s|$)")),
    "RefWorks": Dialect(
        "refworks", _BLANK, frozenset(("RT",)), frozenset(("ER",)), REFWORKS_TAGS, begin=_begin(r"RT [A-Z]")
    ),
    "EndNote tagged": Dialect(
        "refer", _PERCENT, frozenset(("%0",)), frozenset(), REFER_TAGS, lists=frozenset(("%K",)),
        begin=_begin(r"%0 [A-Z]"),
    ),
    "Ovid": Dialect("ovid", _DASH, frozenset(), frozenset(), RIS_TAGS),
    "Cochrane": Dialect("cochrane", _COLON, frozenset(), frozenset(), RIS_TAGS),
}  # fmt: skip
"""Dialects by name, in the order of trial; "loose RIS" has one blank around the dash, or indented tags."""

MIN_TAG_SHARE = 0.3
"""Share of the lines that must begin with a tag, for files without a known beginning."""

_HEADER = re.compile(r"\s*(?:<\s*\d+\s*\.?\s*>|\d+\.\s*|Record #?\d+ of \d+|\[\d+\]|-{5,}|={5,}|_{5,})\s*")
_FILE_TAGS = frozenset(("FN", "VR", "EF"))


def find_dialect(head: str) -> str:
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


def parse_tagged(text: str, name: str) -> ParsedFile:
    """Parse a tagged file."""
    dialect_name = find_dialect(head_of(text))
    dialect = DIALECTS[dialect_name]
    records, places = [], []
    is_open = False
    for line, record, is_open in _records(text, dialect):  # noqa: B007
        records.append(record)
        places.append(f"{name}, line {line}")
    cut = is_open and dialect_name in ("RIS", "loose RIS", "Web of Science")
    remarks = ("The last record has no 'ER' line; check that the file is complete.",) if cut else ()
    return ParsedFile(dialect_name.removeprefix("loose "), records, places, dialect.names, remarks)


def _records(text: str, dialect: Dialect) -> Iterator[tuple[int, RawRecord, bool]]:
    """Yield the first line of each record, its values, and whether its end is missing."""
    reader = _Reader(dialect)
    match = dialect.tag.match
    for i, line in enumerate(LINE_END.split(text), 1):
        line = line.rstrip()
        result = match(line)
        done = reader.tag(result[1].rstrip(), (result[2] or "").strip(), i) if result else reader.other(line)
        if done:
            yield done
    last = reader.close()
    if last:
        yield last


class _Reader:
    """The record that is being read."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.first_tag = ""
        self._begin(0)

    def _begin(self, at: int) -> None:
        self.values: dict[str, list[list[str]]] = {}
        self.last: list[str] | None = None
        self.last_tag, self.begun_at, self.after_blank = "", at, False

    def tag(self, tag: str, value: str, at: int) -> tuple[int, RawRecord, bool] | None:
        """Add a tag; return the record that ended before it or with it."""
        dialect = self.dialect
        if tag in _FILE_TAGS and dialect.ends and not self.values:
            return None
        if tag in dialect.ends:
            done = self._finish(False)
            self._begin(at + 1)
            return done
        done = None
        again = not dialect.starts and self.after_blank and tag == self.first_tag
        if self.values and ((tag in dialect.starts and (tag != "PT" or "PT" in self.values)) or again):
            done = self._finish(True)
            self._begin(at)
        if not self.values:
            self.begun_at = at
            self.first_tag = self.first_tag or tag
        self.last, self.last_tag, self.after_blank = [value], tag, False
        self.values.setdefault(tag, []).append(self.last)
        return done

    def other(self, line: str) -> tuple[int, RawRecord, bool] | None:
        """Add a line without a tag; return the record that a header line ends."""
        if not line.strip():
            self.after_blank = True
            return None
        is_header = (self.after_blank or self.last is None) and _HEADER.fullmatch(line) is not None
        if is_header and not self.dialect.ends:
            done = self._finish(True) if self.values else None
            self._begin(0)
            return done
        if self.last is None or is_header:
            return None  # a header, such as Cochrane's provider
        if self.last_tag in self.dialect.lists:
            self.last = [line.strip()]
            self.values[self.last_tag].append(self.last)
        else:
            self.last.append(line.strip())
        self.after_blank = False
        return None

    def close(self) -> tuple[int, RawRecord, bool] | None:
        """Return the last record if it was not ended."""
        return self._finish(True) if self.values else None

    def _finish(self, is_open: bool) -> tuple[int, RawRecord, bool] | None:
        if not self.values:
            return None
        mark = " " if self.dialect.wraps else "\n"
        record = {tag: [mark.join(lines) for lines in values] for tag, values in self.values.items()}
        record = {tag: [value for value in values if value] for tag, values in record.items()}
        return self.begun_at, {tag: values for tag, values in record.items() if values}, is_open
