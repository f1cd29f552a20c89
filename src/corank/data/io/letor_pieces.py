"""Texts cut at newlines into pieces, which threads read and parse in parallel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.core import parsing
from corank.core.jit import is_small
from corank.core.parsing import DONE, INTEGER_QID, NO_QID, ParserSettings, Sheet
from corank.core.threads import parallel_map
from corank.data.durable.text import TextFile

_NUMBER = rb"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_IS_NUMBER = re.compile(_NUMBER).fullmatch
_IS_PAIR = re.compile(rb"([0-9]{1,9}):(" + _NUMBER + rb")").fullmatch
_IS_QID = re.compile(rb"qid:(-?[0-9]{1,18})").fullmatch
_LAST_ID = re.compile(rb"([0-9]{1,10}):[^:]*\Z").search
# control characters other than tab and newline
_IS_UNUSUAL = re.compile(rb"[\x00-\x08\x0b-\x1f]").search


def _survey_small(text: bytes) -> tuple[int, int, int, int, int] | None:
    """Count as the kernel of that name."""
    if _IS_UNUSUAL(text):
        return None
    rows, colons, later_colons, largest = 0, 0, 0, 0
    for line in text.split(b"\n"):
        body = line.partition(b"#")[0].strip()
        if body:
            result = body.count(b":")
            last = _LAST_ID(body)
            rows, colons, later_colons = rows + 1, colons + result, later_colons + max(result - 1, 0)
            largest = max(largest, int(last[1]) if last else 0)
    return rows, colons, later_colons, largest, -1


def _parse_small(
    text: bytes, shift: int, row: int, at: int, sheet: Sheet, rules: ParserSettings
) -> tuple[int, int, int, int, int, int] | None:
    """Parse whole lines as the kernel of that name; no number is hard."""
    if _IS_UNUSUAL(text) or rules.qids not in (NO_QID, INTEGER_QID):
        return None
    largest, begin = 0, 0
    for line in text.split(b"\n"):
        body, mark, _ = line.partition(b"#")
        words = body.split()
        if words:
            if row == len(sheet.y) or not _IS_NUMBER(words[0]):
                return None
            sheet.y[row] = float(words[0])
            first = 1
            if rules.qids == INTEGER_QID:
                qid = _IS_QID(words[1]) if len(words) > 1 else None
                if qid is None:
                    return None
                sheet.qid[row] = int(qid[1])
                first = 2
            last = 0
            for word in words[first:]:
                pair = _IS_PAIR(word)
                feature, value = (int(pair[1]), float(pair[2])) if pair else (0, 0.0)
                if not last < feature <= rules.last_id or not abs(value) < rules.too_large:
                    return None
                if rules.width < 0 and at == len(sheet.indices):
                    return None
                place = at if rules.width < 0 else row * rules.width + feature - 1
                sheet.values[place] = value
                if rules.width < 0:
                    sheet.indices[at] = feature - 1
                    at += 1
                last = feature
            largest = max(largest, last)
            sheet.comments[row] = shift + begin + len(body) + 1 if mark else -1
            row += 1
            if rules.width < 0:
                sheet.indptr[row] = at
        begin += len(line) + 1
    # an infinite number is a fault
    return (DONE, shift + len(text), row, at, 0, largest) if np.isfinite(sheet.y[:row]).all() else None


def split_small(text: bytes, n_columns: int, number: int) -> tuple[NDArray[np.float64], list[list[str]]] | None:
    """Split lines of blank-separated columns."""
    rows = [line.split() for line in text.split(b"\n")] if not _IS_UNUSUAL(text) else [[b""]]
    rows = [row for row in rows if row]
    if not all(len(row) == n_columns and _IS_NUMBER(row[number]) for row in rows):
        return None
    numbers = np.array([float(row[number]) for row in rows])
    if not np.isfinite(numbers).all():
        return None
    return numbers, [[row[k].decode(errors="surrogateescape") for row in rows] for k in range(n_columns)]


PIECE = 1 << 20
"""Approximate bytes of a piece: large enough to amortise a task, small enough for a processor's cache."""

MAX_WORD = 1 << 20
"""Bytes of a number or an id in a line longer than a piece."""


class Fault(Exception):
    """The position at which the parser stopped, and the code that `parse_rows` returned."""

    def __init__(self, code: int, position: int) -> None:
        super().__init__(code, position)
        self.code = code
        self.position = position


@dataclass(frozen=True)
class ParseResult:
    """Result of parsing a piece, or all pieces."""

    n_values: int  # values of the sheet used so far
    largest_id: int


@dataclass(frozen=True, eq=False)
class Piece:
    """Whole lines of a text."""

    text: TextFile
    begin: int  # begin, end: offsets in the text
    end: int
    base: int  # position at which the text begins

    @property
    def shift(self) -> int:
        """Difference between a position and an offset within the piece."""
        return self.base + self.begin

    @property
    def length(self) -> int:
        """Number of bytes; a newline is added to the last line of the text if it has none."""
        return self.end - self.begin + (self.end == self.text.size)

    def read(self) -> NDArray[np.uint8]:
        """Return `length` bytes, and more newlines."""
        return self.text.read(self.begin, self.end, padding=2)


@dataclass(frozen=True, eq=False)
class Pieces:
    """
    Concatenated texts as pieces of whole lines; positions count bytes from the first text, one more per text.

    rows, colons, later_colons: for each piece, the number of rows, of colons outside comments, and of those colons
        that are not the first of their row.
    """

    texts: list[TextFile]
    bases: NDArray[np.int64]  # position at which each text begins
    rows: NDArray[np.int64]
    colons: NDArray[np.int64]
    later_colons: NDArray[np.int64]
    largest_id: int  # largest number before a row's last colon
    bare_return: int  # position of the first carriage return inside a comment, -1 for none
    n_jobs: int | None  # number of threads
    _pieces: list[Piece]

    @classmethod
    def of(cls, texts: list[TextFile], pieces: list[Piece] | None = None, *, n_jobs: int | None = None) -> Pieces:
        """Count the rows and values of pieces of texts, in order: all, or at least one of them."""
        pieces = list(cut_texts(texts, PIECE)) if pieces is None else pieces
        surveys = parallel_map(lambda k, _: _survey(pieces[k]), _each(pieces), n_jobs)
        rows, colons, later_colons, largest, returns = np.array(surveys, dtype=np.int64).T
        first = returns[returns >= 0]
        bare_return = int(first[0]) if len(first) else -1
        largest_id = int(largest.max())
        return cls(texts, _bases(texts), rows, colons, later_colons, largest_id, bare_return, n_jobs, pieces)

    def first_row(self) -> bytes:
        """Return the lines of the piece that contains the first row; blank lines and comments may precede it."""
        return self._pieces[int(np.flatnonzero(self.rows)[0])].read().tobytes()

    def parse(self, sheet: Sheet, rules: ParserSettings, value_counts: NDArray[np.int64]) -> ParseResult:
        """Parse every piece into the sheet, and close the gaps left by pieces with fewer values than counted."""
        row_starts = np.concatenate([[0], np.cumsum(self.rows)]).tolist()
        value_starts = np.concatenate([[0], np.cumsum(value_counts)]).tolist()
        outcomes = parallel_map(
            lambda k, _: _parse(self._pieces[k], row_starts[k : k + 2], value_starts[k : k + 2], sheet, rules),
            _each(self._pieces),
            self.n_jobs,
        )
        good = []
        for outcome in outcomes:
            if isinstance(outcome, Fault):
                raise outcome
            good.append(outcome)
        largest_id = max(outcome.largest_id for outcome in good)
        if rules.width >= 0:
            return ParseResult(value_starts[-1], largest_id)
        used = _close_gaps(sheet, row_starts, value_starts, [outcome.n_values for outcome in good])
        return ParseResult(used, largest_id)

    def match(self, pattern: re.Pattern[bytes], positions: NDArray[np.int64]) -> Iterator[bytes]:
        """Match a pattern at one position of each row."""
        row_starts = np.concatenate([[0], np.cumsum(self.rows)]).tolist()
        for piece, first, last in zip(self._pieces, row_starts[:-1], row_starts[1:], strict=True):
            places = positions[first:last]
            content = piece.read().tobytes() if (places >= 0).any() else b""
            for place in places.tolist():
                result = pattern.match(content, place - piece.shift) if place >= 0 else None
                yield b"" if result is None else result[pattern.groups]

    def locate(self, position: int) -> tuple[TextFile, int]:
        """Return the text of a position, and the offset in that text."""
        k = int(np.searchsorted(self.bases, position, side="right")) - 1
        return self.texts[k], position - int(self.bases[k])


def _each(pieces: list[Piece]) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(len(pieces))]


def _bases(texts: list[TextFile]) -> NDArray[np.int64]:
    # the end of each text also has a position
    return np.cumsum([0, *(text.size + 1 for text in texts[:-1])], dtype=np.int64)


def cut_texts(texts: list[TextFile], size: int) -> Iterator[Piece]:
    """Cut concatenated texts at newlines into pieces of about `size` bytes."""
    for text, base in zip(texts, _bases(texts).tolist(), strict=True):
        yield from cut_lines(text, base, size)


def cut_lines(text: TextFile, base: int, size: int) -> Iterator[Piece]:
    """Cut a text that begins at position `base` at newlines into pieces of about `size` bytes."""
    begin = 0
    while begin < text.size:
        end = text.line_end(min(begin + size, text.size) - 1, MAX_WORD)
        yield Piece(text, begin, end, base)
        begin = end


def _survey(piece: Piece) -> tuple[int, int, int, int, int]:
    content, counts = piece.read(), None
    if is_small(piece.length):
        counts = _survey_small(content[: piece.length].tobytes())
    rows, colons, later_colons, largest, bare_return = counts or parsing.survey(content, piece.length)
    return rows, colons, later_colons, largest, bare_return + piece.shift if bare_return >= 0 else -1


def _parse(
    piece: Piece, rows: list[int], values: list[int], sheet: Sheet, rules: ParserSettings
) -> ParseResult | Fault:
    content, parsed = piece.read(), None
    if is_small(piece.length):
        text = content[: piece.length].tobytes()
        parsed = _parse_small(text, piece.shift, rows[0], values[0], sheet, rules)
    # every label and every value may be hard
    hard = np.empty((0 if parsed else rows[1] - rows[0] + values[1] - values[0], 3), dtype=np.int64)
    parsed = parsed or parsing.parse_rows(content, piece.length, piece.shift, rows[0], values[0], sheet, rules, hard)
    code, position, row, at, n_hard, largest = parsed
    for first, last, place in hard[:n_hard].tolist():
        value = float(content[first - piece.shift : last - piece.shift].tobytes())
        if np.isinf(value):
            return Fault(parsing.BAD_LABEL if place < 0 else parsing.BAD_VALUE, first)
        if place < 0:
            sheet.y[-1 - place] = value
        elif abs(value) < rules.too_large:
            sheet.values[place] = value
        else:
            return Fault(parsing.LARGE_VALUE, first)
    if code != parsing.DONE:
        return Fault(code, position)
    return ParseResult(at, largest) if row == rows[1] else Fault(parsing.NO_ROOM, piece.shift)


def _close_gaps(sheet: Sheet, row_starts: list[int], value_starts: list[int], stops: list[int]) -> int:
    """Close the gaps between the values of pieces: a colon inside a query id was counted as a value."""
    used = stops[0]
    for k in range(1, len(stops)):
        begin, stop = value_starts[k], stops[k]
        gap = begin - used
        if gap:
            sheet.values[used : stop - gap] = sheet.values[begin:stop]
            sheet.indices[used : stop - gap] = sheet.indices[begin:stop]
            sheet.indptr[row_starts[k] + 1 : row_starts[k + 1] + 1] -= gap
        used = stop - gap
    return used
