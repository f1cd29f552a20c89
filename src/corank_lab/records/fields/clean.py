"""Clean texts for display and learning: markup, entities, placeholders for a missing abstract."""

from __future__ import annotations

import html
import re

_NAMES = (
    "p|br|div|span|i|b|u|em|strong|small|big|sub|sup|sc|tt|font|a|h[1-6]|ul|ol|li|dl|dt|dd|table|tr|td|th|tbody|thead|"
    "title|sec|label|italic|bold|underline|monospace|roman|sans-serif|styled-content|list|list-item|inline-formula|"
    "disp-formula|tex-math|alternatives|named-content|ext-link|xref|abstract|abstracttext|inf|hr|blockquote|section|"
    "math|semantics|annotation|m(?:i|n|o|row|sub|sup|subsup|text|frac|over|under|style|space|table|tr|td|multiscripts|"
    "ath|sqrt|root|prescripts|none|underover|padded|phantom|enclose|stack)"
)
_TAG = re.compile(rf"<(/?)(?:(?:jats|mml|ns\d|m|xhtml):)?({_NAMES})((?:\s[^<>]{{0,500}})?/?)>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.{0,2000}?-->|<!\[CDATA\[|\]\]>", re.DOTALL)
_BLOCKS = frozenset(
    [
        "p",
        "br",
        "div",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "tr",
        "title",
        "sec",
        "list",
        "list-item",
        "abstract",
        "abstracttext",
        "hr",
        "section",
        "blockquote",
    ]
)
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
