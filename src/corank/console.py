"""
Text for people: control characters, which a terminal would execute, become visible.

`printable` is the only function that decides what may reach a terminal. Errors and warnings apply it to their messages,
`printable_console` to everything that rich draws, and `printable_streams` to every other text of the command line.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# everything but printable ASCII, tabs and line ends
_SUSPICIOUS = re.compile(r"[^\n\t\x20-\x7e](?<!\r(?=\n))")
_JOINERS = "\u200c\u200d"
"""Invisible characters that spelling needs, as in Persian words and composed emoji."""


def printable(text: str) -> str:
    """
    Make control characters visible, so that text from files cannot control a terminal.

    Escape characters, C1 controls, reversals of the writing direction and invalid UTF-8 become escapes such as
    ``\\x1b``; other blanks become spaces; invisible format characters disappear. Tabs and line ends stay.
    """
    return _SUSPICIOUS.sub(_shown, text)


def one_line(text: str) -> str:
    """Make a text printable on one line: line ends and tabs become escapes too."""
    return printable(text).replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def _shown(match: re.Match[str]) -> str:
    letter = match[0]
    if letter.isprintable() or letter in _JOINERS:
        return letter
    if letter.isspace():
        return " "
    if "\udc80" <= letter <= "\udcff":  # a byte of a file name that is not UTF-8
        return f"\\x{ord(letter) - 0xDC00:02x}"
    is_format = unicodedata.category(letter) == "Cf"
    # left-to-right and right-to-left embeddings, overrides and isolates change the order of what follows
    changes_order = unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return "" if is_format and not changes_order else ascii(letter)[1:-1]


@cache
def _console_class() -> type[Console]:
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        """A console that draws printable text only; its own control sequences pass."""

        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    return PrintableConsole


def printable_console(*, err: bool = False, **options: Any) -> Console:
    """Return a console of rich that draws printable text only."""
    stream = sys.stderr if err else sys.stdout
    return _console_class()(file=getattr(stream, "unfiltered", stream), **options)


class _Filter(io.RawIOBase):
    """Bytes on their way to a stream, made printable."""

    def __init__(self, stream: Any) -> None:
        self.name = getattr(stream, "name", "")
        self._target, self._encoding = stream.buffer, stream.encoding
        self._decoder = codecs.getincrementaldecoder(stream.encoding)("surrogateescape")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        text = self._decoder.decode(bytes(data))
        self._target.write(printable(text).encode(self._encoding, "backslashreplace"))
        return len(data)

    def flush(self) -> None:
        if not self.closed:
            self._target.flush()

    def isatty(self) -> bool:
        return bool(self._target.isatty())

    def fileno(self) -> int:
        return int(self._target.fileno())


class _FilteredStream(io.TextIOWrapper):
    """
    A text stream that passes on printable text only.

    unfiltered: the stream itself, for consoles, which filter by themselves.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(_Filter(stream), stream.encoding, "backslashreplace", write_through=True)
        self.unfiltered = stream


@contextmanager
def printable_streams() -> Iterator[None]:
    """
    Make standard error printable, and standard output too if it is a terminal; elsewhere it carries exact data.

    A character that a stream cannot encode, such as ± in ASCII, becomes an escape.
    """
    with ExitStack() as restore:
        for name in ("stdout", "stderr"):
            stream: Any = getattr(sys, name)
            if not isinstance(stream, io.TextIOWrapper):  # closed, or replaced by a notebook
                continue
            restore.callback(stream.reconfigure, errors=stream.errors)
            stream.reconfigure(errors="backslashreplace")
            if name == "stderr" or stream.isatty():
                stream.flush()
                filtered = _FilteredStream(stream)
                setattr(sys, name, filtered)
                restore.callback(_restore, name, filtered)
        yield


def _restore(name: str, filtered: _FilteredStream) -> None:
    with suppress(OSError, ValueError):  # the terminal is gone
        filtered.flush()
    setattr(sys, name, filtered.unfiltered)
