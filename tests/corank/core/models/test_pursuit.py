"""The joint search against a grid of explicit 2 × 2 systems."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corank.core.models.pursuit import joint_best


@given(seed=st.integers(0, 10_000))
def test_joint_best_is_the_best_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    N1, N2 = rng.integers(1, 9, 2)
    e1, e2, b1, b2 = rng.normal(size=N1), rng.normal(size=N2), 1 + rng.random(N1), 1 + rng.random(N2)
    cross = rng.uniform(-0.9, 0.9, (N1, N2))
    gains = np.empty((N1, N2))
    for i in range(N1):
        for j in range(N2):
            e, A = np.array([e1[i], e2[j]]), np.array([[b1[i], cross[i, j]], [cross[i, j], b2[j]]])
            gains[i, j] = e @ np.linalg.solve(A, e)
    x = cross / np.sqrt(np.outer(b1, b2))
    f1, f2 = e1 / np.sqrt(b1), e2 / np.sqrt(b2)
    gain, i, j = joint_best(x, f1, f2, 0, N1)
    np.testing.assert_allclose([gain, gains[i, j]], gains.max())
    if N1 > 1:
        gain, i, _ = joint_best(x, f1, f2, 1, N1)
        np.testing.assert_allclose(gain, gains[1:].max())
        assert i >= 1


def test_nothing_to_explain_gains_nothing():
    gain, _, _ = joint_best(np.zeros((3, 3)), np.zeros(3), np.zeros(3), 0, 3)
    assert gain == 0.0
