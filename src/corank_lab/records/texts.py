"""Clean texts, names of authors, keywords and references in one cell."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

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
    return _same(" ".join(_plain(text).split()), text)


def clean_text(text: str) -> str:
    """Return a text of several lines without markup and entities; blank lines and repeated blanks are dropped."""
    lines = (" ".join(line.split()) for line in _plain(text).split("\n"))
    return _same("\n".join(line for line in lines if line), text)


def clean_abstract(text: str) -> str:
    """Return an abstract as `clean_text`; a placeholder for a missing one becomes empty."""
    cleaned = clean_text(text)
    return "" if len(cleaned) < 200 and is_absent(cleaned) else cleaned


def is_absent(text: str) -> bool:
    """Return whether a text only says that there is nothing, such as ``n/a`` or ``[No abstract available]``."""
    return _ABSENT.fullmatch(text) is not None or not any(map(str.isalnum, text))


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


def _same(cleaned: str, text: str) -> str:
    """Return the text itself if it is clean already, so that both are one object in memory."""
    return text if cleaned == text else cleaned


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
    return tuple(one for text in result if (one := " ".join(text.split()).strip(_EDGES)))


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
