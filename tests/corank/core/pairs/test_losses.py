from __future__ import annotations

import numpy as np
import pytest

from corank.base.pairs.losses import LOSSES
from corank.core.pairs.losses import GradedBlock, all_pairs_hessian_product, all_pairs_loss

STARTS = np.array([0, 0, 1, 4, 9])
GRADE = np.array([0, 0, 1, 1, 0, 0, 1, 2, 2])
BLOCK = GradedBlock(STARTS, GRADE, GRADE / 2.0, np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0, 0.5, 1.0, 1.0]))
QUERY = np.repeat(np.arange(4), np.diff(STARTS))


every_smooth = pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES.values() if loss.exact], ids=lambda loss: loss.name
)


def loss_by_pairs(loss, s):
    total = 0.0
    for i in range(9):
        for j in range(9):
            if QUERY[i] == QUERY[j] and GRADE[i] > GRADE[j]:
                value = loss.value(loss.pair_target(BLOCK.y[i] - BLOCK.y[j]), s[i] - s[j])
                total += BLOCK.weight[i] * BLOCK.weight[j] * value
    return total


def visited(loss, s):
    slope = np.empty(9)
    return all_pairs_loss(loss.code, BLOCK, s, 0, 4, slope), slope


@every_smooth
def test_loss_equals_the_sum_over_pairs_and_slopes_its_differences(loss):
    rng = np.random.default_rng(0)
    s, z, h = rng.normal(size=9), rng.normal(size=9), 1e-5
    total, slope = visited(loss, s)
    assert total == pytest.approx(loss_by_pairs(loss, s), rel=1e-12)
    numeric = [(loss_by_pairs(loss, s + h * e) - loss_by_pairs(loss, s - h * e)) / (2 * h) for e in np.eye(9)]
    np.testing.assert_allclose(slope, numeric, atol=1e-8)
    bent = np.empty(9)
    all_pairs_hessian_product(loss.code, BLOCK, s, z, 0, 4, bent)
    np.testing.assert_allclose(bent, (visited(loss, s + h * z)[1] - visited(loss, s - h * z)[1]) / (2 * h), atol=1e-8)


@every_smooth
def test_distant_scores_do_not_overflow(loss):
    total, slope = visited(loss, np.linspace(-1e4, 1e4, 9))
    assert np.isfinite(total)
    assert np.isfinite(slope).all()
