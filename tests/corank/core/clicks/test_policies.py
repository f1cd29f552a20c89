from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from corank.core.clicks.updates import EPSILON_GREEDY, PLACKETT_LUCE, best_first, draw_list, log_add, shuffle
from corank.core.random import seed_state


def draw(policy, epsilon, scores, rng_state, k):
    n = len(scores)
    shown, chances = np.zeros(k, dtype=np.int64), np.zeros(k)
    draw_list(policy, epsilon, scores, rng_state, shown, chances, np.zeros(n + 1), np.zeros(n, dtype=np.int64))
    return tuple(shown.tolist()), chances


def plackett_luce(scores, rows):
    left, chances = list(range(len(scores))), []
    for row in rows:
        chances.append(np.exp(scores[row]) / np.exp(scores[left]).sum())
        left.remove(row)
    return np.array(chances)


def epsilon_greedy(epsilon, scores, rows):
    left, chances = list(range(len(scores))), []
    for row in rows:
        best = [i for i in left if scores[i] == scores[left].max()]
        chances.append(epsilon / len(left) + (1.0 - epsilon) * (row in best) / len(best))
        left.remove(row)
    return np.array(chances)


LAWS = {
    "Plackett-Luce": (PLACKETT_LUCE, 0.0, lambda scores, rows: plackett_luce(scores, rows)),
    "epsilon": (EPSILON_GREEDY, 0.3, lambda scores, rows: epsilon_greedy(0.3, scores, rows)),
    "greedy": (EPSILON_GREEDY, 0.0, lambda scores, rows: epsilon_greedy(0.0, scores, rows)),
    "random": (EPSILON_GREEDY, 1.0, lambda scores, rows: epsilon_greedy(1.0, scores, rows)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("scores", [np.array([0.5, -1.0, 1.0, 0.0]), np.array([1.0, 0, 1, 1])], ids=["all", "ties"])
@pytest.mark.parametrize("k", [2, 4])
def test_lists_have_their_chances_and_know_them(law, scores, k):
    policy, epsilon, chances_of = law
    n, rng_state, counts = 20_000, seed_state(np.random.default_rng(1)), {}
    for _ in range(n):
        rows, chances = draw(policy, epsilon, scores, rng_state, k)
        if rows not in counts:
            np.testing.assert_allclose(np.exp(chances), chances_of(scores, rows), rtol=1e-12)
        counts[rows] = counts.get(rows, 0) + 1
    for rows in permutations(range(4), k):
        p = chances_of(scores, rows).prod()
        assert abs(counts.get(rows, 0) - n * p) <= 5.0 * np.sqrt(n * p * (1.0 - p)) + 1e-9


def test_scores_of_any_size_are_drawn_from():
    rng_state = seed_state(np.random.default_rng(0))
    rows, chances = draw(PLACKETT_LUCE, 0.0, np.array([0.0, 1e6, -1e6, 5.0]), rng_state, 4)
    assert rows == (1, 3, 0, 2)
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances, [0.0, -np.log1p(np.exp(-5.0)), 0.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("k", [1, 3, 7, 20])
def test_the_best_come_first_and_ties_keep_their_order(k):
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.integers(0, 6, 20).astype(float)
        order = np.arange(20)
        best_first(scores, order, k)
        np.testing.assert_array_equal(order[:k], np.argsort(-scores, kind="stable")[:k])
        np.testing.assert_array_equal(np.sort(order), np.arange(20))


def test_shuffles_are_fair():
    rng_state, counts = seed_state(np.random.default_rng(0)), {}
    for _ in range(6_000):
        order = np.arange(3)
        shuffle(order, rng_state)
        counts[tuple(order.tolist())] = counts.get(tuple(order.tolist()), 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 1_000) < 150 for count in counts.values())


def test_logarithms_are_added():
    assert log_add(1.0, 2.0) == pytest.approx(np.logaddexp(1.0, 2.0))
    assert log_add(-np.inf, 3.0) == 3.0
    assert log_add(-np.inf, -np.inf) == -np.inf
