from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.losses import LOSSES, Loss

MARGINS = np.linspace(-40.0, 40.0, 1601) + 0.013
TARGETS = {"hinge": (-1.0, 1.0), "squared": (-2.0, 0.5, 3.0), "logistic": (0.0, 0.3, 1.0), "squared_hinge": (-1.0, 1.0)}


@pytest.mark.parametrize("name", LOSSES)
def test_pull_is_the_negative_slope_of_the_value(name):
    loss, h = Loss.of(name), 1e-6
    for t in TARGETS[name]:
        slope = (loss.value(t, MARGINS + h) - loss.value(t, MARGINS - h)) / (2 * h)
        np.testing.assert_allclose(loss.pull(t, MARGINS), -slope, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_convex_with_the_stated_curvature(name):
    loss = Loss.of(name)
    for t in TARGETS[name]:
        second = -np.diff(loss.pull(t, MARGINS)) / np.diff(MARGINS)
        assert (second >= -1e-9).all()
        assert second.max() <= loss.curvature + 1e-9


def test_logistic_value_is_the_cross_entropy():
    m, t = np.linspace(-5, 5, 11), 0.3
    p = 1 / (1 + np.exp(-m))
    np.testing.assert_allclose(Loss.of("logistic").value(t, m), -t * np.log(p) - (1 - t) * np.log(1 - p))


def test_logistic_survives_huge_margins():
    loss = Loss.of("logistic")
    np.testing.assert_allclose(loss.value(1.0, [-1e4, 1e4]), [1e4, 0.0])
    np.testing.assert_allclose(loss.pull(1.0, [-1e4, 1e4]), [1.0, 0.0])


@given(st.floats(0.01, 1.0))
def test_targets_of_pairs(z):
    assert Loss.of("squared").pair_target(z) == z
    assert Loss.of("logistic").pair_target(z) == (1 + z) / 2
    assert Loss.of("hinge").pair_target(z) == Loss.of("squared_hinge").pair_target(z) == 1.0


def test_unknown_loss_gets_one_sentence():
    with pytest.raises(InputError, match="loss is 'absolute'; choose one of hinge, squared, logistic, squared_hinge"):
        Loss.of("absolute")


@pytest.mark.parametrize(
    ("name", "y", "rows", "sentence"),
    [
        ("hinge", [0.0, 1.0], True, "hinge loss on single rows needs scores −1 and 1, but y runs from 0 to 1"),
        ("logistic", [0.0, 2.0], True, r"logistic loss needs scores in \[0, 1\], but y runs from 0 to 2"),
        ("logistic", [5.0, 7.0], False, "differ by at most 1 inside a query, but some differ by 2"),
    ],
)
def test_scores_a_loss_cannot_learn_from(name, y, rows, sentence):
    with pytest.raises(InputError, match=sentence):
        Loss.of(name).require_scores(np.array(y), np.zeros(2, dtype=np.int64), rows)


def test_scores_a_loss_can_learn_from():
    codes = np.array([0, 0, 1, 1])
    Loss.of("logistic").require_scores(np.array([5.0, 6.0, 0.0, 1.0]), codes, False)
    Loss.of("logistic").require_scores(np.array([0.1, 0.2, 0.0, 1.0]), codes, True)
    Loss.of("hinge").require_scores(np.array([5.0, 6.0, 0.0, 1.0]), codes, False)
    Loss.of("hinge").require_scores(np.array([1.0, -1.0, 1.0, 1.0]), codes, True)
