"""
Kernels that parse LETOR text: ``label qid:Q id:value id:value ... # comment``, one row per line.

`survey` scans a range of whole lines, eight bytes at a time, and counts rows and values; `parse_rows` then writes
labels, query ids and values to their final positions. Both need `PADDING` readable bytes after the range. Positions
are signed 64-bit byte offsets. For a fault, a kernel returns a code and a position.
"""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit
from corank.core.parsing.number import (
    BAD,
    GOOD,
    HARD,
    ONES,
    address,
    byte,
    count_digits,
    count_ones,
    leading_zeros,
    matches,
    read_digits,
    read_number,
    trailing_zeros,
    word,
)
from corank.core.parsing.small import (
    BAD_ID,
    BAD_LABEL,
    BAD_QID,
    BAD_VALUE,
    DONE,
    ID_ORDER,
    ID_RANGE,
    INTEGER_QID,
    LARGE_VALUE,
    NO_QID,
    NO_ROOM,
    PAUSED,
    TEXT_QID,
)

TAB, NEWLINE, RETURN, SPACE, HASH, COLON, MINUS = (ord(c) for c in "\t\n\r #:-")
NEWLINES, RETURNS, HASHES, COLONS = (ONES * np.uint64(ord(c)) for c in "\n\r#:")
QID = np.uint64(int.from_bytes(b"qid:", "little"))
# a missing value, as in LETOR 3.0
NULL = np.uint64(int.from_bytes(b"NULL", "little"))
FOUR_BYTES = np.uint64(0xFFFFFFFF)
ONE, THREE = np.uint64(1), np.uint64(3)
ENDS = np.uint64(sum(1 << ord(c) for c in "\t\n\r #"))
LONGEST_ID = 10
LONGEST_QID = 18


@jit
def is_blank(c):  # type: ignore[no-untyped-def]
    """Return whether a byte is a separator: space, tab, or the carriage return before a newline."""
    return c in (SPACE, TAB, RETURN)


@jit
def is_end(c):  # type: ignore[no-untyped-def]
    """Return whether a token ends before this byte."""
    return c <= HASH and (ENDS >> np.uint64(c)) & ONE != 0


@jit
def next_line(i):  # type: ignore[no-untyped-def]
    """Return the position after the next newline."""
    while True:
        result = matches(word(i), NEWLINES)
        if result:
            return i + np.int64(trailing_zeros(result) >> THREE) + 1
        i += 8


@jit
def skip_comment(i):  # type: ignore[no-untyped-def]
    """Return the position after the next newline, and that of a carriage return alone before it, or 0."""
    bare = np.int64(0)
    while True:
        w, ahead = word(i), word(i + 1)
        result = matches(w, NEWLINES)
        returns = matches(w, RETURNS) & ~(matches(ahead, NEWLINES) | matches(ahead, RETURNS))
        if result:
            returns &= (result & (~result + ONE)) - ONE
        if returns:
            bare = i + np.int64(trailing_zeros(returns) >> THREE)
        if result:
            return i + np.int64(trailing_zeros(result) >> THREE) + 1, bare
        i += 8


@jit
def survey(text, begin, end):  # type: ignore[no-untyped-def]
    """
    Count, in lines begin..end-1, rows, colons outside comments, and those colons that are not the first of their row.

    A well-formed row has one value per colon, except for that of its query id. Also returns the largest id before a
    row's last colon, and the position of a carriage return alone in a comment, which would hide the rows after it, or
    -1.
    """
    rows, colons, later_colons, largest, bare_return = 0, 0, 0, 0, np.int64(-1)
    origin = address(text)
    i, stop = origin + begin, origin + end
    while i < stop:
        c = byte(i)
        if is_blank(c) or c == NEWLINE:
            i += 1
            continue
        rows += c != HASH
        first = i
        last, result = np.int64(-1), 0
        while True:
            w = word(i)
            stops = matches(w, NEWLINES) | matches(w, HASHES)
            marks = matches(w, COLONS)
            if stops:
                marks &= (stops & (~stops + ONE)) - ONE
            if marks:
                result += count_ones(marks)
                last = i + 7 - np.int64(leading_zeros(marks) >> THREE)
            if stops:
                i += np.int64(trailing_zeros(stops) >> THREE)
                break
            i += 8
        colons += result
        later_colons += max(result - 1, 0)
        feature, scale = 0, 1
        for k in range(1, LONGEST_ID + 1):
            d = byte(last - k) - 48 if last - k >= first else -1
            if d < 0 or d > 9:
                break
            feature += d * scale
            scale *= 10
        largest = max(largest, feature)
        i, bare = skip_comment(i)
        if bare and bare_return < 0:
            bare_return = bare - origin
    return rows, colons, later_colons, largest, bare_return


@jit
def read_id(i):  # type: ignore[no-untyped-def]
    """Return the feature id at `i` and the position after it; position `i` if there are no digits or too many."""
    w = word(i)
    n = count_digits(w)
    feature = np.int64(read_digits(w, n))
    if n == 8:
        d = byte(i + n) - 48
        while 0 <= d <= 9:
            feature = feature * 10 + d
            n += 1
            if n > LONGEST_ID:
                return feature, i
            d = byte(i + n) - 48
    return feature, i + n


@jit
def read_qid(i):  # type: ignore[no-untyped-def]
    """Return the integer query id at `i` and the position after it; position `i` if it is not an integer."""
    begin = i
    negative = byte(i) == MINUS
    i += negative
    first = i
    value = 0
    d = byte(i) - 48
    while 0 <= d <= 9:
        value = value * 10 + d
        i += 1
        if i - first > LONGEST_QID:
            return value, begin
        d = byte(i) - 48
    if i == first or not is_end(byte(i)):
        return value, begin
    return (-value if negative else value), i


@jit
def parse_rows(text, begin, end, shift, row, at, sheet, rules, hard):  # type: ignore[no-untyped-def]
    """
    Parse lines begin..end-1 into rows `row`, `row` + 1, ... of the sheet, CSR values from `at` on.

    `shift` is added to stored and returned positions. A number that needs exact arithmetic is listed in `hard` as
    (begin, end, index), the index of a label as −1 − row; when the list is full, the kernel returns PAUSED at the
    start of a line. Returns (code, position, row, at, hard numbers, largest id).
    """
    y, qid, comments, values, indices, indptr = sheet
    width, last_id, qids, too_large = rules
    origin = address(text)
    shift -= origin
    i, stop_at = origin + begin, origin + end
    n_hard, largest = 0, 0
    while i < stop_at:
        c = byte(i)
        if is_blank(c) or c == NEWLINE:
            i += 1
            continue
        if c == HASH:
            i = next_line(i)
            continue
        if row == len(y):
            return NO_ROOM, i + shift, row, at, n_hard, largest
        line, line_at, line_hard = i, at, n_hard
        label, i, state = read_number(i)
        if state == BAD or not is_end(byte(i)):
            return BAD_LABEL, line + shift, row, at, n_hard, largest
        y[row] = label
        if state == HARD:
            if n_hard == len(hard):
                return PAUSED, line + shift, row, line_at, line_hard, largest
            hard[n_hard] = line + shift, i + shift, -1 - row
            n_hard += 1
        while is_blank(byte(i)):
            i += 1
        if qids != NO_QID:
            if word(i) & FOUR_BYTES != QID or is_end(byte(i + 4)):
                return BAD_QID, i + shift, row, at, n_hard, largest
            i += 4
            if qids == INTEGER_QID:
                qid[row], stop = read_qid(i)
                if stop == i:
                    return TEXT_QID, i + shift, row, at, n_hard, largest
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
            feature, stop = read_id(i)
            if stop == i or byte(stop) != COLON:
                return BAD_ID, i + shift, row, at, n_hard, largest
            if feature <= last:
                return ID_ORDER, i + shift, row, at, n_hard, largest
            if feature > last_id:
                return ID_RANGE, i + shift, row, at, n_hard, largest
            last = feature
            start = stop + 1
            value, i, state = read_number(start)
            if state == BAD and word(start) & FOUR_BYTES == NULL:
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
                if n_hard == len(hard):
                    return PAUSED, line + shift, row, line_at, line_hard, largest
                hard[n_hard] = start + shift, i + shift, place
                n_hard += 1
        largest = max(largest, last)
        if c == HASH:
            comments[row] = i + 1 + shift
            i = next_line(i)
        else:
            comments[row] = -1
            i += 1
        row += 1
        if width < 0:
            indptr[row] = at
    return DONE, i + shift, row, at, n_hard, largest
