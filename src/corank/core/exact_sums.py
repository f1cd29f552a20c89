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

from corank.core.jit import jit, jit_when_large
from corank.core.rows.blocks import add_sparse_spread, add_spread
from corank.core.rows.products import PIECE, add_products

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


class Slots(NamedTuple):
    """
    The compared rows, sorted by (query, grade), and their weights.

    query, grade: numbers of the query and of the grade of each row; the grade is -1 if it needs no correction: the row
        is the only one of its grade, or equal scores are compared.
    """

    diagonal: NDArray[np.float64]  # c_q w_i (W_q − W_g(i)), plus c_q w_i² for the only row of a grade
    weight: NDArray[np.float64]  # √c_q w_i
    query: NDArray[np.int64]
    grade: NDArray[np.int64]


@jit_when_large
def fold(F, slots, first, shift, sums, Z, plus, minus):  # type: ignore[no-untyped-def]
    """
    Fold the block F of rows first, first+1, ... into Z, plus and minus with XᵀLX = ZᵀZ + plusᵀplus − minusᵀminus.

    With z_i = F_i − shift (any shift is valid, since L 1 = 0), s_q = Σ w_i z_i over a query and s_g over a grade:
    XᵀLX = Σ_i d_i z_i z_iᵀ + Σ_g s_g s_gᵀ − Σ_q s_q s_qᵀ. The shift of a query is the mean of its rows in the first
    block that contains it, so that s_q is near 0 without cancellation. `shift` and `sums` (row 0: s_q, row 1: s_g)
    carry a query over the end of a block. Returns the numbers of filled rows of `plus` and `minus`.
    """
    n, d = F.shape
    last = len(slots.query) - 1
    n_plus, n_minus = 0, 0
    for i in range(n):
        slot = first + i
        query, grade, weight = slots.query[slot], slots.grade[slot], slots.weight[slot]
        if slot == 0 or slots.query[slot - 1] != query:
            _mean_of_query(F, slots, first, i, shift)
            sums[:] = 0.0
        scale = np.sqrt(slots.diagonal[slot])
        for j in range(d):
            z = F[i, j] - shift[j]
            Z[i, j] = scale * z
            sums[0, j] += weight * z
            sums[1, j] += weight * z
        query_ends = slot == last or slots.query[slot + 1] != query
        if query_ends or slots.grade[slot + 1] != grade or grade < 0:
            if grade >= 0:
                for j in range(d):  # an assignment of arrays takes two seconds to compile
                    plus[n_plus, j] = sums[1, j]
                n_plus += 1
            sums[1] = 0.0
        if query_ends:
            for j in range(d):
                minus[n_minus, j] = sums[0, j]
            n_minus += 1
    return n_plus, n_minus


@jit_when_large
def _mean_of_query(F, slots, first, i, shift):  # type: ignore[no-untyped-def]
    shift[:] = 0.0
    total = 0.0
    k = i
    while k < F.shape[0] and slots.query[first + k] == slots.query[first + i]:
        weight = slots.weight[first + k]
        total += weight
        share = weight / total if total > 0.0 else 0.0
        # Welford's update: the mean of a column that is constant in the query is exact
        for j in range(F.shape[1]):
            shift[j] += share * (F[k, j] - shift[j])
        k += 1


@jit_when_large
def add_pair_squares(X, order, slots, first, last, out):  # type: ignore[no-untyped-def]
    """
    Add the diagonal of XᵀLX for the dense rows order[first], ..., order[last-1] of whole queries to `out`.

    As `fold`, about the mean of each query: Σ_i d_i z_i² + Σ_g (Σ_g w z)², where Σ_q w z is zero.
    """
    d = X.shape[1]
    mean, sums = np.empty(d), np.zeros(d)
    begin = first
    while begin < last:
        end = begin
        mean[:] = 0.0
        total = 0.0
        while end < last and slots.query[end] == slots.query[begin]:
            total += slots.weight[end]
            share = slots.weight[end] / total if total > 0.0 else 0.0
            for j in range(d):
                mean[j] += share * (X[order[end], j] - mean[j])
            end += 1
        if total > 0.0:
            for k in range(begin, end):
                grade = slots.grade[k]
                for j in range(d):
                    z = X[order[k], j] - mean[j]
                    out[j] += slots.diagonal[k] * z * z
                    sums[j] += slots.weight[k] * z
                if k + 1 == end or slots.grade[k + 1] != grade or grade < 0:
                    for j in range(d):
                        # the only row of a grade has its correction in the diagonal
                        out[j] += sums[j] * sums[j] if grade >= 0 else 0.0
                        sums[j] = 0.0
        begin = end


@jit
def add_pair_products(F, slots, first, carried, workspace, bins):  # type: ignore[no-untyped-def]
    """
    Add XᵀLX of the rows F, of slots first, first + 1, ..., to `bins`, one number per query and entry.

    F holds complete queries, or a piece of one that is longer than `workspace`; see `corank.core.exact_sums.fold`.
    carried (3, d): shift and sums of such a query, from piece to piece.
    workspace (≥ 1.5 n + 1, d): memory for the multiplied rows.
    """
    n, d = F.shape
    side = d + -d % 4
    T, G, minus = np.zeros((side, PIECE)), np.empty((side, side)), np.empty((1, d))
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and slots.query[first + end] == slots.query[first + begin]:
            end += 1
        m = end - begin
        plus, slot = workspace[m:], first + begin
        n_plus, n_minus = fold(F[begin:end], slots, slot, carried[0], carried[1:], workspace, plus, minus)
        G[:] = 0.0
        add_products(workspace[: m + n_plus], 1.0, T, G)
        add_products(minus[:n_minus], -1.0, T, G)
        add_triangle(G, d, bins)
        begin = end


@jit
def add_spreads(X, w, order, starts, first, last, bins):  # type: ignore[no-untyped-def]
    """Add the result of `corank.core.rows.blocks.add_spread` for each of the queries first..last-1 to `bins`."""
    out = np.empty((2, X.shape[1]))
    for query in range(first, last):
        out[:] = 0.0
        add_spread(X, w, order, starts, out, query, query + 1)
        add_run(out[0], bins, 0)
        add_run(out[1], bins, X.shape[1])
        count(bins)


@jit
def add_sparse_spreads(rows, d, w, order, starts, first, last, bins):  # type: ignore[no-untyped-def]
    """Add as `add_spreads`, from `CSRRows`."""
    out = np.empty((2, d))
    for query in range(first, last):
        out[:] = 0.0
        add_sparse_spread(rows, w, order, starts, out, query, query + 1)
        add_run(out[0], bins, 0)
        add_run(out[1], bins, d)
        count(bins)
