"""Rows scaled so that plain products give XᵀLX, for queries of any size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit, jit_when_large
from corank.core.rows.blocks import add_sparse_spread, add_spread
from corank.core.rows.products import PIECE, add_products
from corank.core.sums.bins import add_run, add_triangle, count


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

    F holds complete queries, or a piece of one that is longer than `workspace`; see `corank.core.sums.moments.fold`.
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
