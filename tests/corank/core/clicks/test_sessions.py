from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from corank.core.clicks.sessions import ClickProbabilities, draw_clicks, list_ndcg
from corank.core.random import seed_state
from corank.metrics import evaluate

USERS = [
    ClickProbabilities(np.array([0.1, 0.6, 0.9]), np.array([0.2, 0.5, 0.8]), 0.0, True),
    ClickProbabilities(np.array([0.1, 0.6, 0.9]), np.array([0.2, 0.5, 0.8]), 0.0, False),
    ClickProbabilities(np.array([0.1, 0.6, 0.9]), np.zeros(3), 1.0, True),
]
GRADES = np.array([1, 0, 2])


def probability(user, grades, pattern, rank=0):
    """Probability of a pattern of clicks, rank by rank."""
    if rank == len(grades):
        return 1.0
    grade = grades[rank]
    click = user.click[grade] * (rank + 1.0) ** -user.eta
    here = click if pattern[rank] else 1.0 - click
    stop = user.stop[grade] if pattern[rank] or not user.needs_click else 0.0
    ends = 1.0 if not any(pattern[rank + 1 :]) else 0.0
    return here * (stop * ends + (1.0 - stop) * probability(user, grades, pattern, rank + 1))


@pytest.mark.parametrize("user", USERS, ids=["after a click", "after any", "fading"])
def test_patterns_of_clicks_have_their_probabilities(user):
    n, rng_state = 40_000, seed_state(np.random.default_rng(0))
    clicks, counts = np.zeros(3, dtype=np.bool_), {}
    for _ in range(n):
        draw_clicks(user, GRADES, rng_state, clicks)
        counts[tuple(clicks.tolist())] = counts.get(tuple(clicks.tolist()), 0) + 1
    total = 0.0
    for pattern in product([False, True], repeat=3):
        p = probability(user, GRADES, pattern)
        total += p
        assert abs(counts.get(pattern, 0) - n * p) <= 5.0 * np.sqrt(n * p * (1.0 - p)) + 1e-9
    assert total == pytest.approx(1.0)


def test_ndcg_of_a_list_is_that_of_evaluate():
    grades, shown = np.array([0, 2, 1, 0, 1]), np.array([2, 0, 1])
    gains = np.exp2(grades) - 1.0
    ideal = 3.0 / np.log2(2) + 1.0 / np.log2(3) + 1.0 / np.log2(4)
    scores = np.zeros(5)
    scores[shown] = [3.0, 2.0, 1.0]
    assert list_ndcg(gains, shown, ideal) == pytest.approx(evaluate(grades, scores, None, "nDCG@3")["nDCG@3"].mean)
    assert list_ndcg(np.zeros(5), shown, 0.0) == 0.0
