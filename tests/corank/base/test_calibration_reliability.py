from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from corank.base import reliability_curve
from corank.errors import InputError


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [1, 3, 10])
def test_it_is_the_curve_of_scikit_learn(strategy, n_bins):
    rng = np.random.default_rng(0)
    p = rng.random(500) ** 2
    y = rng.random(500) < p
    curve = reliability_curve(y, p, n_bins, strategy)
    observed, predicted = calibration_curve(y, p, n_bins=n_bins, strategy=strategy)
    np.testing.assert_allclose(curve.observed, observed)
    np.testing.assert_allclose(curve.predicted, predicted)
    assert curve.counts.sum() == 500


def test_expected_error_by_hand_and_unscored_rows():
    y, p = np.array([0.0, 0.0, 1.0, np.nan, 1.0]), np.array([0.1, 0.3, 0.2, 0.9, 0.8])
    curve = reliability_curve(y, p, n_bins=2)
    assert curve.counts.tolist() == [3, 1]
    assert curve.expected_error == pytest.approx((3 * abs(1 / 3 - 0.2) + abs(1 - 0.8)) / 4)


def test_grades_beyond_one_take_the_range_of_the_predictions():
    y, p = np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.0, 1.0, 3.0, 4.0])
    curve = reliability_curve(y, p, n_bins=2)
    assert curve.counts.tolist() == [2, 2]
    assert curve.expected_error == 0.0


def test_a_curve_can_be_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure, ax = pyplot.subplots()
    curve = reliability_curve([0, 1, 1], [0.1, 0.6, 0.9], n_bins=3)
    assert curve.plot(ax) is ax
    np.testing.assert_allclose(ax.lines[1].get_ydata(), curve.observed)
    pyplot.close(figure)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 1], [0.5]), "y has 2 scores for 1 rows"),
        (([0, 1], [0.5, np.nan]), "holds NaN or infinity; pass a vector of finite"),
        (([0, 1], ["a", "b"]), "p cannot be read as numbers"),
        (([1.0], [0.5], 1.5), "n_bins is 1.5; pass a whole number of at least 1"),
        (([np.nan], [0.5]), "contains no score"),
        (([1.0], [0.5], 0), "n_bins is 0"),
        (([1.0], [0.5], 2, "other"), "strategy is 'other'; pass 'uniform' or 'quantile'"),
    ],
)
def test_bad_input(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        reliability_curve(*arguments)
