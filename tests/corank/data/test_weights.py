"""Valid weights, and the messages for invalid ones."""

import numpy as np
import pandas as pd
import pytest

from corank.data.inputs import as_scores, as_weights, require_weight
from corank.data.ranking import RankingData
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
        (["a", 1, 2], "weights cannot be read as numbers"),
    ],
)
def test_bad_weights_are_refused_in_a_sentence(weights, message):
    with pytest.raises(InputError, match=message):
        as_weights(weights, 3, "pair")


@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.0, 2.0, 1.0, 0.0, 1.0])])
def test_rows_that_count_are_scored_or_in_a_pair_that_counts(weights):
    w, X = np.ones(6) if weights is None else weights, np.zeros((6, 1))
    y = np.array([1.0, 2.0, np.nan, 0.0, 3.0, np.nan])
    scored = [row for row in range(6) if not np.isnan(y[row]) and w[row] > 0]
    data = RankingData.of(X, y, weights=weights)
    assert data.scored_rows.tolist() == scored
    assert data.unscored_rows.tolist() == [row for row in range(6) if np.isnan(y[row]) and w[row] > 0]
    pairs = [(0, 1), (3, 2), (5, 4), (3, 5)]
    named = {row for pair in pairs if w[pair[0]] * w[pair[1]] > 0 for row in pair}
    data = RankingData.of_pairs(X, pairs, weights=weights)
    assert data.scored_rows.tolist() == sorted(named)
    assert data.unscored_rows.tolist() == [row for row in range(6) if row not in named and w[row] > 0]
    own = RankingData.of_pairs(X, pairs, weights=weights, pair_weights=[1, 2, 0, 3])
    want = [c * w[i] * w[j] for c, (i, j) in zip([1, 2, 0, 3], pairs, strict=True)]
    assert own.pair_weight.tolist() == want


def test_weights_that_leave_nothing_are_refused_in_a_sentence():
    require_weight(0.5, "pair")
    with pytest.raises(InputError, match="no pair has a positive weight"):
        require_weight(0.0, "pair")


@pytest.mark.parametrize("extreme", [1e-308, 1e-200, 1e200, 1e300])
def test_weights_whose_products_would_be_lost_are_named(extreme):
    X = np.arange(4.0)[:, None]
    with pytest.raises(InputError, match=r"sample_weight is 1e.\d+ at row 1"):
        RankingData.of(X, [0, 1, 2, 3], weights=[0.0, extreme, 1.0, 1.0])
    with pytest.raises(InputError, match=r"pair_weight is 1e.\d+ at pair 0"):
        RankingData.of_pairs(X, [[1, 0], [2, 1]], pair_weights=[extreme, 1.0])


BIG = 2**53 + 1


@pytest.mark.parametrize(
    "y",
    [
        np.array([1, BIG, 0], dtype=np.uint64),
        np.array([1, -BIG, 0]),
        np.array([1, -1, 0]).astype(np.uint64),
        [1, BIG, None],
        [1, 2**64 + 1, 0],
        pd.Series([1, BIG, 0], dtype="Int64"),
        np.array([[1], [BIG], [0]], dtype=np.uint64),
    ],
)
def test_integers_that_would_be_rounded_are_refused(y):
    with pytest.raises(InputError, match=r"y is -?\d+ at row 1, an integer beyond 2\^53"):
        as_scores(y, 3)


def test_large_integers_that_are_not_rounded_pass():
    assert as_scores(np.array([2**60, 2**53, 0], dtype=np.uint64), 3).tolist() == [2.0**60, 2.0**53, 0.0]
    assert as_scores([1e300, 2**70, 0], 3).tolist() == [1e300, 2.0**70, 0.0]
