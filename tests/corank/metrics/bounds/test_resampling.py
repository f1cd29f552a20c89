from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from corank.errors import InputError
from corank.metrics.bounds import kpartite_interval, resampling_interval
from corank.metrics.bounds.kpartite import judged_rows
from corank.metrics.bounds.resampling import _ends, _of_errors, _WeightedError


def rows(n, rng, shift=1.0):
    y = rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    return np.round(shift * y + rng.normal(size=n), 1), y


@pytest.mark.parametrize(("n", "k"), [(10, 0), (10, 3), (40, 39), (25, 25)])
def test_errors_of_zero_and_one_give_the_interval_of_clopper_and_pearson(n, k):
    errors = np.repeat([0.0, 1.0], [n - k, k])
    low, high = _ends(n, 0.001, np.random.default_rng(0), lambda w: _of_errors(w, errors, 1.0))
    exact = beta.ppf(0.001, k, n - k + 1) if k else 0.0, beta.ppf(0.999, k + 1, n - k) if k < n else 1.0
    np.testing.assert_allclose((low, high), exact, atol=0.02)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_weighted_error_is_a_sum_over_pairs(power):
    rng = np.random.default_rng(1)
    scores, y = rows(30, rng)
    w = rng.random((4, 30))
    order = np.argsort(-scores, kind="stable")
    weighted = _WeightedError.of(judged_rows(scores, y, None), power)
    losses, masses = weighted(w)
    f, g = scores[order], y[order]
    for at in range(4):
        want = sum(
            w[at, i] * w[at, j] * float(g[j] - g[i]) ** power * ((f[i] > f[j]) + 0.5 * (f[i] == f[j]))
            for i in range(30)
            for j in range(30)
            if g[i] < g[j]
        )
        assert (weighted.costs * losses[at]).sum() == pytest.approx(want)
        np.testing.assert_allclose(masses[at], [w[at, g == grade].sum() for grade in range(3)])


def test_observed_shares_are_the_default_and_equal_given_ones():
    scores, y = rows(200, np.random.default_rng(2))
    counts = np.bincount(y) / 200
    one = resampling_interval(scores, y)
    other = resampling_interval(scores, y, shares={grade: float(share) for grade, share in enumerate(counts)})
    assert (one.low, one.high, one.error) == (other.low, other.high, pytest.approx(other.error))
    assert one.error == pytest.approx(kpartite_interval(scores, y).error)
    assert resampling_interval(scores, y) == one  # the seed is fixed


def test_given_shares_weight_the_pairs_of_grades():
    scores, y = rows(300, np.random.default_rng(3))
    low, high = scores[y == 0], scores[y == 2]
    between = np.mean((low[:, None] > high) + 0.5 * (low[:, None] == high))
    found = resampling_interval(scores, y, shares={0: 0.5, 1: 0.0, 2: 0.5})
    assert found.error == pytest.approx(between)
    assert found.low < between < found.high


@pytest.mark.long
def test_every_interval_is_inside_its_range_and_narrower_than_the_proved_one():
    rng = np.random.default_rng(4)
    scores, y = rows(400, rng)
    for qid in (None, np.repeat(np.arange(80), 5)):
        for shares in ("observed",) if qid is not None else ("observed", "unknown"):
            found, proved = resampling_interval(scores, y, qid, shares=shares), kpartite_interval(scores, y, qid)
            assert 0.0 <= found.low < found.error < found.high <= found.worst
            assert found.high - found.low < 0.8 * (proved.high - proved.low)
    wide = resampling_interval(scores, y, n_models=50)
    assert wide.low < resampling_interval(scores, y).low


def test_all_orders_right_still_leave_an_error_possible():
    y = np.repeat([0, 1], 20)
    for shares in ("observed", "unknown"):
        found = resampling_interval(y, y, shares=shares)
        assert found.error == found.low == 0.0
        assert 0.02 < found.high < 0.4


@pytest.mark.long
@pytest.mark.parametrize("shares", ["observed", "unknown", "queries"])
def test_intervals_hold_as_often_as_they_say(shares):
    """True errors are known: normal scores of two grades, whose errors have a closed form."""
    from scipy.stats import norm

    true, n, held = norm.cdf(-1.2 / np.sqrt(2)), 60, 0
    rng = np.random.default_rng(5)
    for _ in range(300):
        if shares == "queries":
            y = np.tile([0, 1], n)
            found = resampling_interval(1.2 * y + rng.normal(size=2 * n), y, np.repeat(np.arange(n), 2))
        else:
            y = rng.random(n) < 0.3
            y[:2] = [False, True]
            found = resampling_interval(1.2 * y + rng.normal(size=n), y, shares=shares)
        held += found.low <= true <= found.high
    assert held >= 0.93 * 300  # 95 % less two standard errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shares": "true"}, "shares is 'true'"),
        ({"shares": {0: 0.5, 1: 0.5}}, "a share for each grade"),
        ({"shares": {0: 1.0, 1: 0.0, 2: 0.0}}, "at least two above 0"),
        ({"shares": "unknown", "qid": [0, 0, 1]}, "leave out shares"),
        ({"delta": 0.0}, "delta is 0"),
        ({"n_models": 10**6}, "draws; pass a larger delta"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        resampling_interval([0.1, 0.2, 0.3], [0, 1, 2], **changes)


def test_many_grades_are_refused():
    with pytest.raises(InputError, match="300 different grades"):
        resampling_interval(np.arange(300.0), np.arange(300.0))
