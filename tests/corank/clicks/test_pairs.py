import numpy as np
import pytest

import corank
from corank.clicks import PositionBias, click_pairs, position_bias
from corank.data.io.clicks import ClickLog
from corank.errors import InputError
from helpers.clicks import rows_of, show, swapped


@pytest.mark.parametrize("against", ["query", "shown"])
def test_pairs_are_those_of_a_plain_loop(against):
    rng = np.random.default_rng(0)
    r = rng.random((6, 5))
    theta = np.array([1.0, 0.5, 0.25])
    log = show(rng, r, theta, 80, swapped(rng, 5))
    qid, docids = rows_of(r)
    made = click_pairs(log, qid, docids, bias=PositionBias(theta, "power"), clip=0.3, against=against)
    plain = {}
    for row in np.flatnonzero(log.clicked):
        better = int(log.qid[row]) * 5 + int(log.docids[row])
        same = log.impression == log.impression[row]
        others = range(5) if against == "query" else map(int, log.docids[same])
        for other in others:
            worse = int(log.qid[row]) * 5 + other
            if worse != better:
                weight = 1 / max(theta[log.position[row] - 1], 0.3)
                plain[better, worse] = plain.get((better, worse), 0.0) + weight
    assert dict(zip(map(tuple, made.pairs.tolist()), made.pair_weight, strict=True)) == pytest.approx(plain)
    assert made.n_clicks == log.clicked.sum()
    assert made.n_clipped == np.count_nonzero(log.clicked & (log.position == 3))


def test_weights_undo_what_the_old_order_did_to_clicks():
    """The old ranker shows by column 1; people want column 0. Plain clicks learn the old order, weighed ones do not."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200 * 6, 2))
    r = np.clip(0.4 + 0.15 * X[:, 0], 0, 1).reshape(200, 6)
    old = X[:, 1].reshape(200, 6)
    theta = np.arange(1.0, 7) ** -1.5
    log = show(rng, r, theta, 12_000, lambda query, number: np.argsort(-old[query]))
    qid, docids = rows_of(r)
    slopes = {}
    for name, bias in (("plain", PositionBias.power(0.0, 6)), ("weighed", PositionBias(theta, "power"))):
        made = click_pairs(log, qid, docids, bias=bias)
        coef = corank.SPD().fit(X, pairs=made.pairs, pair_weight=made.pair_weight).coef_
        slopes[name] = coef[1] / coef[0]
    assert slopes["plain"] > 0.5
    assert abs(slopes["weighed"]) < 0.1


def test_propensities_of_the_log_and_what_is_missing():
    log = ClickLog.of(["a", "a", "b"], ["x", "y", "x"], [1, 2, 1], [0, 1, 1], propensity=[1.0, 0.5, 0.8])
    made = click_pairs(log, ["a", "a"], ["x", "y"])
    assert made.pairs.tolist() == [[1, 0]]
    assert made.pair_weight.tolist() == [2.0]
    assert (made.n_clicks, made.n_missing) == (1, 1)
    with pytest.raises(InputError, match="has no propensities"):
        click_pairs(ClickLog.of(["a"], ["x"], [1], [1]), ["a"], ["x"])
    with pytest.raises(InputError, match="none of the 2 clicks"):
        click_pairs(log, ["c"], ["x"])
    with pytest.raises(InputError, match="rows repeat"):
        click_pairs(log, ["a", "a"], ["x", "x"])


def test_a_log_without_clicks_is_told():
    log = ClickLog.of(["a"], ["x"], [1], [0])
    with pytest.raises(InputError, match="no click in 1 lists"):
        click_pairs(log, ["a"], ["x"], bias=PositionBias.power(1.0, 1))
    with pytest.raises(InputError, match="no click in 1 lists"):
        position_bias(log)
