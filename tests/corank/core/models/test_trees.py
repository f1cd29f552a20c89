"""Scores of trees against a walk in Python, and structures that are not trees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.core.jit import compile_kernels
from corank.core.models.trees import DEFAULT_LEFT, MISSING_ZERO, SOUND, ZERO, measure_depths, score_small
from corank.models.lambdarank import TreeEnsemble

N_FEATURES = 7


def random_trees(rng, sizes, flags=(0, 2)):
    """Grow trees of the given numbers of nodes by splitting random leaves."""
    children = []
    for n in sizes:
        tree, leaves = np.zeros((n, 2), np.int32), [(0, 0)] if n else []
        n_leaves = 1
        for k in range(n):
            # node k takes the place of a leaf; its left child keeps the number of that leaf
            parent, side = leaves.pop(rng.integers(len(leaves)))
            leaf = -1 if k == 0 else int(tree[parent, side])
            if k:
                tree[parent, side] = k
            n_leaves += 1
            tree[k] = leaf, -n_leaves
            leaves += [(k, 0), (k, 1)]
        children.append(tree)
    n, starts = sum(sizes), np.r_[0, np.cumsum(sizes, dtype=np.int64)].astype(np.int64)
    return TreeEnsemble(
        n_features=N_FEATURES,
        starts=starts,
        features=rng.integers(0, N_FEATURES, n).astype(np.uint32),
        thresholds=rng.choice([-1.0, 0.0, 0.5, 1.0, 1.5], n),
        children=np.concatenate([np.zeros((0, 2), np.int32), *children]),
        flags=rng.choice(np.array(flags, np.uint8), n),
        values=rng.normal(size=n + len(sizes)),
        gains=rng.random(n),
        node_counts=np.ones(n, np.int32),
        leaf_counts=np.ones(n + len(sizes), np.int32),
    )


def walk(trees, x):
    total = 0.0
    for t, (begin, end) in enumerate(zip(trees.starts[:-1].tolist(), trees.starts[1:].tolist(), strict=True)):
        node = 0 if end > begin else -1
        while node >= 0:
            value, flags = float(x[trees.features[begin + node]]), trees.flags[begin + node]
            left = value <= trees.thresholds[begin + node]
            if flags & MISSING_ZERO and abs(value) <= ZERO:
                left = bool(flags & DEFAULT_LEFT)
            node = int(trees.children[begin + node, 0 if left else 1])
        total += float(trees.values[begin + t - node - 1])
    return total


@pytest.mark.parametrize("flags", [(0, 2), (0, 2, 4, 6, 8, 10)])
@pytest.mark.parametrize("sizes", [(), (0,), (1,), (5, 0, 1, 30, 2), (60, 40) * 5])
def test_scores_are_those_of_a_walk(sizes, flags):
    rng = np.random.default_rng(0)
    trees = random_trees(rng, sizes, flags)
    X = rng.choice([-1.0, 0.0, 1e-36, ZERO, 1.001e-35, 0.5, 1.0, 1.2, 2.0], (37, N_FEATURES))
    expected = np.array([walk(trees, x) for x in X])
    assert score_small(trees._arrays, X).tobytes() == expected.tobytes()
    compile_kernels()
    for n in (1, 15, 16, 17, 37):
        for rows in (X[:n], sparse.csr_array(X[:n])):
            assert trees.score_rows(rows).tobytes() == expected[:n].tobytes()
    single = X.astype(np.float32)
    expected = np.array([walk(trees, x) for x in single])
    assert trees.score_rows(single).tobytes() == expected.tobytes()
    many = np.tile(X, (40, 1))
    assert trees.score_rows(many, n_jobs=3).tobytes() == trees.score_rows(many).tobytes()


def test_depths_are_the_longest_paths():
    # a chain of three nodes, a single leaf, and one node
    starts, chain = np.array([0, 3, 3, 4]), [[-1, 1], [2, -2], [-3, -4]]
    children, depths = np.array([*chain, [-1, -2]], np.int32), np.zeros(3, np.int64)
    assert measure_depths(starts, children, depths) == SOUND
    assert depths.tolist() == [3, 0, 1]


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ([[0, -1], [-2, -3]], "a node that is its own child"),
        ([[1, -1], [0, -2]], "a cycle"),
        ([[1, 1], [-1, -2]], "a child of two sides"),
        ([[1, -1], [-1, -2]], "a leaf of two nodes"),
        ([[-1, -2], [-3, -1]], "a node without a parent"),
        ([[1, -1], [-2, -4]], "a leaf of another tree"),
        ([[2, -1], [-2, -3]], "a node of another tree"),
        ([[1, -1], [-2, -(2**31)]], "the least number"),
        ([[2**31 - 1, -1], [-2, -3]], "the largest number"),
    ],
)
def test_structures_that_are_not_trees_are_found(tree, why):
    sound = [[1, -1], [-2, -3]]
    children, starts = np.array([*sound, *tree, *sound], np.int64).astype(np.int32), np.array([0, 2, 4, 6])
    assert measure_depths(starts, children, np.zeros(3, np.int64)) == 1, why
