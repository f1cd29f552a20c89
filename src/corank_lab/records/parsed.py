"""Clean texts, names of authors, keywords and references in one cell."""

from __future__ import annotations

import codecs
import hashlib
import html
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from corank.data import compression_of, open_regular, unpack
from corank.errors import InputError

_NAMES = (
    "p|br|div|span|i|b|u|em|strong|small|big|sub|sup|sc|tt|font|a|h[1-6]|ul|ol|li|dl|dt|dd|table|tr|td|th|tbody|thead|"
    "title|sec|label|italic|bold|underline|monospace|roman|sans-serif|styled-content|list|list-item|inline-formula|"
    "disp-formula|tex-math|alternatives|named-content|ext-link|xref|abstract|abstracttext|inf|hr|blockquote|section|"
    "math|semantics|annotation|m(?:i|n|o|row|sub|sup|subsup|text|frac|over|under|style|space|table|tr|td|multiscripts|"
    "ath|sqrt|root|prescripts|none|underover|padded|phantom|enclose|stack)"
)
_TAG = re.compile(rf"<(/?)(?:(?:jats|mml|ns\d|m|xhtml):)?({_NAMES})((?:\s[^<>]{{0,500}})?/?)>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.{0,2000}?-->|<!\[CDATA\[|\]\]>", re.DOTALL)
_BLOCKS = frozenset((
    "p", "br", "div", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd", "table", "tr", "title",
    "sec", "list", "list-item", "abstract", "abstracttext", "hr", "section", "blockquote",
))  # fmt: skip
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_GREEK_NAMES = (
    "a", "b", "g", "d", "e", "z", "ee", "th", "i", "k", "l", "m", "n", "x", "o", "p", "r", "s", "t", "u", "ph", "kh",
    "ps", "oh",
)  # fmt: skip
_GREEK = {f"&{name}gr;": letter for name, letter in zip(_GREEK_NAMES, "αβγδεζηθικλμνξοπρστυφχψω", strict=True)}
"""Entities of SGML (ISO 8879) in old abstracts."""

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ufeff\u200b\u2060\u00ad]")
_ABSENT = re.compile(
    r"\W*(?:"
    r"(?:there (?:is|was) |this (?:article|record|document|paper|item|publication|work) (?:has |contains ))?"
    r"(?:no|without(?: an)?) (?:author |english |structured )?(?:abstracts?|summary)"
    r"(?: (?:is |was |are |has been )?(?:available|found|provided|given|present|supplied|exists?|listed|included))?"
    r"(?: (?:for|in|from|by|at|on) [\w ]{1,60})?"
    r"|(?:the )?abstracts? (?:is |was |are )?(?:not|un) ?(?:yet )?(?:available|provided|found|given|present|supplied)"
    r"(?: (?:for|in|from|by|at|on) [\w ]{1,60})?"
    r"|this (?:article|record|document|paper|item|publication|work) does not (?:have|contain|include) an? abstract"
    r"|(?:does not have|has no) (?:an )?abstract"
    r"|abstract (?:missing|unknown|none|n/a)|missing abstract|abstract"
    r"|not (?:available|applicable|provided|found)|unavailable|n ?/ ?a|n\.a\.?|none|null|nan|na|nil|unknown|undefined"
    r"|kein abstract(?: verf[uü]gbar)?|pas de r[ée]sum[ée](?: disponible)?|sin resumen(?: disponible)?"
    r"|(?:resumen|resumo) n[oã]o? dispon[ií]vel|sem resumo"
    r")\W*",
    re.IGNORECASE,
)


def clean_line(text: str) -> str:
    """Return a text as one line without markup and entities."""
    return text if _is_plain(text) else " ".join(_plain(text).split())


def clean_abstract(text: str) -> str:
    """Return an abstract without markup, entities, blank lines and repeated blanks, or nothing for a placeholder."""
    lines = [text] if _is_plain(text) else [" ".join(line.split()) for line in _plain(text).split("\n")]
    cleaned = "\n".join(line for line in lines if line)
    if len(cleaned) < 200 and is_absent(cleaned):
        return ""
    return text if cleaned == text else cleaned  # once in memory


def is_absent(text: str) -> bool:
    """Return whether a text only says that there is nothing, such as ``n/a`` or ``[No abstract available]``."""
    return _ABSENT.fullmatch(text) is not None or not any(map(str.isalnum, text))


def _is_plain(text: str) -> bool:
    """Whether a text is one clean line."""
    return text.isprintable() and "&" not in text and "<" not in text and "  " not in text and text == text.strip()


def _plain(text: str) -> str:
    for _ in range(3):  # an export of an export may escape twice
        if "&" not in text or (unescaped := _ENTITY.sub(_letter, text)) == text:
            break
        text = unescaped
    if "<" in text:
        text = _TAG.sub(_instead, _COMMENT.sub(" ", text))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # all that follows is not printable; most texts are
    if not text.replace("\n", " ").isprintable():
        text = _CONTROL.sub("", text).encode("utf-8", "replace").decode()
    return text


def _letter(entity: re.Match[str]) -> str:
    return _GREEK.get(entity[0], "") or html.unescape(entity[0])


def _instead(tag: re.Match[str]) -> str:
    return "\n" if tag[2].lower() in _BLOCKS else ""


_AND = re.compile(r" (?:and|&) ")
_LINES = re.compile(r"[\r\n]+")
_FIRST_AND = re.compile(r"\s{0,20}and\s")
_INITIALS = re.compile(r"(?:[^\W\d_]\.?[ -]?){1,5}(?:,? (?:Jr|Sr|II|III|IV)\.?)?")
_ENDS_IN_INITIALS = re.compile(r".+\s(?:[^\W\d_a-zß-ÿ][^\W\d_]?\.?-?){1,4}(?: (?:Jr|Sr|2nd|3rd|II|III)\.?)?")
_ID_NUMBER = re.compile(r"\s*\(\d{6,}\)$")
_OTHERS = re.compile(r"(?:et al\.?|and others|others)", re.IGNORECASE)


def split_authors(values: Iterable[str], *, is_cell: bool, is_bibtex: bool = False) -> tuple[str, ...]:
    """Return the authors in the values of a column or tag."""
    result: list[str] = []
    for value in values:
        result += _parts(value, is_cell, is_bibtex)
    cleaned = (clean_line(item).strip(" ;,|") for item in result)
    cleaned = (_ID_NUMBER.sub("", item).strip(" ,") if item.endswith(")") else item for item in cleaned)
    return tuple(item for item in cleaned if item and not _OTHERS.fullmatch(item) and not is_absent(item))


def _parts(value: str, is_cell: bool, is_bibtex: bool) -> list[str]:
    if is_bibtex:
        return _outside_braces(" ".join(value.split()).split(" and "))
    if ";" in value:
        return value.split(";")
    if "|" in value:
        return value.split("|")
    lines = _LINES.split(value.strip())
    if len(lines) > 1:
        return [_FIRST_AND.sub("", line, count=1) if _FIRST_AND.match(line) else line for line in lines]
    joined = _AND.split(" ".join(value.split()))
    if len(joined) > 1 and all("," in item for item in joined):
        return joined
    return _by_commas(value) if is_cell else [value]


def _outside_braces(parts: list[str]) -> list[str]:
    """Put names together again that were split inside braces."""
    result: list[list[str]] = []
    depth = 0
    for part in parts:
        if depth > 0:
            result[-1].append(part)
        else:
            result.append([part])
            depth = 0
        depth += part.count("{") - part.count("}")
    return [" and ".join(item) for item in result]


def _by_commas(value: str) -> list[str]:
    pieces = [item.strip() for item in re.split(r",\s+|,(?=[^\W\d_])", value.strip().strip(",")) if item.strip()]
    if len(pieces) <= 1:
        return pieces
    pieces[-1] = re.sub(r"^(?:and|&)\s+", "", pieces[-1])
    if all(_ENDS_IN_INITIALS.fullmatch(piece) for piece in pieces) or (
        len(pieces) > 2 and sum(" " in piece for piece in pieces) > 0.7 * len(pieces)
    ):
        # "Griffin DK, O'Connor RE.", or "Zixiao Yang, Baoyu Jiang, Xing Xu"
        pieces[-1] = pieces[-1][:-1] if pieces[-1].endswith(".") and not pieces[0].endswith(".") else pieces[-1]
        return pieces
    if len(pieces) > 2 and len(pieces) % 2 == 0 and all(_INITIALS.fullmatch(piece) for piece in pieces[1::2]):
        return [f"{family}, {given}" for family, given in zip(pieces[::2], pieces[1::2], strict=True)]
    if len(pieces) == 2 and all(" " in piece and len(piece.split()) <= 4 for piece in pieces):
        return pieces
    return [value]


def split_keywords(values: Iterable[str], *, is_cell: bool) -> tuple[str, ...]:
    """Return the different keywords in the values of a column or tag."""
    result: dict[str, None] = {}
    for value in values:
        parts = re.split(r"[;|\r\n]", value)
        if len(parts) == 1 and is_cell:
            parts = re.split(r",\s*(?![^()]*\))", value) if len(value) < 20_000 else value.split(",")
        for part in parts:
            item = clean_line(part).strip(" ;,")
            if item and not is_absent(item):
                result.setdefault(item)
    return tuple(result)


_ID = re.compile(
    r"(?:https?://(?:dx\.)?(?:doi|openalex)\.org/\S+|(?:doi:)?10\.\d{4,9}/\S+"
    r"|[A-Za-z]{0,30}[:_-]?\d[\w.:/-]*|[a-z]+(?:_[a-z0-9]+)*_\d{4}[a-z]?(?:-\d+)?)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[\s|;,]+")
_LINE = re.compile(r"[\r\n|]+")
_SEMICOLON = re.compile(r";\s+")
_COMPLETE = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b|\b10\.\d{4,9}/")
_COPYRIGHT = re.compile(r"\s*(?:copyright\b|\(c\)|©)", re.IGNORECASE)
_EDGES = " ,;\t\r\n"


def split_references(values: Iterable[str], *, is_list: bool = False) -> tuple[str, ...]:
    """Return the single references in the values of a column or tag."""
    result: list[str] = []
    for value in values:
        if _COPYRIGHT.match(value):
            continue  # the tag CR in Ovid's exports
        if is_list:
            result.append(value.strip(_EDGES))
            continue
        tokens = [item for item in _BETWEEN.split(value) if item]
        if tokens and all(_ID.fullmatch(token) for token in tokens):
            result += tokens
            continue
        lines = [item for item in _LINE.split(value) if item.strip(_EDGES)]
        result += lines if len(lines) > 1 else _sentences(value)
    return tuple(trimmed for text in result if (trimmed := " ".join(text.split()).strip(_EDGES)))


def _sentences(text: str) -> list[str]:
    """Split at semicolons; a part without a year or a DOI belongs to the next one."""
    result: list[str] = []
    begun: list[str] = []
    for part in _SEMICOLON.split(text):
        begun.append(part)
        if _COMPLETE.search(part):
            result.append("; ".join(begun))
            begun = []
    rest = "; ".join(begun)
    if result and len(rest) < 40:  # such as an editor's note behind the last reference
        return [*result[:-1], f"{result[-1]}; {rest}"]
    return [*result, rest]


_MARKS = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip
_DECLARED = re.compile(rb"""<\?xml[^>]{0,100}?encoding=["']([A-Za-z0-9._-]{1,40})["']""")
_HEAD = 1 << 16
_WINDOWS = {item: bytes([item]).decode("cp1252", "ignore") or chr(item) for item in range(0x80, 0xA0)}


@dataclass(frozen=True)
class LoadedFile:
    """Bytes of a file."""

    name: str  # the path, for messages
    content: bytes  # its bytes, decompressed
    sha256: str  # hash of the file as it is on disk


def load_file(path: str | os.PathLike[str]) -> LoadedFile:
    """Read a regular file, plain, gzip, xz or zstandard, recognised by its first bytes."""
    name = os.fspath(path)
    try:
        with open_regular(path) as file:
            packed = file.read()
    except FileNotFoundError:
        raise InputError(f"there is no file {name}; check the path.") from None
    except OSError as error:
        raise InputError(
            f"{name} cannot be read ({error.strerror or error}); check the file and its permissions."
        ) from error
    handle = io.BytesIO(packed)
    kind = compression_of(handle)
    content = packed if kind is None else b"".join(unpack(handle, kind, name))
    if not content.strip(b"\xef\xbb\xbf \t\r\n\0"):
        raise InputError(f"{name} is empty; expected records.")
    return LoadedFile(name, content, hashlib.sha256(packed).hexdigest())


def decode(content: bytes) -> tuple[str, str]:
    """
    Return a text and, unless it is plain UTF-8, a sentence about its encoding.

    A byte order mark decides; without one, zero bytes at every other place mean UTF-16. Bytes that are not UTF-8 are
    read as Windows-1252: all of them, or only the lines concerned where other lines hold valid UTF-8.
    """
    mark = next((item for item in _MARKS if content.startswith(item)), b"")
    encoding = _MARKS[mark] if mark else _without_mark(content)
    if encoding == "utf-8":
        return _utf8(content[len(mark) :])
    text = content[len(mark) :].decode(encoding, "replace").lstrip("\ufeff")
    return text, f"The encoding is {encoding.upper()[:6]}."


def _without_mark(content: bytes) -> str:
    head = content[:_HEAD]
    pairs = len(head) // 2
    if pairs and b"\0" in head:
        if head[1::2].count(0) > 0.6 * pairs and head[::2].count(0) < 0.1 * pairs:
            return "utf-16-le"
        if head[::2].count(0) > 0.6 * pairs and head[1::2].count(0) < 0.1 * pairs:
            return "utf-16-be"
    return "utf-8"


def _utf8(content: bytes) -> tuple[str, str]:
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError:
        pass
    declared = _DECLARED.match(content.lstrip()[:300])
    if declared:
        try:
            return content.decode(declared[1].decode()), f"The encoding is {declared[1].decode()}, as the file says."
        except (UnicodeDecodeError, LookupError):
            pass
    lines = content.split(b"\n")
    decoded, n_others, n_valid = [], 0, 0
    for line in lines:
        try:
            decoded.append(line.decode("utf-8"))
            n_valid += not line.isascii()
        except UnicodeDecodeError:
            decoded.append(_windows(line))
            n_others += 1
    if n_valid:
        return (
            "\n".join(decoded),
            f"{n_others} of {len(lines)} lines are not UTF-8 and were read as Windows-1252; check their accents.",
        )
    return _windows(content), "The encoding is not UTF-8 and was read as Windows-1252 (Latin-1); check the accents."


def _windows(content: bytes) -> str:
    """Decode Windows-1252; the five bytes that it does not define are read as Latin-1."""
    return content.decode("latin-1").translate(_WINDOWS)


RawRecord = dict[str, list[str]]
"""Values of one record by column or tag, in the order of the file."""

FieldNames = Mapping[str, Sequence[str]]
"""
Columns or tags of each field (``title``, ``abstract``, ``year``, ...), the preferred first.

A record uses the first that is not empty; ``keywords`` uses all.
"""


@dataclass(frozen=True)
class ParsedFile:
    """Raw records of a file."""

    format: str  # what was recognised, such as ``"RIS"``
    records: list[RawRecord]  # values of each record by column or tag
    places: Sequence[str]  # where each record begins, for messages, such as ``"works.csv, line 3"``
    names: FieldNames  # see `FieldNames`
    remarks: tuple[str, ...] = ()  # what was assumed, one sentence each
    derived: frozenset[str] = frozenset()  # columns that the parser computed; they are not kept for exports
    is_table: bool = False  # whether a cell may hold several authors or keywords, and repeated columns alternatives
    decode: Callable[[str], str] = str  # turns a raw value into plain text, such as that of LaTeX
    header: Sequence[str] = ()  # all columns of a table, also those that are empty

    @property
    def columns(self) -> list[str]:
        """All columns or tags, in the order of the file."""
        return list(dict.fromkeys(self.header)) or columns_of(self.records)


def columns_of(records: Sequence[RawRecord]) -> list[str]:
    """Return all columns or tags in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record))


def head_of(text: str) -> str:
    """Return the beginning of a text, by which its format is recognised, with line ends of one kind."""
    return text[:200_000].lstrip().replace("\r\n", "\n").replace("\r", "\n")
