# mypy: disable-error-code="no-untyped-call"
"""Checks of index arrays from files and users, before kernels follow them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, is_small, jit, jit_when_large

ASCENDING = 0
IN_BOUNDS = 1
BAD_POINTERS = 2
BAD_COLUMN = 3


class ProblemIndex(NamedTuple):
    """The index arrays of `Queries` and `RankingData`, with their names there."""

    codes: NDArray[np.int64]
    query_order: NDArray[np.int64]
    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    scored_stops: NDArray[np.int64]
    grade_starts: NDArray[np.int64]
    grade_stops: NDArray[np.int64]
    query_grades: NDArray[np.int64]


CODES, QUERY_ORDER, STARTS, ORDER, SCORED_STOPS, GRADE_STARTS, GRADE_STOPS, QUERY_GRADES = range(8)
SOUND = -1


def csr_structure(indptr: NDArray[Any], indices: NDArray[Any], n_columns: int) -> tuple[int, int]:
    """
    Check the structure of a CSR matrix.

    indptr (n_rows + 1,), indices: signed integers.
    Returns: `ASCENDING` (strictly ascending columns in each row), `IN_BOUNDS` (valid, not ascending), `BAD_POINTERS`
        or `BAD_COLUMN`, and the row of the fault.
    """
    # as unsigned integers, negative columns are too large
    columns = indices.view(f"u{indices.itemsize}")
    kind, row = _csr_structure(np.ascontiguousarray(indptr), np.ascontiguousarray(columns), np.uint64(n_columns))
    return int(kind), int(row)


def all_finite(values: NDArray[Any]) -> bool:
    """Return whether all float32 or float64 values are finite."""
    if is_small(values.size):
        return bool(np.isfinite(values).all())
    flat = values.ravel(order="K")
    bits = flat.view(f"u{flat.itemsize}")
    return bool(_none_reaches(bits, bits.dtype.type(0x7F800000 if flat.itemsize == 4 else 0x7FF0000000000000)))


def index_fault(index: ProblemIndex, y: NDArray[np.float64]) -> str | None:
    """Check that an index is the one that `Queries.of` and `RankingData.of` would build from the scores."""
    i = int(_index_fault(index, y))
    return None if i == SOUND else ProblemIndex._fields[i]


@jit
def _csr_structure(indptr, columns, n_columns):  # type: ignore[no-untyped-def]
    item, size, n = np.uint64(1), np.uint64(len(columns)), len(indptr) - 1
    if indptr[0] != 0:
        return BAD_POINTERS, 0
    falls = np.uint64(0)
    for i in range(n):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if end < begin or end > size:
            return BAD_POINTERS, i
        # if columns ascend, only the last can be out of bounds; counting in the same integer width vectorises
        result = columns.dtype.type(0)
        for k in range(begin + item, end):
            result += columns.dtype.type(columns[k] <= columns[k - item])
        falls += np.uint64(result)
        if begin < end and columns[end - item] >= n_columns:
            return BAD_COLUMN, i
    if not falls:
        return ASCENDING, 0
    for i in range(n):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if columns[k] >= n_columns:
                return BAD_COLUMN, i
    return IN_BOUNDS, 0


@jit
def _none_reaches(bits, exponent):  # type: ignore[no-untyped-def]
    block = 1 << 14
    for begin in range(0, len(bits), block):
        result = bits.dtype.type(0)
        for x in bits[begin : begin + block]:
            result += bits.dtype.type((x & exponent) == exponent)
        if result:
            return False
    return True


@jit_when_large
def _index_fault(index, y):  # type: ignore[no-untyped-def]
    codes, starts, n, n_queries = index.codes, index.starts, len(y), len(index.starts) - 1
    # queries are numbered as they appear
    seen = 0
    for code in codes:
        if code < 0 or code > seen:
            return CODES
        seen += code == seen
    if seen != n_queries:
        return CODES
    if starts[0] != 0 or starts[n_queries] != n:
        return STARTS
    grade = 0
    for q in range(n_queries):
        begin, stop, end = starts[q], index.scored_stops[q], starts[q + 1]
        if not begin <= end <= n:
            return STARTS
        if not begin <= stop <= end:
            return SCORED_STOPS
        if index.query_grades[q] != grade:
            return QUERY_GRADES
        # both orders contain rows of this query only, in ascending order, so that no row occurs twice
        for k in range(begin, end):
            row, by_score = index.query_order[k], index.order[k]
            if row < 0 or row >= n or codes[row] != q or (k > begin and row <= index.query_order[k - 1]):
                return QUERY_ORDER
            if by_score < 0 or by_score >= n or codes[by_score] != q:
                return ORDER
            score, is_scored = y[by_score], k < stop
            if (score == score) != is_scored:
                return SCORED_STOPS
            is_first = k in (begin, stop)
            last = by_score if is_first else index.order[k - 1]
            if score < y[last] or (not is_first and not score > y[last] and by_score <= last):
                return ORDER
            if is_scored and (is_first or score > y[last]):
                if grade == len(index.grade_starts) or index.grade_starts[grade] != k:
                    return GRADE_STARTS
                if not is_first and index.grade_stops[grade - 1] != k:
                    return GRADE_STOPS
                grade += 1
        if stop > begin and index.grade_stops[grade - 1] != stop:
            return GRADE_STOPS
    if index.query_grades[n_queries] != grade:
        return QUERY_GRADES
    return SOUND if grade == len(index.grade_starts) else GRADE_STARTS


_ONE, _HALF = np.uint64(1), np.uint64(32)
_ODD, _MORE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@inline
def _mixed(bits, column):  # type: ignore[no-untyped-def]
    """Return a hash of a number in a column; 0 for zero, so that zeros may be stored or not."""
    # small integers have zeros in the lower half
    h = (bits ^ (bits >> _HALF)) * (_ODD + (np.uint64(column) << _ONE) * _MORE)
    return h ^ (h >> _HALF)


@inline
def _place(h, table):  # type: ignore[no-untyped-def]
    """Return where the search for a hash begins, in a table whose size is a power of two."""
    h = (h ^ (h >> _HALF)) * _MORE
    return (h ^ (h >> _HALF)) & (np.uint64(len(table)) - _ONE)


@jit
def hash_dense(bits, sign, out, first, last):  # type: ignore[no-untyped-def]
    """Write a hash of rows first to last − 1; `bits` are their numbers as unsigned integers, `sign` those of −0."""
    d = np.uint64(bits.shape[1])
    for i in range(np.uint64(first), np.uint64(last)):
        h = np.uint64(0)
        for j in range(d):
            b = bits[i, j]
            h += _mixed(np.uint64(b) if b != sign else np.uint64(0), j)
        out[i] = h


@jit
def hash_csr(bits, sign, indices, indptr, out, first, last):  # type: ignore[no-untyped-def]
    """Write the same hash for rows of a CSR matrix."""
    for i in range(np.uint64(first), np.uint64(last)):
        h = np.uint64(0)
        for k in range(indptr[i], indptr[i + _ONE]):
            b = bits[k]
            h += _mixed(np.uint64(b) if b != sign else np.uint64(0), indices[k])
        out[i] = h


@jit
def find_dense(hashes, x, table, out):  # type: ignore[no-untyped-def]
    """Write to `out` the first row that equals each row; return the number of rows that equal an earlier one."""
    n, d, size, repeated = np.uint64(len(hashes)), np.uint64(x.shape[1]), np.uint64(len(table)), 0
    for i in range(n):
        index = _place(hashes[i], table)
        while True:
            j = table[index]
            if j < 0:
                table[index], out[i] = i, i
                break
            if hashes[j] == hashes[i]:
                same = True
                for k in range(d):
                    if x[i, k] != x[j, k]:
                        same = False
                        break
                if same:
                    out[i] = j
                    repeated += 1
                    break
            index = (index + _ONE) & (size - _ONE)
    return repeated


@jit
def find_csr(hashes, x, indices, indptr, table, out):  # type: ignore[no-untyped-def]
    """Do the same for rows of a CSR matrix with ascending columns; zeros may be stored."""
    n, size, repeated = np.uint64(len(hashes)), np.uint64(len(table)), 0
    for i in range(n):
        index = _place(hashes[i], table)
        while True:
            j = table[index]
            if j < 0:
                table[index], out[i] = i, i
                break
            if hashes[j] == hashes[i] and _same_csr(x, indices, indptr, i, np.uint64(j)):
                out[i] = j
                repeated += 1
                break
            index = (index + _ONE) & (size - _ONE)
    return repeated


@jit
def _same_csr(x, indices, indptr, i, j):  # type: ignore[no-untyped-def]
    a, last_a, b, last_b = indptr[i], indptr[i + _ONE], indptr[j], indptr[j + _ONE]
    while True:
        while a < last_a and x[a] == 0.0:
            a += _ONE
        while b < last_b and x[b] == 0.0:
            b += _ONE
        if a == last_a or b == last_b:
            return a == last_a and b == last_b
        if indices[a] != indices[b] or x[a] != x[b]:
            return False
        a += _ONE
        b += _ONE
