"""
Files of tags: RIS, PubMed, Ovid, Cochrane, Web of Science, RefWorks and EndNote's refer format.

A line is a tag and a value; other lines continue the value. Dialects differ in the mark behind the tag, in how records
begin and end, and in whether the lines of a value are wrapped text or values of their own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from corank.data import LINE_END
from corank.errors import InputError
from corank_lab.records.columns import WOS_COLUMNS
from corank_lab.records.parsed import FieldNames, ParsedFile, RawRecord, head_of

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
        (match.start(), i, name) for i, (name, item) in enumerate(begins.items()) if (match := item.search(head))
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
    values: dict[str, list[list[str]]] = {}  # the lines of each value
    lines: list[str] | None = None  # of the last value
    first_tag, last_tag, first_line, after_blank = "", "", 0, False

    def finished(is_open: bool) -> Iterator[tuple[int, RawRecord, bool]]:
        """Yield the record, and begin another one."""
        nonlocal values, lines, last_tag, after_blank
        if values:
            mark = " " if dialect.wraps else "\n"
            joined = {tag: [mark.join(part) for part in parts] for tag, parts in values.items()}
            record = {tag: [text for text in texts if text] for tag, texts in joined.items()}
            yield first_line, {tag: texts for tag, texts in record.items() if texts}, is_open
        values, lines, last_tag, after_blank = {}, None, "", False

    for number, line in enumerate(LINE_END.split(text), 1):
        line = line.rstrip()
        if result := dialect.tag.match(line):
            tag, value = result[1].rstrip(), (result[2] or "").strip()
            if tag in _FILE_TAGS and dialect.ends and not values:
                continue
            if tag in dialect.ends:
                yield from finished(False)
                continue
            is_first = tag in dialect.starts and (tag != "PT" or "PT" in values)
            if values and (is_first or (not dialect.starts and after_blank and tag == first_tag)):
                yield from finished(True)
            if not values:
                first_line, first_tag = number, first_tag or tag
            lines, last_tag, after_blank = [value], tag, False
            values.setdefault(tag, []).append(lines)
        elif not line:
            after_blank = True
        elif (after_blank or lines is None) and _HEADER.fullmatch(line):
            if not dialect.ends:
                yield from finished(True)
        elif lines is not None:  # other lines before a tag are a header, such as Cochrane's provider
            if last_tag in dialect.lists:
                lines = [line.strip()]
                values[last_tag].append(lines)
            else:
                lines.append(line.strip())
            after_blank = False
    yield from finished(True)


BIBTEX_FIELDS = {
    "title": ("title", "booktitle"), "abstract": ("abstract", "abstractnote", "annotation"),
    "year": ("year", "date", "issue_date", "publication_year"), "authors": ("author", "authors", "editor"),
    "journal": ("journal", "journaltitle", "fulljournal", "booktitle", "series", "howpublished"),
    "doi": ("doi", "bdsk-url-1", "url", "ee", "key"), "pmid": ("pmid", "pubmedid"),
    "accession": ("unique-id", "accession_number", "accessionnumber", "eid"), "id": ("record_id", "key"),
    "keywords": ("keywords", "keyword", "author_keywords", "keywords-plus", "mesh", "tags"),
    "url": ("url", "link", "ee", "biburl", "bdsk-url-1"),
    "references": ("references", "cited-references"),
    "label": ("included", "label_included", "relevant"), "notes": ("note", "notes", "annote"),
}  # fmt: skip

_ENTRY = re.compile(r"@[ \t]*([A-Za-z][\w-]*)[ \t]*([{(])")
_LINE_ENTRY = re.compile(r"\n[ \t]*@[ \t]*[A-Za-z][\w-]*[ \t]*[{(]")
_KEY = re.compile(r"\s*([^\s,={}\"]*)\s*(?=[,})])")
_NAME = re.compile(r"[\s,]*([^\s,={}\"#]+)\s*=\s*")
_BARE = re.compile(r"[^\s,#{}()\"]+")
_MARK = re.compile(r'\\.|[{}"]', re.DOTALL)
_BLANKS = re.compile(r"\s*")
_GAP = re.compile(r"[\s,]*")
_IGNORED = ("comment", "preamble")
_MAX_DAMAGED = 100

_ACCENTS = {
    '"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "b": "\u0331",
    "d": "\u0323",
}  # fmt: skip
_ACCENT = re.compile(
    r"""\\(["'`^~=.]|[uvHckrbd](?![A-Za-z]))\s*(?:\{\s*(\\?[A-Za-z])\s*\}|(\\[ij](?![A-Za-z])|[A-Za-z]))"""
)
_LETTERS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å",
    "i": "ı", "j": "ȷ", "dh": "ð", "th": "þ", "textendash": "–", "textemdash": "—", "textquoteright": "’",
    "textquoteleft": "‘", "textquotedblleft": "“", "textquotedblright": "”", "textregistered": "®",
    "texttrademark": "™", "textdegree": "°", "textmu": "µ", "pm": "±", "times": "×", "leq": "≤",
    "geq": "≥", "le": "≤", "ge": "≥", "mu": "µ", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ",
    "kappa": "κ", "lambda": "λ", "sigma": "σ", "omega": "ω", "textless": "<", "textgreater": ">", "textasciitilde": "~",
    "textasciicircum": "^", "textbackslash": "\ue000", "textbraceleft": "\ue001", "textbraceright": "\ue002",
    "ldots": "…", "dots": "…",
}  # fmt: skip
_SIGNS = str.maketrans({"\ue000": "\\", "\ue001": "{", "\ue002": "}"})
"""Signs that have a meaning in LaTeX, decoded last."""
_LETTER = re.compile(rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![A-Za-z])\s*(?:\{{\}})?")
_COMMAND = re.compile(
    r"\\(?:text\w{2}|emph|mathrm|mathit|mathbf|em|it|bf|rm|sc|tt|url|href|mbox|ensuremath|sub|sup)(?![A-Za-z])\s*"
)
_ESCAPED = re.compile(r"\\([&%$#_{}\s,;:!/-])")
_BRACE = re.compile(r"(?<!\\)[{}]")


def decode_latex(text: str) -> str:
    """Return plain text of LaTeX: accents, letters and escapes are decoded, commands and braces dropped."""
    if "\\" in text:
        text = _ACCENT.sub(_accented, text)
        text = _LETTER.sub(lambda result: _LETTERS[result[1]], text)
        text = _COMMAND.sub("", text)
    text = _BRACE.sub("", text)
    return _ESCAPED.sub(r"\1", text).translate(_SIGNS)


def _accented(match: re.Match[str]) -> str:
    letter = (match[2] or match[3]).removeprefix("\\")
    return unicodedata.normalize("NFC", letter + _ACCENTS[match[1]])


def parse_bibtex(text: str, name: str) -> ParsedFile:
    """Parse BibTeX."""
    reader = _BibtexReader(text, name)
    records, places = reader.read()
    remarks = []
    if reader.damaged:
        remarks.append(
            f"Braces or quotes do not match in {len(reader.damaged)} entries, first at line {reader.damaged[0]}; what "
            "comes before the fault was read."
        )
    return ParsedFile("BibTeX", records, places, BIBTEX_FIELDS, tuple(remarks), decode=decode_latex)


class _Damaged(Exception):
    """An entry ends early."""


class _BibtexReader:
    """Entries of a text, from the first on."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.strings: dict[str, str] = {}
        self.damaged: list[int] = []
        self.line, self.counted, self.expanded = 1, 0, 0

    def read(self) -> tuple[list[RawRecord], list[str]]:
        """Return the entries and their places."""
        records, places, i = [], [], 0
        while result := _ENTRY.search(self.text, i):
            kind = result[1].lower()
            record: RawRecord = {"type": [kind]}
            line = self._line_of(result.start())
            try:
                i = self._skip(result) if kind in _IGNORED else self._entry(result, record)
            except _Damaged:
                self.damaged.append(line)
                if len(self.damaged) > _MAX_DAMAGED:
                    raise InputError(
                        f"{self.name}, line {self.damaged[0]}: braces or quotes do not match, as in more than "
                        f"{_MAX_DAMAGED} other entries; export the file again."
                    ) from None
                following = _LINE_ENTRY.search(self.text, result.end())
                i = following.start() if following else len(self.text)
            if kind == "string":
                self.strings.update({key: values[0] for key, values in record.items() if key not in ("type", "key")})
            elif kind not in _IGNORED and len(record) > 1:
                records.append(record)
                places.append(f"{self.name}, line {line}")
        return records, places

    def _line_of(self, place: int) -> int:
        self.line += self.text.count("\n", self.counted, place)
        self.counted = place
        return self.line

    def _skip(self, match: re.Match[str]) -> int:
        return self._quoted(match.end(), "}")[1] if match[2] == "{" else match.end()

    def _entry(self, match: re.Match[str], record: RawRecord) -> int:
        text, i = self.text, match.end()
        key = _KEY.match(text, i)
        if key:
            record.update({"key": [key[1]]} if key[1] else {})
            i = key.end()
        while field := _NAME.match(text, i):
            value, i = self._value(field.end())
            if value.strip():
                record.setdefault(field[1].lower(), []).append(value.strip())
        i = _GAP.match(text, i).end()  # type: ignore[union-attr]
        if text[i : i + 1] not in ("}", ")"):
            raise _Damaged
        return i + 1

    def _value(self, place: int) -> tuple[str, int]:
        """Return a value, of one or more parts with # between them, and where it ends."""
        parts = []
        while True:
            mark = self.text[place : place + 1]
            if mark and mark in '{"':
                part, place = self._quoted(place + 1, "}" if mark == "{" else mark)
            elif bare := _BARE.match(self.text, place):
                part, place = self.strings.get(bare[0].lower(), bare[0]), bare.end()
            else:
                raise _Damaged
            parts.append(part)
            place = _BLANKS.match(self.text, place).end()  # type: ignore[union-attr]
            if self.text[place : place + 1] != "#":
                value = "".join(parts)
                self.expanded += len(value)
                if self.expanded > 10 * len(self.text):
                    raise InputError(f"{self.name} has strings that multiply each other; export the file again.")
                return value, place
            place = _BLANKS.match(self.text, place + 1).end()  # type: ignore[union-attr]

    def _quoted(self, begin: int, end: str) -> tuple[str, int]:
        """Return the text up to a brace or quote that is in no braces, and where it ends."""
        depth = 0
        for result in _MARK.finditer(self.text, begin):
            if result[0] == end and depth <= 0:
                return self.text[begin : result.start()], result.end()
            depth += (result[0] == "{") - (result[0] == "}")
        raise _Damaged
