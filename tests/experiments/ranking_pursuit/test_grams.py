from __future__ import annotations

import numpy as np

from experiments.ranking_pursuit.grams import Grams


def test_a_width_without_any_similarity_is_blind(drawn):
    assert Grams(drawn, 2.0**-15).is_blind
    grams = Grams(drawn, 16.0)
    assert not grams.is_blind
    np.testing.assert_allclose(grams.whole, np.exp(-0.5 * drawn.distances / 256.0))
    np.testing.assert_allclose(grams.halves[0] * grams.halves[1], grams.whole, rtol=1e-6)
