"""Keys of a terminal, one at a time, and text of strangers that a terminal must not obey."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import typer

if sys.platform != "win32":
    import termios
    import tty

END = "\x04"
ARROWS = {"\x1b[D": "left", "\x1bOD": "left", "\x1b[C": "right", "\x1bOC": "right"}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z]|)")
_MOMENT = 0.05
"""Seconds in which the rest of a function key follows its beginning."""


def plain(text: str) -> str:
    """Text of a stranger's file without what a terminal would obey."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


@contextmanager
def lines() -> Iterator[Callable[[bool], str]]:
    """Yield what reads a line; the end is quitting."""
    yield lambda is_note: sys.stdin.readline() or ("" if is_note else "quit")


@contextmanager
def terminal(named: Mapping[str, str] | None = None) -> Iterator[Callable[[bool], str]]:
    """
    Yield what reads a key, or a line for a note, from a terminal that keeps what is typed ahead.

    named: names of arrows and function keys that are asked for; others are passed over: their letters are no answers.
    """
    names = named or {}
    if sys.platform == "win32":
        yield lambda is_note: input("note: ") if is_note else typer.getchar()
        return
    handle = sys.stdin.fileno()
    as_before = termios.tcgetattr(handle)
    typed = ""

    def more() -> str:
        return os.read(handle, 64).decode(errors="replace")

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
            while True:
                typed = typed or more() or END
                if typed == "\x1b" and select.select([handle], [], [], _MOMENT)[0]:
                    typed += more()
                sequence = _SEQUENCE.match(typed)
                if sequence is None:
                    break
                typed = typed[sequence.end() :]
                if sequence[0] in names:
                    return names[sequence[0]]
        except KeyboardInterrupt:
            typed = END
        key, typed = typed[0], typed[1:]
        return "quit" if key == END else key

    tty.setcbreak(handle, termios.TCSADRAIN)
    try:
        yield ask
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, as_before)
