"""
Kernels that parse text: numbers, LETOR rows (``label qid:Q id:value ... # comment``) and blank-separated columns.

A number ±m·10^q with m ≤ 2^53 and |q| ≤ 22 needs one multiplication or division of two doubles, which rounds correctly
[Clinger, PLDI 1990]; `divide` reads longer ones. All others are *hard*: the caller parses them again by `float`.
`survey` counts rows and values of whole lines; `parse_rows` writes labels, query ids and values to their final
positions. The last byte of a text is a newline. Positions are byte offsets. For a fault, a kernel returns a code and a
position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import intrinsic, jit

# codes of parse_rows
DONE = 0
BAD_LABEL, BAD_QID, TEXT_QID, BAD_ID, ID_ORDER, ID_RANGE, BAD_VALUE, LARGE_VALUE, NO_ROOM, BARE_RETURN = range(1, 11)

# representation of query ids
NO_QID, INTEGER_QID, QID_POSITIONS = 0, 1, 2

# codes of split_lines, in addition to DONE
FEW_COLUMNS, MANY_COLUMNS, BAD_NUMBER = 1, 2, 3

GOOD, BAD, HARD = 0, 1, 2

MAX_DIGITS = 18  # 10^18 < 2^63
EXACT_MANTISSA, EXACT_POWER = 1 << 53, 22
EXACT_POWERS = np.array([float(10**k) for k in range(EXACT_POWER + 1)])
MAX_EXPONENT = 1 << 30
SPLITTER = 2.0**27 + 1.0
CERTAIN = 0.4999
LONGEST_ID, LONGEST_QID = 10, 18

TAB, NEWLINE, RETURN, SPACE, HASH, COLON, ZERO = (ord(c) for c in "\t\n\r #:0")
PLUS, MINUS, POINT, EXPONENT = (ord(c) for c in "+-.e")
LOWER = 32  # turns E into e
QID = tuple(ord(c) for c in "qid:")
NULL = tuple(ord(c) for c in "NULL")
ENDS = np.uint64(sum(1 << ord(c) for c in "\t\n\r #"))
ONE = np.uint64(1)


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
    differs from that of the previous row. `numbers`: the numeric column, NaN if a number is hard; `number_spans`: its
    begin and end.
    """

    spans: NDArray[np.int64]
    fresh: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    number_spans: NDArray[np.int64]


@intrinsic
def address(typingctx, text):  # type: ignore[no-untyped-def]
    """
    Return the memory address of a C-contiguous array.

    Reading by address keeps arrays, with their reference counts and fields, out of inner loops; the calling kernel must
    have the array as an argument.
    """

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(struct.data, ir.IntType(64))

    return types.int64(text), codegen


@intrinsic
def byte(typingctx, at):  # type: ignore[no-untyped-def]
    """Return the byte at an address as a signed integer."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), codegen


@jit
def is_blank(c):  # type: ignore[no-untyped-def]
    """Return whether a byte is a separator: space, tab, or the carriage return before a newline."""
    return c in (SPACE, TAB, RETURN)


@jit
def is_end(c):  # type: ignore[no-untyped-def]
    """Return whether a token ends before this byte."""
    return c <= HASH and (ENDS >> np.uint64(c)) & ONE != 0


@jit
def begins_with(i, word):  # type: ignore[no-untyped-def]
    """Return whether a word of four bytes begins at `i`."""
    return byte(i) == word[0] and byte(i + 1) == word[1] and byte(i + 2) == word[2] and byte(i + 3) == word[3]


@jit
def read_whole(i, max_digits):  # type: ignore[no-untyped-def]
    """Return the digits at `i` as a number and the position after them; position `i` if there are too many, or none."""
    begin, value = i, 0
    d = byte(i) - ZERO
    while 0 <= d <= 9:
        value = value * 10 + d
        i += 1
        d = byte(i) - ZERO
    return value, i if i - begin <= max_digits else begin


@jit
def divide(m, p):  # type: ignore[no-untyped-def]
    """
    Return m / p to the nearest double, for 2^53 < m < 10^18 and a power of ten p ≤ 10^22; HARD if it may be a tie.

    The quotient of the leading 53 bits of m is corrected by its exact remainder [Dekker, Numerische Mathematik 1971].
    """
    high = np.float64(m)
    low = np.float64(m - np.int64(high))
    first = high / p
    a, b = SPLITTER * first, SPLITTER * p
    a, b = a - (a - first), b - (b - p)
    product = first * p
    error = ((a * b - product) + a * (p - b) + (first - a) * b) + (first - a) * (p - b)
    correction = (((high - product) - error) + low) / p
    value = first + correction
    rest = abs(correction - (value - first))
    return value, GOOD if rest < CERTAIN * (value - np.nextafter(value, 0.0)) else HARD


@jit
def read_number(begin):  # type: ignore[no-untyped-def]
    """
    Read the decimal number that starts at `begin`: sign, digits, point, digits, exponent, as Python's `float`.

    Returns the value, the position after the number, and GOOD, BAD (no number here) or HARD (well formed).
    """
    i = begin
    sign = byte(i)
    if sign in (MINUS, PLUS):
        i += 1
    first, m, q = i, 0, 0
    d = byte(i) - ZERO
    while 0 <= d <= 9:
        m = m * 10 + d
        i += 1
        d = byte(i) - ZERO
    n = i - first
    if d == POINT - ZERO:
        i += 1
        first = i
        d = byte(i) - ZERO
        while 0 <= d <= 9:
            m = m * 10 + d
            i += 1
            d = byte(i) - ZERO
        q = first - i
        n -= q
    if n == 0:
        return 0.0, begin, BAD
    if byte(i) | LOWER == EXPONENT:
        i += 1
        turn = byte(i)
        if turn in (MINUS, PLUS):
            i += 1
        d = byte(i) - ZERO
        if d < 0 or d > 9:
            return 0.0, begin, BAD
        exponent = 0
        while 0 <= d <= 9:
            exponent = min(10 * exponent + d, MAX_EXPONENT)
            i += 1
            d = byte(i) - ZERO
        q += -exponent if turn == MINUS else exponent
    value, state = 0.0, HARD
    if m <= EXACT_MANTISSA and n <= MAX_DIGITS and -EXACT_POWER <= q <= EXACT_POWER:
        value, state = np.float64(m), GOOD
        value = value / EXACT_POWERS[np.uint64(-q)] if q < 0 else value * EXACT_POWERS[np.uint64(q)]
    elif -EXACT_POWER <= q < 0:
        j = begin + (sign in (MINUS, PLUS))
        while byte(j) in (ZERO, POINT):  # zeros before the first digit
            n -= byte(j) == ZERO
            j += 1
        if n <= MAX_DIGITS:
            value, state = divide(m, EXACT_POWERS[np.uint64(-q)])
    return (-value if sign == MINUS else value), i, state


@jit
def skip_comment(i):  # type: ignore[no-untyped-def]
    """Return the position after the next newline, and that of a carriage return alone before it, or 0."""
    bare = np.int64(0)
    c = byte(i)
    while c != NEWLINE:
        i += 1
        before, c = c, byte(i)
        if before == RETURN and c not in (NEWLINE, RETURN):
            bare = i - 1
    return i + 1, bare


@jit
def survey(text, end):  # type: ignore[no-untyped-def]
    """
    Count, in the lines before byte `end`, rows, colons outside comments, and those that are not the first of their row.

    A well-formed row has one value per colon, except for that of its query id. Also returns the largest id before a
    row's last colon, and the position of a carriage return alone in a comment, which would hide the rows after it, or
    -1.
    """
    rows, colons, later_colons, largest, bare_return = 0, 0, 0, 0, np.int64(-1)
    origin = address(text)
    i, stop = origin, origin + end
    while i < stop:
        c = byte(i)
        if is_blank(c) or c == NEWLINE:
            i += 1
            continue
        rows += c != HASH
        first, last, result = i, i, 0
        while c not in (NEWLINE, HASH):
            if c == COLON:
                result, last = result + 1, i
            i += 1
            c = byte(i)
        while last > first and 0 <= byte(last - 1) - ZERO <= 9:
            last -= 1
        feature = read_whole(last, LONGEST_ID)[0] if result else 0
        colons += result
        later_colons += max(result - 1, 0)
        largest = max(largest, feature)
        i, bare = skip_comment(i)
        if bare and bare_return < 0:
            bare_return = bare - origin
    return rows, colons, later_colons, largest, bare_return


@jit
def parse_rows(text, end, shift, row, at, sheet, rules, hard):  # type: ignore[no-untyped-def]
    """
    Parse the lines before byte `end` into rows `row`, `row` + 1, ... of the sheet, CSR values from `at` on.

    `shift` is added to stored and returned positions. A hard number is listed in `hard` as (begin, end, index), the
    index of a label as −1 − row. Returns (code, position, row, at, hard numbers, largest id).
    """
    y, qid, comments, values, indices, indptr = sheet
    width, last_id, qids, too_large = rules
    origin = address(text)
    shift -= origin
    i, stop_at = origin, origin + end
    n_hard, largest = 0, 0
    while i < stop_at:
        c = byte(i)
        if is_blank(c) or c == NEWLINE:
            i += 1
            continue
        if c == HASH:
            i, _ = skip_comment(i)
            continue
        if row == len(y):
            return NO_ROOM, i + shift, row, at, n_hard, largest
        start = i
        label, i, state = read_number(i)
        if state == BAD or not is_end(byte(i)):
            return BAD_LABEL, start + shift, row, at, n_hard, largest
        y[row] = label
        if state == HARD:
            hard[n_hard] = start + shift, i + shift, -1 - row
            n_hard += 1
        while is_blank(byte(i)):
            i += 1
        if qids != NO_QID:
            if not begins_with(i, QID) or is_end(byte(i + 4)):
                return BAD_QID, i + shift, row, at, n_hard, largest
            i += 4
            if qids == INTEGER_QID:
                is_negative = byte(i) == MINUS
                value_of, stop = read_whole(i + is_negative, LONGEST_QID)
                if stop == i + is_negative or not is_end(byte(stop)):
                    return TEXT_QID, i + shift, row, at, n_hard, largest
                qid[row] = -value_of if is_negative else value_of
                i = stop
            else:
                qid[row] = i + shift
                while not is_end(byte(i)):
                    if byte(i) == 0:
                        return BAD_QID, i + shift, row, at, n_hard, largest
                    i += 1
        last = 0
        while True:
            c = byte(i)
            while is_blank(c):
                i += 1
                c = byte(i)
            if c in (NEWLINE, HASH):
                break
            feature, stop = read_whole(i, LONGEST_ID)
            if stop == i or byte(stop) != COLON:
                return BAD_ID, i + shift, row, at, n_hard, largest
            if feature <= last:
                return ID_ORDER, i + shift, row, at, n_hard, largest
            if feature > last_id:
                return ID_RANGE, i + shift, row, at, n_hard, largest
            last = feature
            start = stop + 1
            value, i, state = read_number(start)
            if state == BAD and begins_with(start, NULL):  # a missing value, as in LETOR 3.0
                value, i, state = np.nan, start + 4, GOOD
            if state == BAD or not is_end(byte(i)):
                return BAD_VALUE, start + shift, row, at, n_hard, largest
            if abs(value) >= too_large:
                return LARGE_VALUE, start + shift, row, at, n_hard, largest
            place = at
            if width >= 0:
                place = row * width + feature - 1
            elif at == len(indices):
                return NO_ROOM, start + shift, row, at, n_hard, largest
            else:
                indices[np.uint64(at)] = feature - 1
                at += 1
            values[np.uint64(place)] = value
            if state == HARD:
                hard[n_hard] = start + shift, i + shift, place
                n_hard += 1
        largest = max(largest, last)
        comments[row] = i + 1 + shift if c == HASH else -1
        i, _ = skip_comment(i)
        row += 1
        if width < 0:
            indptr[row] = at
    return DONE, i + shift, row, at, n_hard, largest


@jit
def differ(a, a_end, b, b_end):  # type: ignore[no-untyped-def]
    """Return whether the bytes a..a_end-1 and b..b_end-1 differ."""
    if a_end - a != b_end - b:
        return True
    k = 0
    while k < a_end - a and byte(a + k) == byte(b + k):
        k += 1
    return k < a_end - a


@jit
def split_lines(text, end, keep, number, fields):  # type: ignore[no-untyped-def]
    """
    Split the lines before byte `end` into rows of the fields.

    Column c is kept as column ``keep[c]`` of the spans, unless that is negative; column `number` is parsed as a
    number. Returns (code, position, number of rows). Blank lines are skipped; the fields must have as many rows as
    there are lines.
    """
    spans, fresh, numbers, number_spans = fields
    origin = address(text)
    i, stop, row = origin, origin + end, 0
    last, last_end = origin, origin
    while i < stop:
        c = byte(i)
        if is_blank(c) or c == NEWLINE:
            i += 1
            continue
        for column in range(len(keep)):
            c = byte(i)
            while is_blank(c):
                i += 1
                c = byte(i)
            if c == NEWLINE:
                return FEW_COLUMNS, i - origin, row
            first = i
            while not is_blank(c) and c != NEWLINE:
                i += 1
                c = byte(i)
            if column == number:
                value, behind, state = read_number(first)
                if state == BAD or behind != i:
                    return BAD_NUMBER, first - origin, row
                numbers[row] = np.nan if state == HARD else value
                number_spans[row, 0], number_spans[row, 1] = first - origin, i - origin
            target = keep[column]
            if target >= 0:
                spans[row, target, 0], spans[row, target, 1] = first - origin, i - origin
            if target == 0:
                fresh[row] = differ(first, i, last, last_end)
                last, last_end = first, i
        while is_blank(byte(i)):
            i += 1
        if byte(i) != NEWLINE:
            return MANY_COLUMNS, i - origin, row
        i += 1
        row += 1
    return DONE, i - origin, row


if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core import types
