"""Weights: what passes, and one sentence for what does not."""

import numpy as np
import pytest

from corank.data.weights import as_weights
from corank.errors import InputError


def test_weights_become_float64():
    w = as_weights([0, 1, 2], 3)
    assert w.dtype == np.float64
    assert w.tolist() == [0, 1, 2]
    assert as_weights([], 0).shape == (0,)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"weights has shape \(2,\) for 3 pairs; pass one weight per pair"),
        ([[1, 2, 3]], r"weights has shape \(1, 3\)"),
        ([1, 2, -3], "weights is -3.0 at pair 2; pass finite weights of at least 0"),
        ([1, np.nan, 3], "weights is nan at pair 1"),
        ([0, 0, 0], "weights is zero for all 3 pairs"),
        (["a", 1, 2], "weights must hold numbers"),
    ],
)
def test_bad_weights_are_refused_in_a_sentence(weights, message):
    with pytest.raises(InputError, match=message):
        as_weights(weights, 3, "pair")
