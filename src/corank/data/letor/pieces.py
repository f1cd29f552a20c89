"""Texts cut at newlines into pieces that threads read and parse side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.core.parsing import letor as kernels
from corank.core.parsing.bytes import PADDING
from corank.core.threads import spread
from corank.data.formats.text import Text

PIECE = 1 << 20
"""Bytes of a piece, about: enough to make a thread worth its while, few enough to stay in a processor's cache."""

HARD_NUMBERS = 4096


class Fault(Exception):
    """
    A place in the text that the parser could not read.

    code: what `parse_rows` returned.
    """

    def __init__(self, code: int, position: int) -> None:
        super().__init__(code, position)
        self.code = code
        self.position = position


@dataclass(frozen=True)
class Outcome:
    """
    What parsing a piece, or all pieces, came to.

    n_values: values of the sheet used up to here.
    largest_id: largest feature id.
    """

    n_values: int
    largest_id: int


@dataclass(frozen=True, eq=False)
class Piece:
    """
    Whole lines of a text.

    begin, end: offsets in the text.
    base: position at which the text begins.
    """

    text: Text
    begin: int
    end: int
    base: int

    @property
    def shift(self) -> int:
        """What to add to an offset in the bytes of the piece to get a position."""
        return self.base + self.begin

    @property
    def length(self) -> int:
        """Number of bytes; the last line has a newline even where the text does not."""
        return self.end - self.begin + (self.end == self.text.size)

    def read(self) -> NDArray[np.uint8]:
        """
        Read the lines from their file.

        Returns: `length` bytes, and `PADDING` more.
        """
        return self.text.read(self.begin, self.end, PADDING + 1)


@dataclass(frozen=True, eq=False)
class Pieces:
    """
    Texts, end to end, as pieces of whole lines; a position counts bytes and ends of texts from the first.

    bases: position at which each text begins.
    rows, colons, later_colons: of each piece, its rows, its colons outside comments, and those of them that are not
        the first of their row.
    largest_id: largest number in front of a row's last colon.
    bare_return: position of the first carriage return inside a comment, -1 where there is none.
    n_jobs: number of threads.
    """

    texts: list[Text]
    bases: NDArray[np.int64]
    rows: NDArray[np.int64]
    colons: NDArray[np.int64]
    later_colons: NDArray[np.int64]
    largest_id: int
    bare_return: int
    n_jobs: int | None
    _pieces: list[Piece]

    @classmethod
    def of(cls, texts: list[Text], n_jobs: int | None = None) -> Pieces:
        """
        Cut texts into pieces and count what they hold.

        n_jobs: number of threads.
        Returns: the pieces, surveyed.
        """
        return cls.surveyed(texts, list(cut_texts(texts, PIECE)), n_jobs)

    @classmethod
    def surveyed(cls, texts: list[Text], pieces: list[Piece], n_jobs: int | None = None) -> Pieces:
        """
        Count what some of the pieces of texts hold.

        texts: all texts, in which positions count.
        pieces: at least one, in their order.
        n_jobs: number of threads.
        """
        surveys = spread(lambda k, _: _survey(pieces[k]), _each(pieces), n_jobs)
        rows, colons, later_colons, largest, returns = np.array(surveys, dtype=np.int64).T
        first = returns[returns >= 0]
        bare_return = int(first[0]) if len(first) else -1
        largest_id = int(largest.max())
        return cls(texts, _bases(texts), rows, colons, later_colons, largest_id, bare_return, n_jobs, pieces)

    def first_row(self) -> bytes:
        """
        Read the piece in which the first row stands.

        Returns: its lines; blank lines and comments may come before the row.
        """
        return self._pieces[int(np.flatnonzero(self.rows)[0])].read().tobytes()

    def parse(self, sheet: kernels.Sheet, rules: kernels.Rules, value_counts: NDArray[np.int64]) -> Outcome:
        """
        Parse every piece into the sheet, and close the gaps where a piece held fewer values than counted.

        sheet: room for all rows and values.
        rules: how to read.
        value_counts: values each piece holds, at most.
        Returns: values used, and the largest feature id.
        """
        row_starts = np.concatenate([[0], np.cumsum(self.rows)]).tolist()
        value_starts = np.concatenate([[0], np.cumsum(value_counts)]).tolist()
        outcomes = spread(
            lambda k, _: _parse(self._pieces[k], row_starts[k : k + 2], value_starts[k], sheet, rules),
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
            return Outcome(value_starts[-1], largest_id)
        used = _close_gaps(sheet, row_starts, value_starts, [outcome.n_values for outcome in good])
        return Outcome(used, largest_id)

    def match(self, pattern: re.Pattern[bytes], positions: NDArray[np.int64]) -> Iterator[bytes]:
        """
        Read what stands at a position of each row.

        pattern: its last group is read.
        positions: one a row, inside the row's line; -1 for nothing.
        Yields: the bytes that matched, of each row; nothing for -1.
        """
        row_starts = np.concatenate([[0], np.cumsum(self.rows)]).tolist()
        for piece, first, last in zip(self._pieces, row_starts[:-1], row_starts[1:], strict=True):
            places = positions[first:last]
            content = piece.read().tobytes() if (places >= 0).any() else b""
            for place in places.tolist():
                found = pattern.match(content, place - piece.shift) if place >= 0 else None
                yield b"" if found is None else found[pattern.groups]

    def locate(self, position: int) -> tuple[Text, int]:
        """
        Say in which text a position lies.

        Returns: the text, and the offset in it.
        """
        k = int(np.searchsorted(self.bases, position, side="right")) - 1
        return self.texts[k], position - int(self.bases[k])


def _each(pieces: list[Piece]) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(len(pieces))]


def _bases(texts: list[Text]) -> NDArray[np.int64]:
    # the end of a text is a position of its own
    return np.cumsum([0, *(text.size + 1 for text in texts[:-1])], dtype=np.int64)


def cut_texts(texts: list[Text], size: int) -> Iterator[Piece]:
    """
    Cut texts, end to end, at newlines.

    size: bytes a piece should have, about.
    Yields: whole lines of one text.
    """
    for text, base in zip(texts, _bases(texts).tolist(), strict=True):
        yield from cut_lines(text, base, size)


def cut_lines(text: Text, base: int, size: int) -> Iterator[Piece]:
    """
    Cut a text at newlines.

    base: position at which the text begins.
    size: bytes a piece should have, about.
    Yields: whole lines.
    """
    begin = 0
    while begin < text.size:
        end = text.line_end(min(begin + size, text.size) - 1)
        yield Piece(text, begin, end, base)
        begin = end


def _survey(piece: Piece) -> tuple[int, int, int, int, int]:
    rows, colons, later_colons, largest, bare_return = kernels.survey(piece.read(), 0, piece.length)
    return rows, colons, later_colons, largest, bare_return + piece.shift if bare_return >= 0 else -1


def _parse(piece: Piece, rows: list[int], at: int, sheet: kernels.Sheet, rules: kernels.Rules) -> Outcome | Fault:
    hard = np.empty((HARD_NUMBERS, 3), dtype=np.int64)
    content, begin, largest = piece.read(), 0, 0
    row, last_row = rows
    while True:
        code, position, row, at, n_hard, top = kernels.parse_rows(
            content, begin, piece.length, piece.shift, row, at, sheet, rules, hard
        )
        for first, last, place in hard[:n_hard].tolist():
            value = float(content[first - piece.shift : last - piece.shift].tobytes())
            if np.isinf(value):
                return Fault(kernels.BAD_LABEL if place < 0 else kernels.BAD_VALUE, first)
            if place < 0:
                sheet.y[-1 - place] = value
            elif abs(value) < rules.too_large:
                sheet.values[place] = value
            else:
                return Fault(kernels.LARGE_VALUE, first)
        largest = max(largest, top)
        if code == kernels.DONE:
            return Outcome(at, largest) if row == last_row else Fault(kernels.NO_ROOM, piece.shift)
        if code != kernels.PAUSED:
            return Fault(code, position)
        if position - piece.shift == begin:  # one line alone fills the list
            hard = np.empty((2 * len(hard), 3), dtype=np.int64)
        begin = position - piece.shift


def _close_gaps(sheet: kernels.Sheet, row_starts: list[int], value_starts: list[int], stops: list[int]) -> int:
    """Move each piece's values to the end of those before it; a colon inside a query id was counted as a value."""
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
