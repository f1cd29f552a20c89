# mypy: disable-error-code="no-untyped-call"
"""
Sums that do not depend on the order of terms: numbers are rounded to a grid and added as integers.

A number x is split into limbs, x ≈ Σ_k s_k 2^(30 k) with integer s_k, each the nearest to the remainder of those above.
Limbs of one k are added as integers, in any order. A sum keeps the highest limb that any of its numbers reached, `top`,
and the two below: rounding to a coarse grid and then to a finer one leaves the coarse limbs unchanged, so dropping the
lowest limb when `top` rises is the same as never having had it. The result depends only on the set of numbers; each is
rounded by at most 2^-61 of the largest. A sum may have up to 2^33 terms. Reference: Demmel and Nguyen, Parallel
reproducible summation, IEEE Transactions on Computers 2015 (their bins, with integers for carries).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.jit import jit

WIDTH = 30
"""Bits of a limb."""
LIMBS = 3
LOWEST, HIGHEST = -30, 31
"""Range of limbs: numbers below 2^-960 count as zero, and from 2^960 on, as infinite."""
_FLUSH = 1 << 22
"""Number of terms that a float64 adds exactly, each a multiple of its grid below 2^30 of it."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Bins(NamedTuple):
    """Running sums of m entries."""

    top: Integers  # (m,): the highest limb
    limit: Floats  # (m,): numbers below this do not need a higher limb
    magic: Floats  # (LIMBS, m): constants that round to the grid of each limb when added and subtracted
    held: Floats  # (LIMBS, m): sums of limbs since they were last moved to `limbs`
    limbs: Integers  # (LIMBS, m): sums of limbs in units of their grid
    state: Integers  # (2,): number of terms added to each entry since then; whether one was too large, or NaN

    @classmethod
    def of(cls, m: int) -> Bins:
        """Start sums of m entries."""
        top, limbs = np.full(m, LOWEST), np.zeros((LIMBS, m), dtype=np.int64)
        bins = cls(top, np.empty(m), np.empty((LIMBS, m)), np.zeros((LIMBS, m)), limbs, np.zeros(2, dtype=np.int64))
        begin(bins)
        return bins

    def total(self) -> ExactSum:
        """Return the sums so far."""
        flush(self)
        return ExactSum(self.top.copy(), self.limbs.copy(), bool(self.state[1]))


@dataclass(frozen=True, eq=False)
class ExactSum:
    """Sums of m entries, byte-identical for any order of terms."""

    top: Integers  # (m,): the highest limb of each
    limbs: Integers  # (LIMBS, m): sums of limbs, the highest first
    overflows: bool = False  # whether a term was beyond 2^960, or NaN

    @classmethod
    def of(cls, terms: ArrayLike) -> ExactSum:
        """Sum the columns of an array of shape (n, m)."""
        rows = np.ascontiguousarray(terms, dtype=np.float64)
        bins = Bins.of(rows.shape[1])
        add_rows(rows, bins)
        return bins.total()

    def __add__(self, other: ExactSum) -> ExactSum:
        top = np.maximum(self.top, other.top)
        return ExactSum(top, self._raised(top) + other._raised(top), self.overflows or other.overflows)

    def _raised(self, top: Integers) -> Integers:
        i = np.arange(LIMBS)[:, None] - (top - self.top)
        return np.where(i >= 0, np.take_along_axis(self.limbs, np.maximum(i, 0), axis=0), 0)

    @property
    def value(self) -> Floats:
        """The sums, rounded once; NaN if a term was too large."""
        if self.overflows:
            return np.full(len(self.top), np.nan)
        limbs, half = self.limbs.copy(), 1 << (WIDTH - 1)
        for k in range(LIMBS - 1, 0, -1):
            carry = (limbs[k] + half) >> WIDTH
            limbs[k] -= carry << WIDTH
            limbs[k - 1] += carry
        out = np.zeros(len(self.top))
        for k in range(LIMBS - 1, -1, -1):
            out = out * 2.0**-WIDTH + limbs[k]
        return np.ldexp(out, WIDTH * self.top)


@jit
def set_top(bins, entry, top):  # type: ignore[no-untyped-def]
    """Set the highest limb of an entry, without changing its sums."""
    bins.top[entry] = top
    bins.limit[entry] = 2.0 ** (WIDTH * (top + 1))
    for k in range(LIMBS):
        bins.magic[k, entry] = 1.5 * 2.0 ** (52 + WIDTH * (top - k))


@jit
def begin(bins):  # type: ignore[no-untyped-def]
    """Set the lowest limbs for every entry."""
    for entry in range(len(bins.top)):
        set_top(bins, entry, LOWEST)


@jit
def flush(bins):  # type: ignore[no-untyped-def]
    """Move the sums held in floats to integers."""
    for entry in range(len(bins.top)):
        _flush_entry(bins, entry)
    bins.state[0] = 0


@jit
def _flush_entry(bins, entry):  # type: ignore[no-untyped-def]
    for k in range(LIMBS):
        bins.limbs[k, entry] += np.int64(bins.held[k, entry] * 2.0 ** (-WIDTH * (bins.top[entry] - k)))
        bins.held[k, entry] = 0.0


@jit
def _raise_entry(bins, entry, size):  # type: ignore[no-untyped-def]
    """Raise the highest limb for a number as large as `size`."""
    _flush_entry(bins, entry)
    old, top = bins.top[entry], bins.top[entry]
    while not size < 2.0 ** (WIDTH * (top + 1)):
        top += 1
    for k in range(LIMBS - 1, -1, -1):
        source = k - (top - old)
        bins.limbs[k, entry] = bins.limbs[source, entry] if source >= 0 else 0
    set_top(bins, entry, top)


@jit
def add_run(x, bins, first):  # type: ignore[no-untyped-def]
    """Add the numbers x to entries first, first + 1, ...; the caller then calls `count`."""
    n, grows = len(x), False
    limit = bins.limit[first : first + n]
    for i in range(n):
        grows |= not abs(x[i]) < limit[i]
    if grows:
        for i in range(n):
            if not abs(x[i]) < limit[i]:
                if not abs(x[i]) < 2.0 ** (WIDTH * (HIGHEST + 1)):
                    bins.state[1] = 1
                    return
                _raise_entry(bins, first + i, abs(x[i]))
    for k in range(LIMBS - 1):
        magic, held = bins.magic[k, first : first + n], bins.held[k, first : first + n]
        for i in range(n):
            s = (x[i] + magic[i]) - magic[i]
            held[i] += s
            x[i] -= s
    magic, held = bins.magic[LIMBS - 1, first : first + n], bins.held[LIMBS - 1, first : first + n]
    for i in range(n):
        held[i] += (x[i] + magic[i]) - magic[i]


@jit
def count(bins):  # type: ignore[no-untyped-def]
    """Record that a number was added to every entry."""
    bins.state[0] += 1
    if bins.state[0] >= _FLUSH:
        flush(bins)


@jit
def add_rows(rows, bins):  # type: ignore[no-untyped-def]
    """Add rows, one number to each entry."""
    for i in range(len(rows)):
        add_run(rows[i].copy(), bins, 0)
        count(bins)


@jit
def add_triangle(G, d, bins):  # type: ignore[no-untyped-def]
    """Add the upper triangle of the first d rows and columns of G, row after row; G is overwritten."""
    first = 0
    for i in range(d):
        add_run(G[i, i:d], bins, first)
        first += d - i
    count(bins)


def square(flat: Floats) -> Floats:
    """Return the symmetric array whose upper triangle, row after row, is `flat`."""
    d = (isqrt(8 * len(flat) + 1) - 1) // 2
    out = np.zeros((d, d))
    out[np.triu_indices(d)] = flat
    return np.asarray(out + np.triu(out, 1).T)
