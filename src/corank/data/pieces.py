"""Mapped texts cut at newlines into pieces that threads parse side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.core import parse as kernels
from corank.core.bytes import PADDING
from corank.core.threads import n_threads, spread
from corank.data.compressed import Text

LEAST_PIECE = 1 << 20
PIECES_PER_THREAD = 4
HARD_NUMBERS = 4096
LARGEST_ID = 2**31 - 1


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

    bytes: holds the lines, and `PADDING` more bytes.
    begin, end: the lines are ``bytes[begin:end]``.
    shift: what to add to an offset in `bytes` to get a position.
    """

    bytes: NDArray[np.uint8]
    begin: int
    end: int
    shift: int


@dataclass(frozen=True, eq=False)
class Pieces:
    """
    Texts, end to end, as pieces of whole lines; a position counts bytes from the start of the first text.

    bases: position at which each text begins.
    text_of, rows, colons, later_colons: which text a piece belongs to, its rows, its colons outside comments, and those
        of them that are not the first of their row.
    largest_id: largest number in front of a row's last colon.
    n_jobs: number of threads.
    """

    texts: list[Text]
    bases: NDArray[np.int64]
    text_of: NDArray[np.int64]
    rows: NDArray[np.int64]
    colons: NDArray[np.int64]
    later_colons: NDArray[np.int64]
    largest_id: int
    n_jobs: int | None
    _pieces: list[Piece]

    @classmethod
    def of(cls, texts: list[Text], n_jobs: int | None = None) -> Pieces:
        """
        Cut texts into pieces and count what they hold.

        n_jobs: number of threads.
        Returns: the pieces, surveyed.
        """
        sizes = [len(text.mapped) for text in texts]
        bases = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        size = max(LEAST_PIECE, sum(sizes) // (PIECES_PER_THREAD * n_threads(n_jobs)) + 1)
        cut = [list(cut_lines(text, int(base), size)) for text, base in zip(texts, bases, strict=True)]
        pieces = [piece for part in cut for piece in part]
        text_of = np.repeat(np.arange(len(texts)), [len(part) for part in cut])
        surveys = spread(
            lambda k, _: kernels.survey(pieces[k].bytes, pieces[k].begin, pieces[k].end), _each(pieces), n_jobs
        )
        rows, colons, later_colons, largest = np.array(surveys, dtype=np.int64).T
        return cls(texts, bases, text_of, rows, colons, later_colons, int(largest.max()), n_jobs, pieces)

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
            lambda k, _: _parse(self._pieces[k], row_starts[k], value_starts[k], sheet, rules),
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

    def base(self, text: Text) -> int:
        """
        Say where a text begins.

        text: one of the texts.
        Returns: the position of its first byte.
        """
        return int(self.bases[self.texts.index(text)])

    def by_text(self, positions: NDArray[np.int64]) -> Iterator[tuple[Text, int, int]]:
        """
        Split rising positions by the text they lie in.

        positions: rising positions.
        Yields: ``positions[first:last]`` lie in `text`.
        """
        cuts = [*np.searchsorted(positions, self.bases).tolist(), len(positions)]
        yield from zip(self.texts, cuts[:-1], cuts[1:], strict=True)


def _each(pieces: list[Piece]) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(len(pieces))]


def cut_lines(text: Text, base: int, size: int) -> Iterator[Piece]:
    """
    Cut a text at newlines; the last lines are copied, so that the kernels' look-ahead stays inside memory.

    base: position at which the text begins.
    size: bytes a piece should have, about.
    Yields: whole lines; the last line ends with a newline even where the text does not.
    """
    mapped, length = text.mapped, len(text.mapped)
    tail = mapped.rfind(b"\n", 0, max(0, length - PADDING)) + 1
    begin = 0
    while begin < tail:
        end = mapped.find(b"\n", min(begin + size, tail) - 1, tail) + 1
        yield Piece(text.bytes, begin, end, base)
        begin = end
    last = np.frombuffer(mapped[tail:] + b"\n" * (PADDING + 1), dtype=np.uint8)
    yield Piece(last, 0, length - tail + 1, base + tail)


def _parse(piece: Piece, row: int, at: int, sheet: kernels.Sheet, rules: kernels.Rules) -> Outcome | Fault:
    hard = np.empty((HARD_NUMBERS, 3), dtype=np.int64)
    begin, largest = piece.begin, 0
    while True:
        code, position, row, at, n_hard, top = kernels.parse_rows(
            piece.bytes, begin, piece.end, piece.shift, row, at, sheet, rules, hard
        )
        for first, last, place in hard[:n_hard].tolist():
            value = float(piece.bytes[first - piece.shift : last - piece.shift].tobytes())
            if np.isinf(value) and place < 0:
                return Fault(kernels.BAD_LABEL, first)
            if place < 0:
                sheet.y[-1 - place] = value
            elif abs(value) < rules.too_large:
                sheet.values[place] = value
            else:
                return Fault(kernels.LARGE_VALUE, first)
        largest = max(largest, top)
        if code == kernels.DONE:
            return Outcome(at, largest)
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
