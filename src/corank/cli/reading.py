"""The reader's side of a screening: one record at a time, one key an answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

import typer

from corank.cli.tables import screen

if sys.platform != "win32":
    import termios
    import tty

if TYPE_CHECKING:
    from rich.console import Console

    from corank.screening.screening import Progress, Screening

KEYS = {"r": "relevant", "n": "not", "l": "later", "u": "undo", "o": "note", "q": "quit"}
END = "\x04"
HELP = "r relevant   n not   l later   u undo   o note   q quit"
ROOM = 8
"""Lines of a screen that an abstract leaves for title, progress and keys."""


def read_all(screening: Screening) -> None:
    """
    Show records and take answers until all are read or the reader quits.

    A record is shown when the last answer is on the disk. While it is read, both answers to it are learnt, so that
    the next one shows at once. Where standard input is no terminal, each line of it is a key or its word, and a note
    is ``note`` with its text behind it.
    """
    console = screen()
    with _terminal() if sys.stdin.isatty() else _lines() as ask:
        record = screening.next()
        while record is not None:
            show_record(screening, record, console)
            learning = Thread(target=screening.foresee, args=(record,))
            if sys.stdin.isatty():
                learning.start()
            action, text = _action(ask, console)
            while action == "note":  # the record stays
                screening.note(record, text)
                console.print("the note is kept.")
                action, text = _action(ask, console)
            if sys.stdin.isatty():
                learning.join()
            if action == "quit":
                break
            record = _take(screening, record, action, console)
        else:
            console.print("every record is read.")
    console.print(summary(screening.progress()))


def _take(screening: Screening, record: int, action: str, console: Console) -> int | None:
    if action == "undo":
        last = screening.undo()
        if last is None:
            console.print("nothing was answered yet.")
        return record if last is None else last
    if action == "later":
        screening.later(record)
    else:
        screening.answer(record, action == "relevant")
    return screening.next()


def show_record(screening: Screening, record: int, console: Console) -> None:
    """Print a record, how far the screening has come, and the keys."""
    records, name = screening.records, f"record {screening.records.ids[record]}"
    if console.is_terminal:
        console.clear()
        console.rule(_plain(name), align="left")
    else:
        console.print(_plain(name))
    console.print(_plain(records.titles[record]) or "(no title)", style="bold")
    console.print(_plain(records.abstracts[record]) or "(no abstract)")
    if record in screening.notes:
        console.print(f"note: {_plain(screening.notes[record])}", style="italic")
    console.print()
    if console.is_terminal and len(console.render_lines(_plain(records.abstracts[record]))) > console.height - ROOM:
        # the top has left the screen
        console.print(_plain(records.titles[record]), style="bold")
    console.print(summary(screening.progress()))
    console.print(HELP, style="dim")


def _plain(text: str) -> str:
    """Text of a stranger's file without what a terminal would obey."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def summary(progress: Progress) -> str:
    """Say in a line or two how far a screening has come."""
    said = f"found {progress.found}, read {progress.read} of {progress.n}"
    estimate = progress.estimate
    if estimate is not None:
        said += (
            f"; recall about {estimate.recall:.0%} ({estimate.low:.0%} to {estimate.high:.0%}), "
            f"about {estimate.expected:.1f} more in the next 100"
        )
    if progress.may_stop:
        said += "; you may stop: the target is reached, says the rule"
    elif progress.to_sample:
        said += f"; {progress.to_sample} records drawn at random until the next test"
    return said + "."


def _action(ask: Callable[[bool], str], console: Console) -> tuple[str, str]:
    """Ask until a key is known; a note comes with its text."""
    while True:
        word, _, text = ask(False).strip().partition(" ")
        action = KEYS.get(word.lower(), word.lower())
        if action == "note" and (text := text or ask(True).strip()):
            return action, text
        if action in KEYS.values() and action != "note":
            return action, ""
        console.print(f"{'no note' if action == 'note' else repr(word) + ' is no key'}; {HELP}")


@contextmanager
def _lines() -> Iterator[Callable[[bool], str]]:
    """Yield what reads a line; the end is quitting."""
    yield lambda is_note: sys.stdin.readline() or ("" if is_note else "quit")


@contextmanager
def _terminal() -> Iterator[Callable[[bool], str]]:
    """Yield what reads a key, or a line for a note, from a terminal that keeps what is typed ahead."""
    if sys.platform == "win32":
        yield lambda is_note: input("note: ") if is_note else typer.getchar()
        return
    handle = sys.stdin.fileno()
    as_before = termios.tcgetattr(handle)
    typed = ""

    def ask(is_note: bool) -> str:
        nonlocal typed
        if is_note:
            termios.tcsetattr(handle, termios.TCSADRAIN, as_before)
            try:
                return input("note: ")
            except (KeyboardInterrupt, EOFError):  # no note after all
                return ""
            finally:
                tty.setcbreak(handle, termios.TCSADRAIN)
        try:
            while not typed:
                typed = os.read(handle, 64).decode(errors="replace") or END
                if typed.startswith("\x1b"):  # an arrow or a function key, whose letters are no answers
                    typed = ""
        except KeyboardInterrupt:
            typed = END
        key, typed = typed[0], typed[1:]
        return "quit" if key == END else key

    tty.setcbreak(handle, termios.TCSADRAIN)
    try:
        yield ask
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, as_before)
