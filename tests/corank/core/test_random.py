"""The random generator against an implementation in plain integers, and its distributions by counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corank.core.jit import jit
from corank.core.random import alias_table, draw_alias, next_u64, random_below, random_uniform, seed_state

WORD = 2**64


def xoshiro(state):
    """xoshiro256++ in Python's integers."""
    turn = lambda x, k: ((x << k) | (x >> (64 - k))) % WORD  # noqa: E731
    s0, s1, s2, s3 = state
    word = (turn((s0 + s3) % WORD, 23) + s0) % WORD
    shifted = (s1 << 17) % WORD
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    return word, [s0, s1, s2 ^ shifted, turn(s3, 45)]


@given(st.lists(st.integers(0, WORD - 1), min_size=4, max_size=4))
def test_words_equal_those_of_plain_integers(words):
    state = np.array(words, dtype=np.uint64)
    for _ in range(20):
        expected, words = xoshiro(words)
        assert int(next_u64(state)) == expected
        assert state.tolist() == words


def test_a_copied_state_resumes_and_the_zero_state_is_avoided():
    state = seed_state(np.random.default_rng(3))
    [next_u64(state) for _ in range(7)]
    saved = state.copy()
    assert [int(next_u64(state)) for _ in range(5)] == [int(next_u64(saved)) for _ in range(5)]

    class Zeros:
        def integers(self, low, high, size, dtype):
            return np.zeros(size, dtype=dtype)

    assert seed_state(Zeros()).any()


@jit
def count_below(state, n, draws):
    counts = np.zeros(n, dtype=np.int64)
    for _ in range(draws):
        counts[random_below(state, n)] += 1
    return counts


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_below_is_uniform(n):
    counts = count_below(seed_state(np.random.default_rng(n)), n, 200_000)
    assert counts.sum() == 200_000
    if n > 1:
        assert stats.chisquare(counts).pvalue > 1e-4


def test_below_rejects_the_overhang():
    # for n just above 2⁶³ almost half of all words are rejected; without that, low values would come twice as often
    n = np.uint64(2**63 + 2**62)
    state = seed_state(np.random.default_rng(0))
    draws = np.array([float(random_below(state, n)) for _ in range(4000)])
    assert stats.kstest(draws / float(n), "uniform").pvalue > 1e-4


def test_uniform_lies_in_the_unit_interval_evenly():
    state = seed_state(np.random.default_rng(1))
    draws = np.array([random_uniform(state) for _ in range(20_000)])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert stats.kstest(draws, "uniform").pvalue > 1e-4


def law(table):
    """Probability of each face, read off the table."""
    K = len(table)
    share = table[:, 0] / WORD
    p = np.bincount(table[:, 1].astype(np.int64), weights=1 - share, minlength=K) + share
    return p / K


weights = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e12)), min_size=1, max_size=60).filter(any)


@given(weights)
def test_an_alias_table_holds_the_weights(values):
    w = np.array(values)
    p = law(alias_table(w))
    np.testing.assert_allclose(p, w / w.sum(), rtol=1e-9, atol=1e-13)
    assert (p[w == 0] == 0).all()


@jit
def count_rolls(state, table, draws):
    counts = np.zeros(len(table), dtype=np.int64)
    for _ in range(draws):
        counts[draw_alias(next_u64(state), table)] += 1
    return counts


def test_rolls_follow_the_table():
    w = np.array([3.0, 0.0, 1.0, 0.5, 0.0, 7.0, 0.01])
    counts = count_rolls(seed_state(np.random.default_rng(2)), alias_table(w), 300_000)
    assert (counts[w == 0] == 0).all()
    assert stats.chisquare(counts[w > 0], 300_000 * (w / w.sum())[w > 0]).pvalue > 1e-4
