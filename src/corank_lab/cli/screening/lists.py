"""Lists on a terminal: the history of answers, and records of which one may be a duplicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from corank.console import printable
from corank_lab.cli.screening.view import View, details_of, draw, lay_out, texts
from corank_lab.cli.terminal import Ask

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from corank_lab.records.records import Records
    from corank_lab.screening.answers import ScreeningEntry

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
    """
    A list with a cursor.

    console, ask: the terminal.
    at: place of the cursor.
    """

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
        """Draw the page of the cursor; return the number of rows on a page."""
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
