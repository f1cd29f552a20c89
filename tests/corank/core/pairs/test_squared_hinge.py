from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.core.pairs.losses import GradedBlock, squared_hinge_hessian_product, squared_hinge_loss


def blocks(seed, n_grades):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, 5)
    starts = np.append(0, np.cumsum(sizes))
    grades = [np.unique(np.sort(rng.integers(0, n_grades, size)), return_inverse=True)[1] for size in sizes]
    grade = np.concatenate(grades).astype(np.int64)
    n = len(grade)
    # halves: ties of scores and margins exactly at the corner are common
    s = rng.integers(-4, 5, n) / 2.0 + 100.0
    return (
        GradedBlock(starts, grade, grade.astype(float), rng.integers(0, 3, n).astype(float)),
        s,
        rng.normal(size=n) + 7,
    )


def by_pairs(block, s, z):
    loss, slope, degree, bent = 0.0, np.zeros(len(s)), np.zeros(len(s)), np.zeros(len(s))
    query = np.repeat(np.arange(len(block.starts) - 1), np.diff(block.starts))
    for i in range(len(s)):
        for j in range(len(s)):
            m = 1.0 - s[i] + s[j]
            if query[i] == query[j] and block.grade[i] > block.grade[j] and m > 0:
                w = block.weight[i] * block.weight[j]
                loss += 0.5 * w * m * m
                slope[i] -= w * m
                slope[j] += w * m
                degree[[i, j]] += w
                bent[i] += w * (z[i] - z[j])
                bent[j] -= w * (z[i] - z[j])
    return loss, slope, degree, bent


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3, 9]))
def test_sweeps_equal_the_sums_over_pairs(seed, n_grades):
    block, s, z = blocks(seed, n_grades)
    n, last = len(s), len(block.starts) - 1
    order, slope, degree, bent = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n), np.empty(n)
    loss = squared_hinge_loss(block, s, 0, last, order, slope, degree)
    squared_hinge_hessian_product(block, s, z, 0, last, order, degree, bent)
    want = by_pairs(block, s, z)
    assert loss == pytest.approx(want[0], abs=1e-9)
    for found, expected in zip((slope, degree, bent), want[1:], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
