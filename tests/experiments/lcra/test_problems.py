from __future__ import annotations

import numpy as np
import pytest

from experiments.lcra.problems import problems

SYNTHETIC = ("redundant views", "wide redundant views", "split signal")


@pytest.mark.parametrize("name", problems())
def test_a_draw_divides_rows_and_columns(name, request):
    if name not in SYNTHETIC:
        request.getfixturevalue("real_data")
    problem = problems()[name]
    draw = problem.draw(np.random.default_rng(3))
    assert sorted([*draw.train, *draw.test]) == list(range(len(draw.y)))
    assert sorted(np.concatenate(draw.views)) == list(range(draw.X.shape[1]))
    if problem.metric == "AP":
        assert not set(draw.qid[draw.train]) & set(draw.qid[draw.test])
    again = problem.draw(np.random.default_rng(3))
    np.testing.assert_array_equal(again.X, draw.X)
    np.testing.assert_array_equal(again.test, draw.test)
