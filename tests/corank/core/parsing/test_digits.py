"""The shortest text of doubles, held against Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from corank.core.parsing.digits import LONGEST, number_lines


def expected(values: np.ndarray) -> bytes:
    return "".join(f"{value!r}\n" for value in values.tolist()).encode()


@given(st.lists(st.floats(), max_size=20))
@example([0.0, -0.0, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 2.2250738585072014e-308])
@example([1e15, 1e16, 9007199254740992.0, 9007199254740993.0, 1e17, 123456789012345680.0, 1e22, 1e23, 9.5e-5, 1e-4])
@example([1.0, 10.0, 100.0, 0.1, 0.5, 1024.0, 3.0e-5, 1.5, 1e-5, 100000.5])
def test_any_doubles(values: list[float]) -> None:
    assert number_lines(np.array(values)) == expected(np.array(values))


def test_doubles_of_random_bits_and_of_every_power() -> None:
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 2**64, 100_000, dtype=np.uint64).view(np.float64)
    few_digits = rng.integers(-(10**6), 10**6, 50_000) / 10.0 ** rng.integers(0, 12, 50_000)
    twos = np.ldexp(1.0, np.arange(-1074, 1024))
    with np.errstate(over="ignore"):
        around = np.concatenate([twos, np.nextafter(twos, 0), np.nextafter(twos, np.inf)])
    tens = np.array([float(f"{d}e{k}") for k in range(-324, 309) for d in (1, 2, 5, 9)])
    for values in (
        anything[np.isfinite(anything)],
        few_digits,
        around,
        tens[np.isfinite(tens)],
        rng.normal(size=50_000),
    ):
        assert number_lines(values) == expected(values)
    assert max(map(len, expected(anything[np.isfinite(anything)]).splitlines())) < LONGEST


def test_other_layouts_and_no_numbers() -> None:
    values = np.arange(12.0).reshape(3, 4)[:, 1] / 7
    assert number_lines(values) == expected(values)
    assert number_lines(np.empty(0)) == b""
