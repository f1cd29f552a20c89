"""Transforms of lists against plain loops over queries and retrievers."""

from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from corank.models.fusion.lists import TRANSFORMS, RetrievedLists

NAN = np.nan


def some_lists(seed=0, n_queries=6, m=3):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, n_queries, 80))
    X = rng.normal(size=(80, m)).round(1)  # ties occur
    X[rng.random(X.shape) < 0.4] = NAN
    X[qid == qid[0], 1] = NAN  # an empty list
    X[qid == qid[-1], 2] = np.where(np.isnan(X[qid == qid[-1], 2]), NAN, 2.5)  # a list of equal scores
    keep = ~np.isnan(X).all(axis=1)
    order = rng.permutation(keep.sum())  # queries in any order
    return X[keep][order], qid[keep][order]


def plain(name, s, k):
    """Return φ of one list (without NaN), in the order of its documents."""
    n = len(s)
    order = sorted(range(n), key=lambda i: (-s[i], i))
    rank = {i: r for r, i in enumerate(order, 1)}
    low, high = min(s), max(s)
    return {
        "minmax": [(x - low) / (high - low) if high > low else 1.0 for x in s],
        "reciprocal_rank": [1 / (k + rank[i]) for i in range(n)],
        "presence": [1.0] * n,
    }[name]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_equal_a_loop_over_lists(name):
    X, qid = some_lists()
    got = TRANSFORMS[name](RetrievedLists.of(X, qid), 7.0)
    for q in set(qid.tolist()):
        for j in range(X.shape[1]):
            rows = np.flatnonzero(qid == q)
            there = rows[~np.isnan(X[rows, j])]
            expected = np.zeros(len(X))
            if len(there):
                expected[there] = plain(name, X[there, j].tolist(), 7.0)
            np.testing.assert_allclose(got[rows, j], expected[rows], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1.0, NAN], [NAN, NAN]], "row 1"),
        ([[1.0, np.inf]], "infinity"),
        ([[1.0, 1e200]], "1e"),
        ([1.0, 2.0], "shape"),
    ],
)
def test_wrong_lists_are_refused(X, words):
    with pytest.raises(InputError, match=words):
        RetrievedLists.of(X)
