from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy import sparse

from corank.core.clicks.policies import EPSILON_GREEDY, PLACKETT_LUCE
from corank.core.clicks.updates import (
    ClickPlan,
    flipped_share,
    learn_list,
    passed_over,
    pull_pairs,
    pull_pdgd,
    room_for,
)
from corank.core.pairs.losses import HINGE, LOGISTIC
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
            found = flipped_share(scores[rows], tails(scores, rows), i, j)
            assert found == pytest.approx(wanted, rel=1e-8, abs=1e-300)


def test_rows_down_to_the_one_after_the_last_click_count_as_seen():
    for clicks, seen in (((0, 0, 0), 0), ((1, 0, 0), 2), ((0, 1, 0, 0), 3), ((0, 0, 1), 3), ((1,), 1)):
        assert passed_over(np.array(clicks, dtype=bool)) == seen


def pulls_of(scores, rows, clicks):
    out = np.zeros((len(scores), 1))
    unshown = [i for i in range(len(scores)) if i not in rows]
    log_unshown = np.logaddexp.reduce(scores[unshown]) if unshown else -np.inf
    pull_pdgd(scores, scores[:, None], np.array(rows), log_unshown, np.array(clicks, dtype=bool), np.zeros(20), out)
    return out[: len(rows), 0]


def test_a_step_is_the_slope_of_the_chances_of_preferences():
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

    slope = [(value(w + 1e-6 * e) - value(w - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(pulls_of(scores, rows, clicks) @ X[rows], slope, rtol=1e-7)


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
            seen = passed_over(np.array(pattern))
            for a, b in product(range(seen), repeat=2):
                if pattern[a] and not pattern[b]:
                    unshown = tails(scores, list(order))
                    share = flipped_share(scores[list(order)], unshown, min(a, b), max(a, b))
                    expected[order[a], order[b]] += p * share
                    expected[order[b], order[a]] -= p * share
    alike = [0, 2, 3]
    np.testing.assert_allclose(expected[np.ix_(alike, alike)], 0.0, atol=1e-15)
    assert (expected[alike, 1] > 0.01).all()


def test_pairs_pull_by_their_loss():
    f, out = np.array([[0.0], [2.0], [0.5]]), np.zeros((3, 1))
    moved = pull_pairs(HINGE, f, np.array([1, 2, 0]), np.array([True, False, True]), out)
    # row 1 is 1.5 above row 2, row 0 half below it
    assert moved
    assert out[:, 0].tolist() == [0.0, -1.0, 1.0]
    assert not pull_pairs(HINGE, f, np.array([1, 2, 0]), np.zeros(3, dtype=bool), out)


def plan_of(policy, coupling, eta0=0.01, loss=LOGISTIC):
    return ClickPlan(policy, loss, 0.5, eta0, 1.0, coupling)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_agreement_is_the_slope_over_all_pairs_without_a_click(make):
    X, W = RNG.normal(size=(7, 5)), RNG.normal(size=(3, 5))
    sees = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 1]], dtype=float)
    W *= sees
    room = room_for(7, 3, 3, 5)
    shown, clicks = np.array([2, 5, 0]), np.array([False, True, False])
    free = [0, 1, 2, 3, 4, 6]

    def gap(W):
        f = X[free] @ W.T
        pairs = list(combinations(range(len(free)), 2))
        return np.mean(
            [sum(((f[a] - f[b])[v] - (f[a] - f[b])[u]) ** 2 for v in range(3) for u in range(3)) for a, b in pairs]
        )

    members, rows = np.arange(7), as_core_rows(make(X))
    moved = {}
    for coupling in (0.0, 1e-3):
        room.shown[:], room.clicks[:] = shown, clicks
        room.scores[:], room.of_views[:] = X @ W.mean(axis=0), X @ W.T
        new = W.copy()
        learn_list(rows, members, np.empty(0), new, sees, plan_of(PLACKETT_LUCE, coupling), 0, 3, room)
        moved[coupling] = new
    # it looks at the weights after the step of the clicks
    slope = np.zeros_like(W)
    for v, j in product(range(3), range(5)):
        step = np.zeros_like(W)
        step[v, j] = 1e-5
        slope[v, j] = (gap(moved[0.0] + step) - gap(moved[0.0] - step)) / 2e-5 * sees[v, j]
    np.testing.assert_allclose(moved[1e-3] - moved[0.0], -0.01 * 1e-3 * slope, rtol=1e-6, atol=1e-12)
    # however strong, it goes no further than to agreement
    room.clicks[:] = False
    strong, gaps = W.copy(), [gap(W)]
    for _ in range(50):
        learn_list(rows, members, np.empty(0), strong, sees, plan_of(PLACKETT_LUCE, 1e9), 0, 3, room)
        gaps.append(gap(strong))
    assert (np.diff(gaps) <= 1e-12).all()


def test_a_greedy_step_sees_the_weights_of_today():
    X, W = RNG.normal(size=(4, 3)), np.zeros((1, 3))
    room = room_for(4, 2, 1, 3)
    room.shown[:], room.clicks[:] = [3, 1], [True, False]
    plan = plan_of(EPSILON_GREEDY, 0.0, 1.0, HINGE)
    for _ in range(2):
        margin = (X[3] - X[1]) @ W[0]
        before = W.copy()
        learn_list(as_core_rows(X), np.arange(4), np.empty(0), W, np.ones((1, 3)), plan, 0, 2, room)
        np.testing.assert_allclose(W - before, [X[3] - X[1]] if margin < 1.0 else [[0.0, 0.0, 0.0]])
