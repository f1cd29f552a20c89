from __future__ import annotations

from itertools import pairwise

import numpy as np

from corank.models.rls.leave_out import merge_ties


def test_neighbours_nearer_than_their_errors_are_equal_inside_a_query():
    rng = np.random.default_rng(0)
    starts = np.array([0, 7, 8, 30])
    for _ in range(50):
        f, noise = rng.integers(0, 12, 30) + rng.uniform(-0.2, 0.2, 30), rng.uniform(0.0, 0.3, 30)
        found = merge_ties(f, noise, starts)
        for begin, end in pairwise(starts):
            own = sorted(range(begin, end), key=lambda i: f[i])
            expected = f[own[0]]
            for before, i in zip([own[0], *own], own, strict=False):
                if f[i] - f[before] > noise[i] + noise[before]:
                    expected = f[i]
                assert found[i] == expected


def test_without_errors_only_equals_are_equal():
    f = np.array([1.0, np.nextafter(1.0, 2.0), 1.0])
    np.testing.assert_array_equal(merge_ties(f, np.zeros(3), np.array([0, 3])), f)
