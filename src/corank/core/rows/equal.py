"""Find equal rows, by a hash table of their numbers."""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, jit

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
