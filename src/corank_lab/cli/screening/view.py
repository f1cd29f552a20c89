"""
A record on a terminal of any size: the title stays at the top, the abstract has pages, the keys stay at the bottom.

No line is printed below the last line of the terminal, so that the screen does not scroll.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from corank.console import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from corank_lab.records.records import RecordDetails, Records

FOR, AGAINST = "bold green", "underline red"
"""Styles of highlighted words; without colours, bold and underline remain."""
MIN_BODY = 3
"""Least number of lines of an abstract on a page."""
SPACIOUS = 18
"""Number of lines from which an empty line separates title and abstract."""
MAX_AUTHORS = 3


@dataclass(frozen=True)
class Highlights:
    """Words to highlight."""

    # wanted, unwanted: words that speak for and against relevance; ``*`` stands for any ending
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()

    @classmethod
    def of(cls, wanted: Iterable[str], unwanted: Iterable[str]) -> Highlights:
        """Make them of lists of words that are separated by commas."""
        return cls(*(tuple(_split(side)) for side in (wanted, unwanted)))

    def apply(self, text: Text) -> Text:
        """Highlight the words in a text."""
        for words, style in ((self.wanted, FOR), (self.unwanted, AGAINST)):
            if words:
                text.highlight_regex(_pattern(words), style=style)
        return text


def _split(listed: Iterable[str]) -> Iterator[str]:
    for text in listed:
        yield from filter(None, map(str.strip, text.split(",")))


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern of whole words; blanks in a word match any blanks."""
    parts = [
        r"\s+".join(re.escape(part).replace(r"\*", r"\w*") for part in word.split())
        for word in sorted(words, key=len, reverse=True)
    ]
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)", re.IGNORECASE)


@dataclass
class View:
    """What a terminal shows of a record."""

    name: str  # line above the title
    title: Text  # title, details: lines that stay at the top
    details: list[Text] = field(default_factory=list)
    body: list[Text] = field(default_factory=list)  # paragraphs that are paged
    # lines that stay at the bottom; if there is not enough space, the first ones are left out
    below: list[Text] = field(default_factory=list)


def lay_out(view: View, page: int, console: Console) -> tuple[list[Text], int]:
    """Return the lines of a page, at most as many as the terminal has, and the number of pages."""
    from rich.text import Text

    width, height = max(console.width, 10), max(console.height, 6)
    name = Text(f"{view.name} "[: width - 1], style="dim")
    name.append("─" * (width - 1 - name.cell_len))
    title = _wrapped([view.title], width, console)
    below = _wrapped(view.below, width, console)
    below = below[-max(height // 2 - 2, 2) :]
    space = height - 2 - len(below) - MIN_BODY
    title = _cut(title, max(min(space - 1, height // 4 + 1), 1))
    details = _cut(_wrapped(view.details, width, console), max(space - len(title), 0))
    top = [name, *title, *details, *([Text()] if height >= SPACIOUS else [])]
    body = _wrapped(view.body, width, console)
    free = height - len(top) - len(below)
    if len(body) <= free:
        return [*top, *body, *[Text()] * (free - len(body)), *below], 1
    size = max(free - 1, 1)
    n_pages = -(-len(body) // size)
    page = max(0, min(page, n_pages - 1))
    shown = body[page * size : (page + 1) * size]
    mark = Text(f"page {page + 1} of {n_pages}: space next, b back", style="reverse", overflow="ellipsis")
    mark.truncate(width)
    return [*top, *shown, *[Text()] * (size - len(shown)), mark, *below], n_pages


def draw(lines: Sequence[Text], console: Console) -> None:
    """Replace the content of the terminal by these lines."""
    console.clear()
    for number, line in enumerate(lines):
        console.print(line, end="\n" if number < len(lines) - 1 else "", no_wrap=True, overflow="crop", crop=True)


def record_name(records: Records, record: int) -> str:
    """Return the line above a title."""
    return f"record {printable(records.ids[record])}"


def details_of(details: RecordDetails) -> list[str]:
    """Return authors, year, journal and identifiers in lines; nothing for what is unknown."""
    authors = "; ".join(details.authors[:MAX_AUTHORS])
    if len(details.authors) > MAX_AUTHORS:
        authors += f" and {len(details.authors) - MAX_AUTHORS} more"
    named = (("doi", details.doi), ("PMID", details.pmid), ("file", details.source))
    lines = [
        " · ".join(filter(None, (authors, str(details.year or ""), details.journal))),
        " · ".join(f"{name} {value}" for name, value in named if value),
    ]
    return [line for line in lines if line]


def texts(lines: Iterable[str], style: str = "") -> list[Text]:
    """Return lines as printable texts."""
    from rich.text import Text

    return [Text(printable(line), style=style) for line in lines]


def _wrapped(paragraphs: Iterable[Text], width: int, console: Console) -> list[Text]:
    return [line for text in paragraphs for line in (text.wrap(console, width) if text.plain else [text])]


def _cut(lines: list[Text], most: int) -> list[Text]:
    """Return the first lines, with an ellipsis if there are more."""
    if len(lines) <= most or not most:
        return lines[:most]
    kept = [line.copy() for line in lines[:most]]
    kept[-1].right_crop(2)
    kept[-1].append(" …")
    return kept
