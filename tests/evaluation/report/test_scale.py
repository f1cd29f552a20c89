from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.evaluation.report.scale import Scale

NUMBERS = st.floats(-1e9, 1e9).map(lambda x: round(x, 6))


@given(st.lists(NUMBERS, min_size=1, max_size=6), st.integers(2, 8))
def test_every_number_lies_on_the_line_and_ticks_are_round(values, n_ticks):
    scale = Scale.over(values, 10.0, 110.0, n_ticks)
    assert all(10.0 - 1e-6 <= scale(value) <= 110.0 + 1e-6 for value in values)
    assert 2 <= len(scale.ticks) <= n_ticks + 2
    steps = [b - a for a, b in zip(scale.ticks, scale.ticks[1:], strict=False)]
    assert max(steps) == pytest.approx(min(steps), rel=1e-6)
    leading = steps[0] / 10.0 ** math.floor(math.log10(steps[0]) + 1e-9)
    assert min(abs(leading - nice) for nice in (1, 2, 2.5, 5)) < 1e-5
    # what is written is the number, up to half a unit of the last digit that is written
    texts = [scale.text(tick) for tick in scale.ticks]
    assert len(set(texts)) == len(texts) or max(abs(scale.low), abs(scale.high)) >= 1e6


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 1], ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ([0.31, 0.48], ["0.30", "0.35", "0.40", "0.45", "0.50"]),
        ([-3, 3], ["−4", "−2", "0", "2", "4"]),
        ([0, 784], ["0", "200", "400", "600", "800"]),
    ],
)
def test_ticks_are_those_a_person_would_write(values, ticks):
    scale = Scale.over(values, 0, 1)
    assert [scale.text(tick) for tick in scale.ticks] == ticks


def test_places_are_linear_or_logarithmic():
    scale = Scale.over([2.0, 10.0], 200, 100)
    middle = scale.low + 0.25 * (scale.high - scale.low)
    assert scale(scale.low) == 200
    assert scale(scale.high) == 100
    assert scale(middle) == pytest.approx(175)
    decades = Scale.over([1e-6, 1e2], 0, 80, is_log=True)
    assert [decades(10.0**power) for power in (-6, -2, 2)] == pytest.approx([0, 40, 80])
    assert [decades.text(tick) for tick in decades.ticks] == ["10⁻⁶", "10⁻⁴", "0.01", "1", "100"]


@pytest.mark.parametrize("ends", [(6.0, 627.0), (3.0, 4.0), (5.0, 5.0), (1.0, 1e12), (0.02, 0.9), (3e-7, 8e-7)])
def test_logarithmic_ticks_lie_inside_and_are_few(ends):
    scale = Scale.over(ends, 0, 1, is_log=True)
    assert all(0 - 1e-9 <= scale(tick) <= 1 + 1e-9 for tick in scale.ticks)
    assert 1 <= len(scale.ticks) <= 6
    for tick in scale.ticks:
        base, _, power = scale.text(tick).partition("·10")
        raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
        said = float(base) * 10.0 ** int(power.translate(raised)) if power else None
        if said is None and base.startswith("10") and not base.isascii():
            said = 10.0 ** int(base[2:].translate(raised))
        assert (float(base) if said is None else said) == pytest.approx(tick, rel=0.01)


def test_one_number_has_room_on_both_sides():
    for value in (0.0, 5.0, -2e-7):
        scale = Scale.over([value], 0, 1)
        assert 0 < scale(value) < 1


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="no finite number"):
        Scale.over([float("nan")], 0, 1)
    with pytest.raises(ValueError, match="cannot hold"):
        Scale.over([0.0, 1.0], 0, 1, is_log=True)
