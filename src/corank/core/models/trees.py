# mypy: disable-error-code="no-untyped-call"
"""
Regression trees in arrays: checks of their structure, and scores of rows.

Blocks of dense rows descend a tree together, level by level, without branches. This hides the latency of memory and of
mispredicted branches, which dominates row by row. Each row adds its leaves in the order of the trees, so that equal
rows get equal bits, dense or sparse, alone or in a block.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit, jit_when_large

# LightGBM's flags of a node: a split of categories, the side of missing values, and which values are missing
CATEGORIES = 1
DEFAULT_LEFT = 2
MISSING_ZERO = 4
MISSING_NAN = 8

# LightGBM treats values up to this size as zero
ZERO = float(np.float32(1e-35))

SOUND = -1
# rows that descend together
_LANES = 16


class TreeArrays(NamedTuple):
    """
    Trees with one array per property, for kernels.

    features, thresholds (n_nodes,): a row goes left if its feature is at most the threshold, or for a split of
        categories, if it is in the set with the number `threshold`.
    children (n_nodes, 2): left and right child, counted from the first node of the tree; leaf k is −k − 1.
    """

    starts: NDArray[np.int64]  # (n_trees + 1,): first node of each tree; a tree of m nodes has m + 1 leaves
    features: NDArray[np.uint32]
    thresholds: NDArray[np.float64]
    children: NDArray[np.int32]
    flags: NDArray[np.uint8]  # (n_nodes,): see `DEFAULT_LEFT`
    values: NDArray[np.float64]  # (n_nodes + n_trees,): of the leaves, tree after tree
    sets: NDArray[np.bool_]  # (n_sets, n_categories): categories of each set
    depths: NDArray[np.int64]  # (n_trees,): largest number of nodes on a path


@jit_when_large
def measure_depths(starts, children, depths):  # type: ignore[no-untyped-def]
    """
    Write the depth of each tree; return the first invalid tree, or `SOUND`.

    A tree is valid if every child follows its parent and every leaf and every node but the root has one parent.
    """
    seen = np.zeros(2 * len(children) + len(starts), np.bool_)
    depth = np.zeros(len(children), np.int64)
    for t in range(len(starts) - 1):
        begin, n = starts[t], starts[t + 1] - starts[t]
        deepest = 0
        for k in range(n):
            below = depth[begin + k] + 1
            deepest = max(deepest, below)
            for side in range(2):
                child = np.int64(children[begin + k, side])
                if child < -n - 1 or child >= n or 0 <= child <= k:
                    return t
                # the nodes of all trees come first, then their leaves
                place = begin + child if child >= 0 else len(children) + begin + t - child - 1
                if seen[place]:
                    return t
                seen[place] = True
                if child >= 0:
                    depth[begin + child] = below
        depths[t] = deepest
    return SOUND


@inline
def _goes_right(x, threshold):  # type: ignore[no-untyped-def]
    return np.uint64(not (x <= threshold))


@jit
def _score_row(trees, x):  # type: ignore[no-untyped-def]
    """Return the sum of the leaves of one row."""
    item, total = np.uint64(1), 0.0
    for t in range(np.uint64(len(trees.starts) - 1)):
        begin, end = trees.starts[t], trees.starts[t + item]
        node = np.int64(-1) if begin == end else np.int64(0)
        while node >= 0:
            k = np.uint64(begin + node)
            value, flags = x[trees.features[k]], trees.flags[k]
            if flags & CATEGORIES:
                # NaN is in no set
                is_in = value >= 0.0 and trees.sets[np.uint64(trees.thresholds[k]), np.uint64(value)]
                side = np.uint64(0) if is_in else item
            else:
                is_missing = flags & MISSING_NAN and np.isnan(value)
                # as LightGBM: NaN counts as zero where no value of the column was NaN in training
                value = 0.0 if np.isnan(value) else value
                side = _goes_right(value, trees.thresholds[k])
                if is_missing or (flags & MISSING_ZERO and -ZERO <= value <= ZERO):
                    side = np.uint64(0) if flags & DEFAULT_LEFT else item
            node = np.int64(trees.children[k, side])
        total += trees.values[np.uint64(begin + np.int64(t) - node - 1)]
    return total


@jit
def _score_block(trees, X, first, node, out):  # type: ignore[no-untyped-def]
    """Write the scores of `_LANES` rows, for trees without missing values and sets of categories."""
    for j in range(_LANES):
        out[first + j] = 0.0
    for t in range(len(trees.starts) - 1):
        begin = trees.starts[t]
        for j in range(_LANES):
            node[j] = -1 if trees.depths[t] == 0 else 0
        for _ in range(trees.depths[t]):
            for j in range(_LANES):
                i = node[j]
                # rows that have reached a leaf follow the root, and the result is dropped
                k = np.uint64(begin + max(i, 0))
                side = _goes_right(X[np.uint64(first + j), trees.features[k]], trees.thresholds[k])
                below = np.int64(trees.children[k, side])
                node[j] = below if i >= 0 else i
        for j in range(_LANES):
            out[first + j] += trees.values[np.uint64(begin + t - node[j] - 1)]


@jit
def score_dense(trees, is_general, X, out, first, last):  # type: ignore[no-untyped-def]
    """Write the scores of rows first to last-1 of a dense matrix."""
    i = first
    if not is_general:
        node = np.empty(_LANES, np.int64)
        while i + _LANES <= last:
            _score_block(trees, X, i, node, out)
            i += _LANES
    while i < last:
        out[i] = _score_row(trees, X[i])
        i += 1


@jit
def score_csr(trees, is_general, columns, rows, out, first, last):  # type: ignore[no-untyped-def]
    """Write the scores of rows first to last-1 of a CSR matrix."""
    X = np.empty((min(_LANES, last - first), len(columns)))
    for begin in range(first, last, _LANES):
        n = min(_LANES, last - begin)
        X[:] = 0.0
        for j in range(n):
            for k in range(rows.indptr[begin + j], rows.indptr[begin + j + 1]):
                i = np.searchsorted(columns, rows.indices[k])
                if i < len(columns) and columns[i] == rows.indices[k]:
                    X[j, i] = rows.data[k]
        score_dense(trees, is_general, X, out[begin : begin + n], 0, n)


def score_small(trees: TreeArrays, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of a few dense rows without compiling a kernel, with the same bits."""
    lines, total = np.arange(len(X)), np.zeros(len(X))
    for t, (begin, end) in enumerate(pairwise(trees.starts.tolist())):
        node = np.full(len(X), -1 if begin == end else 0)
        for _ in range(trees.depths[t]):
            k = begin + np.maximum(node, 0)
            x, flags = X[lines, trees.features[k]], trees.flags[k]
            is_missing = np.isnan(x) & ((flags & MISSING_NAN) > 0)
            x = np.where(np.isnan(x), 0.0, x)
            is_missing |= (np.abs(x) <= ZERO) & ((flags & MISSING_ZERO) > 0)
            goes_right = np.where(is_missing, (flags & DEFAULT_LEFT) == 0, x > trees.thresholds[k])
            if (by_set := np.flatnonzero(flags & CATEGORIES)).size:
                values = X[lines, trees.features[k]][by_set]
                known = by_set[values >= 0.0]
                goes_right[by_set] = True
                goes_right[known] = ~trees.sets[
                    trees.thresholds[k[known]].astype(int), values[values >= 0.0].astype(int)
                ]
            node = np.where(node < 0, node, trees.children[k, goes_right.astype(np.int64)])
        total += trees.values[begin + t - node - 1]
    return total
