"""
What a terminal shows of a record, and lists of records.

No line is printed below the last line of the terminal, so that the screen does not scroll.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from corank.console import printable
from corank_lab.cli.terminal import Ask
from corank_lab.screening.project import word_pattern

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from corank_lab.records.records import RecordDetails, Records
    from corank_lab.screening.answers import ScreeningEntry

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

    wanted: Sequence[str] = ()  # wanted, unwanted: words that speak for and against relevance
    unwanted: Sequence[str] = ()

    def apply(self, text: Text) -> Text:
        for words, style in ((self.wanted, FOR), (self.unwanted, AGAINST)):
            if words:
                text.highlight_regex(re.compile(word_pattern(words), re.IGNORECASE), style=style)
        return text


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


MOVES = {
    "up": "up", "k": "up", "down": "down", "j": "down", " ": "page down", "page down": "page down", "b": "page up",
    "page up": "page up", "home": "home", "end": "end",
}  # fmt: skip
DONE = ("quit", "escape", "q")
WORDS = {"relevant": "relevant", "not": "not", "later": "aside", "duplicate": "duplicate"}
"""Actions as a list shows them."""


def entry_words(entry: ScreeningEntry, note: str = "") -> str:
    """Describe an answer in a line: what, why, tags and note."""
    text = WORDS.get(entry.action, entry.action)
    text += f" of {entry.of}" if entry.of else ""
    text += f": {entry.reason}" if entry.reason else ""
    text += f" [{', '.join(entry.tags)}]" if entry.tags else ""
    return text + (f" (note: {note})" if note else "")


class ListScreen:
    """A list with a cursor."""

    def __init__(self, console: Console, ask: Ask) -> None:
        self.console, self.ask = console, ask
        self.at = 0

    def choose(
        self, heading: str, rows: Sequence[str], keys: Iterable[str], foot: Callable[[int], list[str]], help_line: str
    ) -> str:
        """Show a list until a key is pressed that does not move the cursor."""
        accepted = {*keys, *DONE}
        while True:
            self.at = max(0, min(self.at, len(rows) - 1))
            size = self._draw(heading, rows, foot(self.at) if rows else [], help_line)
            key = self.ask()
            move = MOVES.get(key)
            if key in accepted:
                return key
            step = {"up": -1, "down": 1, "page up": -size, "page down": size}.get(move or "", 0)
            self.at = 0 if move == "home" else len(rows) - 1 if move == "end" else self.at + step

    def _draw(self, heading: str, rows: Sequence[str], foot: list[str], help_line: str) -> int:
        from rich.text import Text

        console = self.console
        width, height = max(console.width, 10), max(console.height, 6)
        below = [line for text in texts(foot) for line in text.wrap(console, width)][: max(height // 3, 1)]
        size = max(height - 2 - len(below) - 1, 1)
        first = self.at // size * size
        lines: list[Text] = [Text(printable(heading), style="bold")]
        for place in range(first, first + size):
            row = Text(f"{'>' if place == self.at else ' '} {printable(rows[place])}" if place < len(rows) else "")
            row.stylize("reverse" if place == self.at and rows else "")
            lines.append(row)
        lines += [Text(), *below, Text(help_line, style="dim")]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        draw(lines, console)
        return size


def show_pages(view: View, console: Console, ask: Ask, keys: Iterable[str]) -> str:
    """Show a record in pages until one of these keys is pressed; return the key."""
    page, accepted = 0, {*keys, *DONE}
    while True:
        lines, n_pages = lay_out(view, page, console)
        draw(lines, console)
        key = ask()
        if key in accepted:
            return key
        page = turned(page, key, n_pages)


def turned(page: int, key: str, n_pages: int) -> int:
    """Return the page after a key."""
    step = {" ": 1, "page down": 1, "down": 1, "right": 1, "b": -1, "page up": -1, "up": -1, "left": -1}.get(key, 0)
    return max(0, min(page + step, n_pages - 1))


def record_foot(records: Records, record: int, *more: str) -> list[str]:
    """Return the lines about the record at the cursor: title, authors, journal."""
    return [records.titles[record] or "(no title)", *details_of(records.details[record])[:1], *filter(None, more)]
