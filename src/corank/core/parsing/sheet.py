"""Outputs, settings and codes of the parsers; numba is not needed to import them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PADDING = 16
"""Readable bytes that a kernel needs after its range, because it loads whole words."""

# codes returned by parse_rows; the last is for the result of survey
DONE, PAUSED = 0, 1
BAD_LABEL, BAD_QID, TEXT_QID, BAD_ID, ID_ORDER, ID_RANGE, BAD_VALUE, LARGE_VALUE, NO_ROOM, BARE_RETURN = range(2, 12)

# representation of query ids
NO_QID, INTEGER_QID, QID_POSITIONS = 0, 1, 2

# codes returned by split_lines, in addition to DONE
FEW_COLUMNS, MANY_COLUMNS, BAD_NUMBER = 1, 2, 3


class Sheet(NamedTuple):
    """
    Output arrays of `parse_rows`.

    `values` is the flat dense array (row r, feature f at r·width + f − 1) or the values of a CSR matrix; `indices` and
    `indptr` are empty in the dense case. `comments` contains the position after each row's ``#``, −1 for none.
    """

    y: NDArray[np.float64]
    qid: NDArray[np.int64]
    comments: NDArray[np.int64]
    values: NDArray[np.floating]
    indices: NDArray[np.integer]
    indptr: NDArray[np.integer]


class ParserSettings(NamedTuple):
    """Parser settings: columns of a dense result (−1 = CSR), largest id, representation of qids, bound on |value|."""

    width: int
    last_id: int
    qids: int
    too_large: float


class Fields(NamedTuple):
    """
    Output arrays of `split_lines`.

    `spans` (rows, kept columns, 2): begin and end of each kept column. `fresh`: whether a row's first kept column
    differs from that of the previous row. `numbers`: the numeric column, NaN if a number needs exact arithmetic;
    `number_spans`: its begin and end.
    """

    spans: NDArray[np.int64]
    fresh: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    number_spans: NDArray[np.int64]
