"""Active partners against a loop over pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corank.data.ranking import RankingData
from corank.models.linear.ranksvm import active_partners


@given(seed=st.integers(0, 10_000), weighted=st.booleans())
def test_partners_are_counted_as_a_loop_counts_them(seed, weighted):
    rng = np.random.default_rng(seed)
    n = 25
    y, qid, f = rng.integers(0, 3, n).astype(float), rng.integers(0, 4, n), rng.normal(size=n)
    y[rng.random(n) < 0.2] = np.nan
    weights = rng.integers(0, 2, n).astype(float) if weighted else None
    counts = np.zeros(n, dtype=int)
    for i in range(n):
        for j in range(n):
            present = weights is None or (weights[i] > 0 and weights[j] > 0)
            if present and qid[i] == qid[j] and y[i] > y[j] and f[i] - f[j] < 1.0:
                counts[i] += 1
                counts[j] += 1
    data = RankingData.of(np.zeros((n, 1)), y, qid, weights)
    np.testing.assert_array_equal(active_partners(data, f), counts)
