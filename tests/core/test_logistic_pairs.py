from __future__ import annotations

import numpy as np
import pytest

from corank.core.hinge_pairs import Block
from corank.core.logistic_pairs import likely_bend, likely_sweep

STARTS = np.array([0, 0, 1, 4, 9])
GRADE = np.array([0, 0, 1, 1, 0, 0, 1, 2, 2])
BLOCK = Block(STARTS, GRADE, GRADE / 2.0, np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0, 0.5, 1.0, 1.0]))
QUERY = np.repeat(np.arange(4), np.diff(STARTS))


def loss_by_pairs(s):
    total = 0.0
    for i in range(9):
        for j in range(9):
            if QUERY[i] == QUERY[j] and GRADE[i] > GRADE[j]:
                t, p = (1 + BLOCK.y[i] - BLOCK.y[j]) / 2, 1 / (1 + np.exp(s[j] - s[i]))
                total -= BLOCK.weight[i] * BLOCK.weight[j] * (t * np.log(p) + (1 - t) * np.log(1 - p))
    return total


def swept(s):
    slope = np.empty(9)
    return likely_sweep(BLOCK, s, 0, 4, slope), slope


def test_loss_equals_the_sum_over_pairs_and_slopes_its_differences():
    rng = np.random.default_rng(0)
    s, z, h = rng.normal(size=9), rng.normal(size=9), 1e-5
    loss, slope = swept(s)
    assert loss == pytest.approx(loss_by_pairs(s), rel=1e-12)
    numeric = [(loss_by_pairs(s + h * e) - loss_by_pairs(s - h * e)) / (2 * h) for e in np.eye(9)]
    np.testing.assert_allclose(slope, numeric, atol=1e-8)
    bent = np.empty(9)
    likely_bend(BLOCK, s, z, 0, 4, bent)
    np.testing.assert_allclose(bent, (swept(s + h * z)[1] - swept(s - h * z)[1]) / (2 * h), atol=1e-8)


def test_distant_scores_do_not_overflow():
    loss, slope = swept(np.linspace(-1e4, 1e4, 9))
    assert np.isfinite(loss)
    assert np.isfinite(slope).all()
