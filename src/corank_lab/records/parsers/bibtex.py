"""
BibTeX: entries with braces or quotes, strings and concatenation; LaTeX accents become letters.

bibtexparser 2.1 reads well-formed files alike. This reader also keeps entries without a key, entries whose key occurs
twice, and what comes before a missing brace.
"""

from __future__ import annotations

import re
import unicodedata

from corank.errors import InputError
from corank_lab.records.parsers.parsed import ParsedFile, RawRecord

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


def _accented(found: re.Match[str]) -> str:
    letter = (found[2] or found[3]).removeprefix("\\")
    return unicodedata.normalize("NFC", letter + _ACCENTS[found[1]])


def parse_bibtex(text: str, name: str) -> ParsedFile:
    """Parse BibTeX."""
    reader = _Reader(text, name)
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


class _Reader:
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

    def _line_of(self, at: int) -> int:
        self.line += self.text.count("\n", self.counted, at)
        self.counted = at
        return self.line

    def _skip(self, found: re.Match[str]) -> int:
        return self._braced(found.end())[1] if found[2] == "{" else found.end()

    def _entry(self, found: re.Match[str], record: RawRecord) -> int:
        text, i = self.text, found.end()
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

    def _value(self, at: int) -> tuple[str, int]:
        """Return a value, of one or more parts with # between them, and where it ends."""
        parts = []
        while True:
            mark = self.text[at : at + 1]
            if mark == "{":
                part, at = self._braced(at + 1)
            elif mark == '"':
                part, at = self._quoted(at + 1)
            elif bare := _BARE.match(self.text, at):
                part, at = self.strings.get(bare[0].lower(), bare[0]), bare.end()
            else:
                raise _Damaged
            parts.append(part)
            at = _BLANKS.match(self.text, at).end()  # type: ignore[union-attr]
            if self.text[at : at + 1] != "#":
                value = "".join(parts)
                self.expanded += len(value)
                if self.expanded > 10 * len(self.text):
                    raise InputError(f"{self.name} has strings that multiply each other; export the file again.")
                return value, at
            at = _BLANKS.match(self.text, at + 1).end()  # type: ignore[union-attr]

    def _braced(self, begin: int) -> tuple[str, int]:
        depth = 1
        for result in _MARK.finditer(self.text, begin):
            depth += (result[0] == "{") - (result[0] == "}")
            if depth == 0:
                return self.text[begin : result.start()], result.end()
        raise _Damaged

    def _quoted(self, begin: int) -> tuple[str, int]:
        depth = 0
        for result in _MARK.finditer(self.text, begin):
            depth += (result[0] == "{") - (result[0] == "}")
            if result[0] == '"' and depth <= 0:
                return self.text[begin : result.start()], result.end()
        raise _Damaged
