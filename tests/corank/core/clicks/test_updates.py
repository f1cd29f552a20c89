from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import combinations, permutations, product

import numpy as np
import pytest

from corank.core.clicks.updates import (
    EPSILON_GREEDY,
    UpdateSettings,
    exchange_probability,
    learn_list,
    list_scratch,
    n_examined,
    pairwise_gradient,
    pdgd_gradient,
)
from corank.core.pairs.losses import HINGE
from corank.core.rows.access import as_core_rows

RNG = np.random.default_rng(0)


def chance_of(scores, rows, number=float):
    """Probability of a list under Plackett–Luce, factor by factor."""
    exp = (lambda x: Decimal(float(x)).exp()) if number is Decimal else np.exp
    left, p = list(range(len(scores))), number(1)
    for row in rows:
        p *= exp(scores[row]) / sum((exp(scores[i]) for i in left), number(0))
        left.remove(row)
    return p


def exchanged(rows, i, j):
    rows = list(rows)
    rows[i], rows[j] = rows[j], rows[i]
    return rows


def tails(scores, rows):
    left = [i for i in range(len(scores)) if i not in rows]
    out = np.full(len(rows) + 1, -np.inf)
    out[-1] = np.logaddexp.reduce(scores[left]) if left else -np.inf
    for rank in range(len(rows) - 1, -1, -1):
        out[rank] = np.logaddexp(out[rank + 1], scores[rows[rank]])
    return out


@pytest.mark.parametrize("size", [1.0, 30.0, 2_000.0])
@pytest.mark.parametrize(("n", "k"), [(7, 4), (4, 4), (2, 2)])
def test_the_share_of_the_exchanged_list_is_the_ratio_of_chances(size, n, k):
    for _ in range(5):
        scores = size * RNG.normal(size=n)
        rows = RNG.permutation(n)[:k]
        for i, j in combinations(range(k), 2):
            with localcontext() as context:
                context.prec, context.Emin, context.Emax = 60, -(10**8), 10**8
                one, other = (chance_of(scores, order, Decimal) for order in (rows, exchanged(rows, i, j)))
                wanted = float(other / (one + other))
            found = exchange_probability(scores[rows], tails(scores, rows), i, j)
            assert found == pytest.approx(wanted, rel=1e-8, abs=1e-300)


def test_rows_down_to_the_one_after_the_last_click_count_as_seen():
    for clicks, seen in (((0, 0, 0), 0), ((1, 0, 0), 2), ((0, 1, 0, 0), 3), ((0, 0, 1), 3), ((1,), 1)):
        assert n_examined(np.array(clicks, dtype=bool)) == seen


def gradient_of(scores, rows, clicks):
    out = np.zeros(len(scores))
    unshown = [i for i in range(len(scores)) if i not in rows]
    log_unshown = np.logaddexp.reduce(scores[unshown]) if unshown else -np.inf
    pdgd_gradient(scores, np.array(rows), log_unshown, np.array(clicks, dtype=bool), np.zeros(20), out)
    return out[: len(rows)]


def test_an_update_is_the_gradient_of_the_probabilities_of_preferences():
    """d/dw Σ ρ P(a above b), ρ held fixed, by differences."""
    X, w = RNG.normal(size=(6, 3)), RNG.normal(size=3)
    rows, clicks = np.array([4, 0, 2, 5]), np.array([0, 1, 1, 0], dtype=bool)
    scores = X @ w
    weights = {}
    for a in (1, 2):
        for b in (0, 3):
            i, j = min(a, b), max(a, b)
            one, other = chance_of(scores, rows), chance_of(scores, exchanged(rows, i, j))
            weights[a, b] = other / (one + other)

    def value(w):
        f = X @ w
        return sum(rho / (1.0 + np.exp(f[rows[b]] - f[rows[a]])) for (a, b), rho in weights.items())

    gradient = [(value(w + 1e-6 * e) - value(w - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(gradient_of(scores, rows, clicks) @ X[rows], gradient, rtol=1e-7)


@pytest.mark.parametrize("stops_without_click", [False, True])
def test_rows_of_one_grade_are_not_told_apart_in_expectation(stops_without_click):
    """All lists and all patterns of clicks: where grades are equal, nothing is learnt, however scores differ."""
    scores, click, stop = np.array([1.5, -0.5, 0.3, 0.0]), np.array([0.7, 0.3, 0.7, 0.7]), 0.4

    def chance(order, pattern, rank=0):
        if rank == len(order):
            return 1.0
        p = click[order[rank]] if pattern[rank] else 1.0 - click[order[rank]]
        end = stop if pattern[rank] or stops_without_click else 0.0
        return p * (end * (not any(pattern[rank + 1 :])) + (1.0 - end) * chance(order, pattern, rank + 1))

    expected = np.zeros((4, 4))
    for order in permutations(range(4), 3):
        for pattern in product([False, True], repeat=3):
            p = chance_of(scores, order) * chance(order, pattern)
            examined = n_examined(np.array(pattern))
            for a, b in product(range(examined), repeat=2):
                if pattern[a] and not pattern[b]:
                    unshown = tails(scores, list(order))
                    share = exchange_probability(scores[list(order)], unshown, min(a, b), max(a, b))
                    expected[order[a], order[b]] += p * share
                    expected[order[b], order[a]] -= p * share
    alike = [0, 2, 3]
    np.testing.assert_allclose(expected[np.ix_(alike, alike)], 0.0, atol=1e-15)
    assert (expected[alike, 1] > 0.01).all()


def test_the_pairwise_gradient_is_that_of_the_loss():
    f, out = np.array([0.0, 2.0, 0.5]), np.zeros(3)
    moved = pairwise_gradient(HINGE, f, np.array([1, 2, 0]), np.array([True, False, True]), out)
    # row 1 is 1.5 above row 2, row 0 half below it
    assert moved
    assert out.tolist() == [0.0, -1.0, 1.0]
    assert not pairwise_gradient(HINGE, f, np.array([1, 2, 0]), np.zeros(3, dtype=bool), out)


def test_a_greedy_update_uses_the_current_weights():
    X, w = RNG.normal(size=(4, 3)), np.zeros(3)
    scratch = list_scratch(4, 2)
    scratch.shown[:], scratch.clicks[:] = [3, 1], [True, False]
    settings = UpdateSettings(EPSILON_GREEDY, HINGE, 0.5, 1.0, 1.0)
    for _ in range(2):
        margin = (X[3] - X[1]) @ w
        before = w.copy()
        learn_list(as_core_rows(X), np.arange(4), np.empty(0), w, settings, 0, 2, scratch)
        np.testing.assert_allclose(w - before, X[3] - X[1] if margin < 1.0 else [0.0, 0.0, 0.0])
