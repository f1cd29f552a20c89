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

from corank.errors import InputError

if sys.platform != "win32":
    import termios
    import tty

END = "\x04"
ARROWS = {"\x1b[D": "left", "\x1bOD": "left", "\x1b[C": "right", "\x1bOC": "right"}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z]|)")
_MOMENT = 0.05  # seconds to wait for the rest of an escape sequence


def has_terminal() -> bool:
    """Return whether standard input is a terminal; raise `InputError` if it is closed or has no end."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input is closed, but it provides the keys; run the command in a terminal.")
    from corank.data import STANDARD_INPUT, require_end

    with suppress(io.UnsupportedOperation):  # replaced by text in memory
        require_end(sys.stdin.fileno(), STANDARD_INPUT)
    return sys.stdin.isatty()


Ask = Callable[..., str]  # reads a key, or a line if it is given a prompt; returns "quit" at the end of the input


@contextmanager
def lines() -> Iterator[Ask]:
    """Yield a function that reads a line; the end of the input quits."""
    yield lambda prompt="": sys.stdin.readline() or ("" if prompt else "quit")


@contextmanager
def terminal(named: Mapping[str, str] | None = None) -> Iterator[Ask]:
    """Yield a function that reads a key, or a line after a prompt; keys typed ahead are kept."""
    names = named or {}
    if sys.platform == "win32":
        yield lambda prompt="": input(prompt) if prompt else typer.getchar()
        return
    handle = sys.stdin.fileno()
    as_before = termios.tcgetattr(handle)
    typed = ""

    def more() -> str:
        try:
            return os.read(handle, 64).decode(errors="replace")
        except OSError:  # the terminal was closed
            return END

    def ask(prompt: str = "") -> str:
        nonlocal typed
        if prompt:
            line, end, rest = typed.partition("\n")
            typed = rest if end else ""
            if end:  # it was typed ahead
                return line
            termios.tcsetattr(handle, termios.TCSADRAIN, as_before)
            try:
                return line + input(prompt + line)
            except (KeyboardInterrupt, EOFError):  # the text is cancelled
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
        with suppress(termios.error):  # the terminal was closed
            termios.tcsetattr(handle, termios.TCSADRAIN, as_before)
