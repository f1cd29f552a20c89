from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from corank_lab.records.records import Records
from corank_lab.screening import ScreeningReplay, simulate
from corank_lab.screening.project import ScreeningPlan
from corank_lab.screening.simulate import plot_recall, read_by_accepted_error
from helpers.records import collection


def replay(found):
    return ScreeningReplay(0, np.arange(len(found)), np.array(found, dtype=bool), 0.0, len(found), 1.0)


def test_measures_by_hand():
    """Relevant at positions 1, 2 and 9 of 10: mean 4; 95 % at 9; recall 1/3 after 10 %."""
    found = replay([1, 1, 0, 0, 0, 0, 0, 0, 1, 0])
    assert found.atd == pytest.approx(0.4)
    assert found.at(0.95) == 9
    assert found.wss95 == pytest.approx(0.1 - 0.05)
    assert found.recall10 == pytest.approx(1 / 3)
    assert found.curve.tolist() == pytest.approx([1 / 3, *[2 / 3] * 7, 1, 1])


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_is_the_area_to_the_perfect_curve(seed):
    """Areas under the recall curves, step by step: (perfect − actual) / (perfect − worst)."""
    found = np.random.default_rng(seed).random(40) < 0.3
    perfect, actual, worst = (np.cumsum(order).sum() for order in (np.sort(found)[::-1], found, np.sort(found)))
    assert replay(found).loss == pytest.approx((perfect - actual) / (perfect - worst))


def test_the_loss_is_0_for_the_perfect_and_1_for_the_worst_order():
    assert replay([1, 1, 0, 0, 0]).loss == 0.0
    assert replay([0, 0, 0, 1, 1]).loss == 1.0
    assert replay([0, 1, 0]).loss == 0.5
    assert np.isnan(replay([1, 1]).loss)


def test_95_percent_of_twenty_is_nineteen():
    found = replay([1] * 19 + [0] * 20 + [1])
    assert found.at(0.95) == 19
    assert found.wss95 == pytest.approx(21 / 40 - 0.05)
    # 10 % of the records, rounded up, is 5
    assert replay([1] * 5 + [0] * 36).recall10 == 1.0


def test_replays_find_relevant_records_early():
    records = collection(120, 15)
    y = records.labels > 0
    replays = simulate(records, 3)
    for seed, one in enumerate(replays):
        rng = np.random.default_rng(seed)
        pair = [int(rng.choice(np.flatnonzero(y))), int(rng.choice(np.flatnonzero(~y)))]
        assert sorted([*pair, *one.order]) == list(range(120))
        assert (y[one.order] == one.found).all()
        assert one.atd < 0.3  # at random: .5
        assert 0 < one.stop <= 118
        assert one.stop_recall == pytest.approx((1 + one.found[: one.stop].sum()) / y.sum())
    (again,) = simulate(records, [1])
    assert (again.order == replays[1].order).all()


def test_what_is_read_with_each_accepted_error():
    """With the accepted error of the plan, the share is that of the replays; a smaller error never reads less."""
    replays = simulate(collection(200, 12, seed=1), 3, confidence=0.9)
    shares = read_by_accepted_error(replays, ScreeningPlan(confidence=0.9))
    assert shares["1 in 10"] == pytest.approx(np.mean([item.stop / len(item.found) for item in replays]))
    assert list(shares) == ["1 in 5", "1 in 10", "1 in 20", "1 in 50"]
    assert list(shares.values()) == sorted(shares.values())
    assert read_by_accepted_error(replays, ScreeningPlan("consecutive")) == {}


def test_a_collection_that_cannot_be_replayed_is_refused():
    with pytest.raises(InputError, match="1 of 2 records are not judged"):
        simulate(Records(["a", "b"], ["tin", "tin ore"], ["", ""], labels=[1, np.nan]))
    with pytest.raises(InputError, match="1 of 2 records are relevant; a replay needs"):
        simulate(Records(["a", "b"], ["tin", "tin ore"], ["", ""], labels=[1, 0]))


def test_a_plot_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    plot_recall([replay([1, 0, 1, 0])], tmp_path / "recall.png", title="works")
    assert (tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["Donners_2021", "Sep_2021"])
def test_two_real_reviews_are_faster_than_random_order_and_text(real_data, name):
    """ASReview 3.0.8 by default has .092 and .229 over ten starts (docs/experiments/screening.md)."""
    from corank_lab.records.records import read_records

    path = real_data / "synergy_reviews" / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip("needs the SYNERGY reviews")
    atd = np.mean([one.atd for one in simulate(read_records(path), 3)])
    assert atd < {"Donners_2021": 0.06, "Sep_2021": 0.18}[name]
