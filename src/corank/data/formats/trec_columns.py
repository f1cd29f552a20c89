"""Lines of columns parted by blanks, such as those of TREC files: one column of numbers, others of strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.parsing import columns
from corank.core.parsing.letor import NEWLINE
from corank.data.formats.text import BARE_RETURN, Text
from corank.data.letor.pieces import Piece, cut_lines
from corank.errors import InputError

PIECE = 1 << 24
EVERY_ROW, FIRST_ROW = slice(None), slice(1)


def read_columns(text: Text, names: tuple[str, ...], kept: dict[str, slice], number: str) -> list[NDArray[Any]]:
    """
    Read lines of columns, piece by piece.

    names: what the columns are called in messages.
    kept: columns that are read as strings, and of which rows of each piece.
    number: column of finite numbers.
    Returns: the numbers, and then the strings of each column that is kept.
    """
    parts = [_split(piece, names, kept, number) for piece in cut_lines(text, 0, PIECE)]
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if len(joined[0]) == 0:
        raise InputError(f"{text} has no rows; expected lines of '{' '.join(names)}'.")
    return joined


def _split(piece: Piece, names: tuple[str, ...], kept: dict[str, slice], number: str) -> list[NDArray[Any]]:
    content = piece.read()
    most = int(np.count_nonzero(content == NEWLINE))
    fields = columns.Fields(
        np.empty((most, len(kept), 2), dtype=np.int64),
        np.empty(most, dtype=np.bool_),
        np.empty(most),
        np.empty((most, 2), dtype=np.int64),
    )
    keep = np.array([list(kept).index(name) if name in kept else -1 for name in names])
    code, position, row = columns.split_lines(content, piece.length, keep, names.index(number), fields)
    if code != columns.DONE:
        raise _fault(piece.text, code, piece.begin + position, names, number)
    numbers = fields.numbers[:row]
    for k in np.flatnonzero(np.isnan(numbers)).tolist():
        begin, end = fields.number_spans[k].tolist()
        numbers[k] = float(content[begin:end].tobytes())
        if np.isinf(numbers[k]):
            raise _fault(piece.text, columns.BAD_NUMBER, piece.begin + begin, names, number)
    spans, fresh = fields.spans[:row], fields.fresh[:row]
    texts = [
        _decode(content, spans[rows, k], None if k else fresh)  # rows of a query share its name
        for k, rows in enumerate(kept.values())
    ]
    return [numbers, *texts]


def _decode(
    content: NDArray[np.uint8], spans: NDArray[np.int64], fresh: NDArray[np.bool_] | None
) -> NDArray[np.object_]:
    """Strings of spans; one that is not fresh is the string before it."""
    wanted = spans if fresh is None else spans[fresh]
    lines = np.empty(int((wanted[:, 1] - wanted[:, 0] + 1).sum()), dtype=np.uint8)
    columns.gather_lines(content, wanted, lines)
    found = np.empty(len(wanted), dtype=object)
    found[:] = lines.tobytes().decode(errors="surrogateescape").split("\n")[:-1]
    return found if fresh is None else np.asarray(found[np.cumsum(fresh) - 1])


def _fault(text: Text, code: int, position: int, names: tuple[str, ...], number: str) -> InputError:
    line, column = text.locate(position)
    if text.has_bare_return(position):
        problem = BARE_RETURN
    elif code == columns.BAD_NUMBER:
        found = text.word(position).decode(errors="replace")[:40]
        problem = f"expected a finite {number}, found {found!r}"
    else:
        few = "fewer" if code == columns.FEW_COLUMNS else "more"
        problem = f"expected {len(names)} columns ({' '.join(names)}), found {few}"
    return InputError(f"{text}, line {line}, column {column}: {problem}.")
