"""A screening session on a terminal: one record at a time, one key per answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import Thread

from corank.cli import make_console
from corank.console import printable
from corank_lab.cli.screening.actions import Actions
from corank_lab.cli.screening.view import DONE, Highlights, View, draw, lay_out, show_pages, texts, turned
from corank_lab.cli.terminal import Ask, has_terminal, lines, terminal
from corank_lab.screening import Screening
from corank_lab.screening.team import Adjudication

KEYS = {
    "r": "relevant", "n": "not", "l": "later", "u": "undo", "o": "note", "g": "tag", "d": "duplicate",
    "s": "separate", "h": "history", "t": "telling", "p": "progress", "?": "help", "q": "quit",
}  # fmt: skip
BEGIN = "enter begin   q quit"
ANY = ("\n", "\r")
"""Keys that begin the reading."""
PAGING = (" ", "b", "page down", "page up", "up", "down", "left", "right")
NAMED = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[C": "right", "\x1bOC": "right",
    "\x1b[D": "left", "\x1bOD": "left", "\x1b[5~": "page up", "\x1b[6~": "page down", "\x1b[H": "home",
    "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end", "\x1b": "escape",
}  # fmt: skip
"""Names of arrow keys and the like, by what a terminal sends."""


def read_all(
    session: Screening | Adjudication,
    *,
    reasons: Sequence[str] = (),
    highlights: Highlights | None = None,
    notices: Sequence[str] = (),
) -> None:
    """
    Show records and record answers until all are read or the reader quits.

    A record is shown when the last answer is on the disk. While it is read, the model is fitted for both answers, so
    that the next one shows at once. If standard input is not a terminal, each of its lines is a key or its word, some
    with a text: ``note TEXT``, ``not REASON``, ``tag A, B``, ``duplicate ID``, ``change ID relevant``.
    """
    is_terminal, console = has_terminal(), make_console()
    with terminal(NAMED) if is_terminal else lines() as ask:
        reading = Reading(session, console, ask if is_terminal else None, tuple(reasons), highlights or Highlights())
        if notices and not reading.begin(notices):
            return
        reading.open(session.next())
        with suppress(KeyboardInterrupt):  # Ctrl-C while the screen is drawn quits, as while a key is read
            while reading.record is not None:
                reading.show()
                action, text = _action(ask, reading, is_terminal)
                if action == "quit":
                    break
                reading.apply(action, text)
                if reading.is_over:
                    break
        reading.settle()
    if is_terminal and console.is_terminal:
        console.clear()
    if reading.record is None:
        console.print(reading.ending())
    for line in reading.state():
        console.print(line)


class Reading(Actions):
    """A session, the record on the screen, and the actions of keys."""

    _learning: Thread | None = None
    _is_new = False
    _page = 0

    def open(self, record: int | None, message: str = "") -> None:
        """Show another record; fit the model for both answers while it is read."""
        self.record, self.message = record, message
        self.tags = [*self.session.tags.get(record, ())]
        self._is_new, self._page = True, 0
        prefetch = getattr(self.session, "prefetch", None)
        if self.ask is not None and record is not None and prefetch is not None:
            self._learning = Thread(target=prefetch, args=(record,))
            self._learning.start()

    def begin(self, notices: Sequence[str]) -> bool:
        """Show what was found in the files, and on a terminal wait for a key; return whether to continue."""
        if self.ask is None or not self.console.is_terminal:
            for line in notices:
                self.console.print(printable(line))
            return True
        view = View("files", texts(["What was read"], "bold")[0], [], texts(notices), texts([BEGIN], "dim"))
        return show_pages(view, self.console, self.ask, ANY) not in DONE

    def settle(self) -> None:
        """Wait until the model is fitted, before answers change."""
        if self._learning is not None:
            self._learning.join()
            self._learning = None

    def turn(self, key: str) -> None:
        self._page = turned(self._page, key, self._n_pages)

    def show(self) -> None:
        """Draw the record on a terminal; elsewhere print it once, and each message once."""
        assert self.record is not None
        if self.ask is not None and self.console.is_terminal:
            shown, self._n_pages = lay_out(self.view(), self._page, self.console)
            draw(shown, self.console)
        else:
            self._n_pages = 1
            view = self.view() if self._is_new else None
            for part in [] if view is None else [view.name, view.title, *view.details, *view.body, "", *view.below]:
                self.console.print(part)
            if view is None and self.message:
                self.console.print(printable(self.message))
        self._is_new, self.message = False, ""


def _action(ask: Ask, reading: Reading, is_terminal: bool) -> tuple[str, str]:
    """Read keys until one is valid; return the action, and its text."""
    while True:
        key = ask()
        if key in PAGING and is_terminal:
            return "turn", key
        word, _, text = key.strip().partition(" ")
        action = KEYS.get(word.lower(), word.lower())
        if action == "escape":
            return "redraw", ""
        if action.isascii() and action.isdigit():
            return "reason", action
        if action in KEYS.values() or (action == "change" and not is_terminal):
            return action, text.strip()
        problem = f"{word!r} is not a key. Press ? for all keys." if is_terminal else f"{word!r} is not a key."
        reading.message = problem
        reading.show()
        if not is_terminal:
            reading.console.print(reading.keys_line())
