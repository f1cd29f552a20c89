"""Read single keys from a terminal, or lines from elsewhere."""

from __future__ import annotations

import io
import os
import re
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import typer

from corank.data.durable.regular import require_end
from corank.data.formats.text import STANDARD_INPUT
from corank.errors import InputError

if sys.platform != "win32":
    import termios
    import tty

END = "\x04"
ARROWS = {"\x1b[D": "left", "\x1bOD": "left", "\x1b[C": "right", "\x1bOC": "right"}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z]|)")
_MOMENT = 0.05
"""Seconds to wait for the rest of an escape sequence."""


def has_terminal() -> bool:
    """Return whether standard input is a terminal; raise `InputError` if it is closed or has no end."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input is closed, but it provides the keys; run the command in a terminal.")
    with suppress(io.UnsupportedOperation):  # replaced by text in memory
        require_end(sys.stdin.fileno(), STANDARD_INPUT)
    return sys.stdin.isatty()


@contextmanager
def lines() -> Iterator[Callable[[bool], str]]:
    """Yield a function that reads a line; the end of the input quits."""
    yield lambda is_note: sys.stdin.readline() or ("" if is_note else "quit")


@contextmanager
def terminal(named: Mapping[str, str] | None = None) -> Iterator[Callable[[bool], str]]:
    """
    Yield a function that reads a key, or a line for a note; keys typed ahead are kept.

    named: names of arrow and function keys; other escape sequences are ignored, since their letters are not answers.
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
            except (KeyboardInterrupt, EOFError):  # the note is cancelled
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
