"""Random scorers, and rows that are hard for float32: ties, thresholds hit exactly, denormals, NaN and 1e30."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from corank.deploy.export.scorers import LinearScorer, PerceptronScorer, TreeScorer
from corank.models.lambdarank.tree_ensemble import TreeEnsemble

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 1e-6, -1e-6, 1e-45, -1e-45, 1e-310, 1e-38, 1e30, -1e30, 0.1, float(np.float32(0.1)), 1 / 3]
)


def numbers(rng, size):
    """Numbers of many sizes; a third are special."""
    scale = 10.0 ** rng.uniform(-8, 4, size=size)
    drawn = rng.normal(size=size) * np.where(rng.random(size) < 0.5, 1.0, scale)
    return np.where(rng.random(size) < 0.3, rng.choice(SPECIAL, size=size), drawn)


def linear(rng, d):
    weights = rng.normal(size=d) * 10.0 ** rng.uniform(-4, 3, size=d)
    weights[rng.random(d) < 0.2] = 0.0
    return LinearScorer(weights, float(rng.normal()))


def trees(rng, d, n_trees=5, most=12, missing=True):
    """An ensemble of random trees, single leaves among them."""
    starts, children, leaves = [0], [], 0
    for _ in range(n_trees):
        n = int(rng.integers(0, most))
        # a child slot that is taken by the next node, in order
        slots, own = [], np.zeros((n, 2), dtype=np.int32)
        for k in range(n):
            if slots:
                parent, side = slots.pop(int(rng.integers(len(slots))))
                own[parent, side] = k
            slots += [(k, 0), (k, 1)]
        for leaf, (parent, side) in enumerate(slots):
            own[parent, side] = -leaf - 1
        children.append(own)
        starts.append(starts[-1] + n)
        leaves += n + 1
    n = starts[-1]
    flags = rng.choice([0, 2, 8, 10] if missing else [0], size=n).astype(np.uint8)
    ensemble = TreeEnsemble(
        n_features=d,
        starts=np.array(starts, dtype=np.int64),
        features=rng.integers(0, d, size=n).astype(np.uint32),
        thresholds=numbers(rng, n),
        children=np.concatenate([np.zeros((0, 2), np.int32), *children]),
        flags=flags,
        values=rng.normal(size=leaves) * 10.0 ** rng.uniform(-3, 2, size=leaves),
        gains=np.ones(n),
        node_counts=np.ones(n, np.int32),
        leaf_counts=np.ones(leaves, np.int32),
    )
    return TreeScorer(ensemble)


def perceptron(rng, d):
    sizes = [d, *rng.integers(1, 8, size=int(rng.integers(0, 3))).tolist(), 1]
    weights = tuple(rng.normal(size=pair) for pair in pairwise(sizes))
    return PerceptronScorer(
        10.0 ** rng.uniform(-2, 2, size=d), rng.normal(size=d), weights, tuple(rng.normal(size=n) for n in sizes[1:])
    )


def rows(rng, n, d, scorer=None, missing=False):
    """Hostile rows: repeated ones, values at thresholds and their neighbours in float32 and float64."""
    X = numbers(rng, (n, d))
    if isinstance(scorer, TreeScorer) and len(scorer.trees.thresholds):
        t = scorer.trees.thresholds
        near = np.concatenate(
            [
                t,
                np.nextafter(t, np.inf),
                np.nextafter(t, -np.inf),
                t.astype(np.float32).astype(np.float64),
                np.nextafter(t.astype(np.float32), np.float32(np.inf)).astype(np.float64),
                np.nextafter(t.astype(np.float32), np.float32(-np.inf)).astype(np.float64),
                t + 1e-6,
                t + 5e-7,
                t - 1e-6,
            ]
        )
        X = np.where(rng.random((n, d)) < 0.5, rng.choice(near, size=(n, d)), X)
    X[n // 2] = X[0]
    if missing:
        X[rng.random((n, d)) < 0.1] = np.nan
    return X
