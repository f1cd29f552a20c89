"""Kernel that splits lines of blank-separated columns, as in TREC run and qrels files."""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit
from corank.core.parsing.letor import NEWLINE, is_blank
from corank.core.parsing.number import BAD, HARD, address, byte, read_number
from corank.core.parsing.small import BAD_NUMBER, DONE, FEW_COLUMNS, MANY_COLUMNS


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


@jit
def gather_lines(text, spans, lines):  # type: ignore[no-untyped-def]
    """Copy the spans (n, 2) of a text to `lines`, each followed by a newline."""
    k = np.uint64(0)
    item = np.uint64(1)
    for row in range(len(spans)):
        for i in range(np.uint64(spans[row, 0]), np.uint64(spans[row, 1])):
            lines[k] = text[i]
            k += item
        lines[k] = NEWLINE
        k += item
