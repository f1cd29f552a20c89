"""The sums used by weighted draws, by brute force (the distributions: tests/corank/base/pairs/test_sampling.py)."""

import numpy as np
import pytest

from corank.base.pairs.sampling import PairSampler
from corank.core.pairs.sampling import draw_pairs, partner_weights, running_sums
from corank.core.random import seed_state
from corank.data.ranking import RankingData


def test_running_sums_restart_at_every_block():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    out = np.full(5, np.nan)
    running_sums(values, np.array([0, 3, 3, 5]), out)
    assert out.tolist() == [0, 1, 3, 0, 4]


@pytest.mark.parametrize("differences", [False, True])
def test_partner_weights_are_sums_over_rows_of_other_scores(differences):
    rng = np.random.default_rng(0)
    qid, y, w = rng.integers(0, 3, 25), rng.integers(0, 4, 25) / 2, rng.random(25) + 0.1
    data = RankingData.of(np.zeros((25, 1)), y, qid, w)
    index = PairSampler.of(data, draw="rows", differences=differences).index
    slots = np.flatnonzero(np.isin(np.arange(len(index.rows)), np.arange(25) + data.queries.codes[data.order]))
    out = np.empty(len(slots))
    partner_weights(index, slots.astype(np.uint64), out)
    d = np.abs(y[:, None] - y)
    apart = (qid[:, None] == qid) * (d if differences else d > 0) * (w / w.max())
    # scores are scaled by a power of two inside
    np.testing.assert_allclose(out / out.sum(), apart.sum(axis=1)[index.rows[slots]] / apart.sum(), rtol=1e-12)


def test_a_strided_buffer_is_filled_in_place():
    data = RankingData.of(np.zeros((3, 1)), [0, 1, 2])
    index = PairSampler.of(data).index
    buffer = np.zeros((10, 2), dtype=np.uint64)
    draw_pairs(seed_state(np.random.default_rng(0)), index, buffer[4:])
    assert (buffer[:4] == 0).all()
    assert (buffer[4:, 0] > buffer[4:, 1]).all()
