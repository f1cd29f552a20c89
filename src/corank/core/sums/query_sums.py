# mypy: disable-error-code="no-untyped-call"
"""Sums over queries: the share of a query is computed from its own rows and added in bins, independent of order."""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit
from corank.core.rows.blocks import add_sparse_spread, add_spread
from corank.core.rows.products import PIECE, add_products
from corank.core.sums.bins import add_run, add_triangle, count
from corank.core.sums.moments import fold


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
def add_plain_products(F, query, workspace, bins):  # type: ignore[no-untyped-def]
    """Add [F 1]ᵀ[F 1] to `bins`, one number per query and entry; rows of a query are consecutive."""
    n, d = F.shape
    side = d + 1 + -(d + 1) % 4
    T, G = np.zeros((side, PIECE)), np.empty((side, side))
    begin = 0
    while begin < n:
        end = begin
        while end < n and query[end] == query[begin]:
            workspace[end - begin, :d] = F[end]
            workspace[end - begin, d] = 1.0
            end += 1
        G[:] = 0.0
        add_products(workspace[: end - begin], 1.0, T, G)
        add_triangle(G, d + 1, bins)
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
