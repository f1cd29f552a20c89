"""
Texts of projects as HTML: everything is escaped, and a few marks become formatting.

Marks: blank lines separate paragraphs, ``**bold**``, ``*emphasis*``, `` `code` ``, lines that begin with ``-`` or ``*``
are lists, and addresses that begin with http:// or https:// are links. There is no other HTML, and no other address.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

# an address ends before punctuation that closes a sentence
_LINK = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]]")
_MARKS = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?![\w*])")
_BULLET = re.compile(r"\s*[-*•]\s+")
# control characters, half characters, and controls of the direction of writing, which may disguise the order of a text
_REMOVED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Remove control characters and controls of the writing direction; line ends and tabs stay."""
    return _REMOVED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, most: int = 200) -> str:
    """Return a text on one line, shortened."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def rich(text: str) -> Markup:
    """
    Return a text as HTML.

    >>> print(rich("*Heat* pumps\\n- <b>, see https://example.org/a."))
    <p><em>Heat</em> pumps</p>
    <ul><li>&lt;b&gt;, see <a href="https://example.org/a" ...>https://example.org/a</a>.</li></ul>
    """
    blocks = []
    for part in re.split(r"\n\s*\n", clean(text).strip()):
        lines: list[str] = []
        bullets: list[str] = []
        for line in part.split("\n"):
            found = _BULLET.match(line)
            if found:
                if lines:
                    blocks.append(_paragraph(lines))
                    lines = []
                bullets.append(line[found.end() :])
            elif bullets and line.startswith((" ", "\t")):
                bullets[-1] += " " + line.strip()
            else:
                if bullets:
                    blocks.append(_list(bullets))
                    bullets = []
                lines.append(line)
        if lines and any(line.strip() for line in lines):
            blocks.append(_paragraph(lines))
        if bullets:
            blocks.append(_list(bullets))
    return Markup("\n").join(blocks)


def link(address: str) -> Markup:
    """Return an address as a link if it begins with http:// or https://, else as text."""
    return _inline(clean(address).strip())


def _paragraph(lines: list[str]) -> Markup:
    return Markup("<p>") + Markup("<br>").join(_inline(line) for line in lines) + Markup("</p>")


def _list(bullets: list[str]) -> Markup:
    return (
        Markup("<ul>")
        + Markup("").join(Markup("<li>{}</li>").format(_inline(one)) for one in bullets)
        + Markup("</ul>")
    )


def _inline(text: str) -> Markup:
    parts: list[Markup] = []
    at = 0
    for found in _LINK.finditer(text):
        parts.append(_marks(text[at : found.start()]))
        parts.append(
            Markup('<a href="{0}" rel="noopener noreferrer nofollow" target="_blank">{0}</a>').format(found[0])
        )
        at = found.end()
    parts.append(_marks(text[at:]))
    return Markup("").join(parts)


def _marks(text: str) -> Markup:
    parts: list[Markup] = []
    at = 0
    for found in _MARKS.finditer(text):
        parts.append(escape(text[at : found.start()]))
        tag, inner = next(
            (tag, inner) for tag, inner in zip(("code", "strong", "em"), found.groups(), strict=True) if inner
        )
        parts.append(Markup(f"<{tag}>{{}}</{tag}>").format(inner))
        at = found.end()
    parts.append(escape(text[at:]))
    return Markup("").join(parts)
