from __future__ import annotations

import numpy as np

from experiments.datasets.jester import read_ratings


def test_the_ratings_have_the_published_size(real_data):
    ratings = read_ratings()
    known = ratings[~np.isnan(ratings)]
    assert ratings.shape == (24983, 100)
    assert len(known) == 1_810_455
    assert -9.95 <= known.min() <= known.max() <= 10.0
