"""Bytes of a record file, decoded whatever the encoding, and the raw records that parsers return."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from corank.data import compression_of, open_regular, unpack
from corank.errors import InputError

_MARKS = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip
_DECLARED = re.compile(rb"""<\?xml[^>]{0,100}?encoding=["']([A-Za-z0-9._-]{1,40})["']""")
_HEAD = 1 << 16
_WINDOWS = {item: bytes([item]).decode("cp1252", "ignore") or chr(item) for item in range(0x80, 0xA0)}


@dataclass(frozen=True)
class LoadedFile:
    """Bytes of a file."""

    name: str  # the path, for messages
    content: bytes  # its bytes, decompressed
    sha256: str  # hash of the file as it is on disk


def load_file(path: str | os.PathLike[str]) -> LoadedFile:
    """Read a regular file, plain, gzip, xz or zstandard, recognised by its first bytes."""
    name = os.fspath(path)
    try:
        with open_regular(path) as file:
            packed = file.read()
    except FileNotFoundError:
        raise InputError(f"there is no file {name}; check the path.") from None
    except OSError as error:
        raise InputError(
            f"{name} cannot be read ({error.strerror or error}); check the file and its permissions."
        ) from error
    handle = io.BytesIO(packed)
    kind = compression_of(handle)
    content = packed if kind is None else b"".join(unpack(handle, kind, name))
    if not content.strip(b"\xef\xbb\xbf \t\r\n\0"):
        raise InputError(f"{name} is empty; expected records.")
    return LoadedFile(name, content, hashlib.sha256(packed).hexdigest())


def decode(content: bytes) -> tuple[str, str]:
    """
    Return a text and, unless it is plain UTF-8, a sentence about its encoding.

    A byte order mark decides; without one, zero bytes at every other place mean UTF-16. Bytes that are not UTF-8 are
    read as Windows-1252: all of them, or only the lines concerned where other lines hold valid UTF-8.
    """
    mark = next((item for item in _MARKS if content.startswith(item)), b"")
    encoding = _MARKS[mark] if mark else _without_mark(content)
    if encoding == "utf-8":
        return _utf8(content[len(mark) :])
    text = content[len(mark) :].decode(encoding, "replace").lstrip("\ufeff")
    return text, f"The encoding is {encoding.upper()[:6]}."


def _without_mark(content: bytes) -> str:
    head = content[:_HEAD]
    pairs = len(head) // 2
    if pairs and b"\0" in head:
        if head[1::2].count(0) > 0.6 * pairs and head[::2].count(0) < 0.1 * pairs:
            return "utf-16-le"
        if head[::2].count(0) > 0.6 * pairs and head[1::2].count(0) < 0.1 * pairs:
            return "utf-16-be"
    return "utf-8"


def _utf8(content: bytes) -> tuple[str, str]:
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError:
        pass
    declared = _DECLARED.match(content.lstrip()[:300])
    if declared:
        try:
            return content.decode(declared[1].decode()), f"The encoding is {declared[1].decode()}, as the file says."
        except (UnicodeDecodeError, LookupError):
            pass
    lines = content.split(b"\n")
    decoded, n_others, n_valid = [], 0, 0
    for line in lines:
        try:
            decoded.append(line.decode("utf-8"))
            n_valid += not line.isascii()
        except UnicodeDecodeError:
            decoded.append(_windows(line))
            n_others += 1
    if n_valid:
        return (
            "\n".join(decoded),
            f"{n_others} of {len(lines)} lines are not UTF-8 and were read as Windows-1252; check their accents.",
        )
    return _windows(content), "The encoding is not UTF-8 and was read as Windows-1252 (Latin-1); check the accents."


def _windows(content: bytes) -> str:
    """Decode Windows-1252; the five bytes that it does not define are read as Latin-1."""
    return content.decode("latin-1").translate(_WINDOWS)


RawRecord = dict[str, list[str]]
"""Values of one record by column or tag, in the order of the file."""

FieldNames = Mapping[str, Sequence[str]]
"""
Columns or tags of each field (``title``, ``abstract``, ``year``, ...), the preferred first.

A record uses the first that is not empty; ``keywords`` uses all.
"""


@dataclass(frozen=True)
class ParsedFile:
    """Raw records of a file."""

    format: str  # what was recognised, such as ``"RIS"``
    records: list[RawRecord]  # values of each record by column or tag
    places: Sequence[str]  # where each record begins, for messages, such as ``"works.csv, line 3"``
    names: FieldNames  # see `FieldNames`
    remarks: tuple[str, ...] = ()  # what was assumed, one sentence each
    derived: frozenset[str] = frozenset()  # columns that the parser computed; they are not kept for exports
    is_table: bool = False  # whether a cell may hold several authors or keywords, and repeated columns alternatives
    decode: Callable[[str], str] = str  # turns a raw value into plain text, such as that of LaTeX
    header: Sequence[str] = ()  # all columns of a table, also those that are empty

    @property
    def columns(self) -> list[str]:
        """All columns or tags, in the order of the file."""
        return list(dict.fromkeys(self.header)) or columns_of(self.records)


def columns_of(records: Sequence[RawRecord]) -> list[str]:
    """Return all columns or tags in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record))


def head_of(text: str) -> str:
    """Return the beginning of a text, by which its format is recognised, with line ends of one kind."""
    return text[:200_000].lstrip().replace("\r\n", "\n").replace("\r", "\n")
