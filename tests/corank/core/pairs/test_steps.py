from __future__ import annotations

import numpy as np
import pytest

from corank.base.pairs.sampling import PairSampler
from corank.core.pairs.steps import (
    CONSTANT,
    N_STREAMS,
    NO_PARTNER,
    PEGASOS,
    SQRT,
    Examples,
    RowIndex,
    draw_examples,
    rate_at,
)
from corank.core.random import alias_table, seed_state
from corank.data.ranking import RankingData

DATA = RankingData.of(np.zeros((6, 1)), [0, 1, 2, 0, 1, 5], [0, 0, 0, 1, 1, 2])


def _examples():
    law = PairSampler.of(DATA).index
    weights = np.array([1.0, 2.0, 3.0])
    return Examples(DATA.y, None, law, law, RowIndex(alias_table(weights), np.array([0, 3, 5], dtype=np.uint32)))


def _dice(seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([seed_state(rng) for _ in range(N_STREAMS)])


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_examples_follow_the_law(mix):
    n = 200_000
    out = np.empty((n, 2), dtype=np.uint64)
    draw_examples(_dice(), mix, _examples(), np.empty_like(out), out)
    expected = {(a, NO_PARTNER): mix * w / 6 for a, w in ((0, 1), (3, 2), (5, 3))}
    expected |= dict.fromkeys(((1, 0), (2, 0), (2, 1), (4, 3)), (1 - mix) / 4)
    counts = dict.fromkeys(expected, 0)
    found, times = np.unique(out, axis=0, return_counts=True)
    for (a, b), count in zip(found, times, strict=True):
        counts[int(a), b if b == NO_PARTNER else int(b)] += int(count)
    for example, p in expected.items():
        # five standard deviations of a binomial count
        assert abs(counts[example] - n * p) <= 5 * np.sqrt(n * p * (1 - p))


def test_examples_do_not_depend_on_how_calls_are_cut():
    whole, parts = np.empty((1000, 2), dtype=np.uint64), np.empty((1000, 2), dtype=np.uint64)
    one, other = _dice(), _dice()
    draw_examples(one, 0.4, _examples(), np.empty_like(whole), whole)
    for start, stop in ((0, 1), (1, 700), (700, 1000)):
        draw_examples(other, 0.4, _examples(), np.empty_like(parts), parts[start:stop])
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(one, other)


def test_rates():
    i = np.arange(1, 50)
    np.testing.assert_allclose([rate_at(PEGASOS, 0.1, 10.0, k) for k in i], 1 / (0.1 * i))
    np.testing.assert_allclose([rate_at(PEGASOS, 0.0, 0.3, k) for k in i], 0.3)
    np.testing.assert_allclose([rate_at(SQRT, 0.1, 0.3, k) for k in i], 0.3 / np.sqrt(i))
    np.testing.assert_allclose([rate_at(CONSTANT, 0.1, 0.3, k) for k in i], 0.3)
