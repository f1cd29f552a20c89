"""Interleaving against enumeration of all lists, assignments and clicks."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from corank.core.clicks.sessions import interleave_team_draft
from corank.core.random import seed_state
from experiments.clicks import interleaving_kernels as kernels

TWO = np.array([[0, 1, 2, 3], [0, 3, 1, 2]])
THREE = np.array([[0, 1, 2, 3], [3, 1, 0, 2], [1, 0, 3, 2]])


def ranks_of(rankings):
    ranks = np.empty_like(rankings)
    kernels.invert(rankings, ranks)
    return ranks


def test_ranks_are_rankings_turned_around():
    np.testing.assert_array_equal(ranks_of(THREE), np.argsort(THREE, axis=1))


def drafts(rankings, k):
    """Every draft with its probability: (rows, teams) by recursion over orders of the teams."""
    m, shared = len(rankings), 0
    while shared < k and (rankings[:, shared] == rankings[0, shared]).all():
        shared += 1
    start = (tuple(rankings[0, :shared]), (-1,) * shared)
    found = {}

    def go(rows, teams, turns, p):
        if len(rows) == k:
            found[rows, teams] = found.get((rows, teams), 0.0) + p
            return
        for order in [turns] if turns else permutations(range(m)):
            row = next(row for row in rankings[order[0]] if row not in rows)
            share = p if turns else p / np.prod(np.arange(1, m + 1))
            go((*rows, row), (*teams, order[0]), order[1:], share)

    go(*start, (), 1.0)
    return found


@pytest.mark.parametrize("rankings", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("k", [2, 4])
def test_teams_are_drafted_in_random_rounds(rankings, k):
    n, rng_state, counts = 20_000, seed_state(np.random.default_rng(0)), {}
    shown, teams = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    for _ in range(n):
        interleave_team_draft(rankings, rng_state, shown, teams)
        key = tuple(shown.tolist()), tuple(teams.tolist())
        counts[key] = counts.get(key, 0) + 1
    wanted = drafts(rankings, k)
    assert set(counts) <= {(tuple(map(int, rows)), tuple(map(int, teams))) for rows, teams in wanted}
    for (rows, teams_of), p in wanted.items():
        count = counts.get((tuple(map(int, rows)), tuple(map(int, teams_of))), 0)
        assert abs(count - n * p) <= 5.0 * np.sqrt(n * p * (1.0 - p)) + 1e-9


def chances_of(rankings, rows, tau):
    """Probability of each row of a probabilistic list."""
    ranks, left, chances = np.argsort(rankings, axis=1), list(range(rankings.shape[1])), []
    for row in rows:
        softmax = (ranks[:, left] + 1.0) ** -tau
        chances.append(((ranks[:, row] + 1.0) ** -tau / softmax.sum(axis=1)).mean())
        left.remove(row)
    return np.array(chances)


@pytest.mark.parametrize("k", [2, 4])
def test_probabilistic_lists_have_their_probabilities(k):
    n, rng_state, counts, softmax = 20_000, seed_state(np.random.default_rng(0)), {}, np.arange(1.0, 5.0) ** -2.0
    shown, chances, left, ranks = np.zeros(k, dtype=np.int64), np.zeros(k), np.zeros(4, dtype=bool), ranks_of(THREE)
    for _ in range(n):
        kernels.interleave_probabilistic(ranks, softmax, rng_state, shown, chances, left)
        rows = tuple(shown.tolist())
        if rows not in counts:
            np.testing.assert_allclose(np.exp(chances), chances_of(THREE, rows, 2.0), rtol=1e-12)
        counts[rows] = counts.get(rows, 0) + 1
    for rows in permutations(range(4), k):
        p = chances_of(THREE, rows, 2.0).prod()
        assert abs(counts.get(rows, 0) - n * p) <= 5.0 * np.sqrt(n * p * (1.0 - p)) + 1e-9


def choices_of(rankings, rows, at):
    return set(rankings[:, : at + 1].ravel().tolist()) - set(rows[:at])


def unions(rankings, k):
    """Every list drawn from the unions of the best, with its probability."""
    for rows in permutations(range(rankings.shape[1]), k):
        sizes = [choices_of(rankings, rows, at) for at in range(k)]
        if all(row in choices for row, choices in zip(rows, sizes, strict=True)):
            yield rows, float(np.prod([1.0 / len(choices) for choices in sizes]))


def test_lists_are_drawn_from_the_union_of_the_best():
    n, rng_state, counts, shown = 20_000, seed_state(np.random.default_rng(0)), {}, np.zeros(3, dtype=np.int64)
    for _ in range(n):
        kernels.interleave_pairwise(THREE, rng_state, shown)
        counts[tuple(shown.tolist())] = counts.get(tuple(shown.tolist()), 0) + 1
    wanted = dict(unions(THREE, 3))
    assert sum(wanted.values()) == pytest.approx(1.0)
    assert set(counts) <= set(wanted)
    for rows, p in wanted.items():
        assert abs(counts.get(rows, 0) - n * p) <= 5.0 * np.sqrt(n * p * (1.0 - p)) + 1e-9


def blind(pattern, click, stop):
    """Chance of clicks of a user who looks from the top and clicks on anything."""
    p = 1.0
    for rank, clicked in enumerate(pattern):
        p *= click if clicked else 1.0 - click
        if clicked:
            rest = pattern[rank + 1 :]
            return p * ((1.0 - stop) * blind(rest, click, stop) + stop * (not any(rest)))
    return p


@pytest.mark.parametrize("rankings", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("k", [3, 4])
def test_users_who_click_on_anything_prefer_no_ranking(rankings, k):
    """Every list and every pattern of clicks: credits are equal in expectation for all rankings."""
    ranks, m = ranks_of(rankings), len(rankings)
    softmax, left = np.arange(1.0, 5.0) ** -3.0, np.zeros(4, dtype=bool)
    by_team, by_chance, by_pairs = np.zeros(m), np.zeros(m), np.zeros(m)
    credit, shares = np.zeros(m), np.zeros((k, m))
    lists = [(rows, float(chances_of(rankings, rows, 3.0).prod())) for rows in permutations(range(4), k)]
    for pattern in product([False, True], repeat=k):
        clicks, of_clicks = np.array(pattern), blind(pattern, 0.6, 0.3)
        for (_, teams), p in drafts(rankings, k).items():
            chosen = np.array(teams)[clicks]
            by_team += p * of_clicks * np.bincount(chosen[chosen >= 0], minlength=m)
        for rows, p in lists:
            n_clicks = kernels.assign_clicks(ranks, softmax, np.array(rows), clicks, left, shares)
            by_chance += p * of_clicks * shares[:n_clicks].sum(axis=0)
        for rows, p in unions(rankings, k):
            kernels.credit_pairwise(rankings, ranks, np.array(rows), clicks, credit)
            by_pairs += p * of_clicks * credit
    np.testing.assert_allclose(by_chance, by_chance[0], rtol=1e-12)
    np.testing.assert_allclose(by_pairs, 0.0, atol=1e-12)
    if k % m == 0 or m == 2:  # whole rounds; an odd rank goes to either with a fair coin
        np.testing.assert_allclose(by_team, by_team[0], rtol=1e-12)


def test_users_who_click_on_the_better_row_prefer_the_ranking_that_has_it_higher():
    """Row 3 is the only good one: the second ranking has it second, the first last."""
    ranks, softmax, left = ranks_of(TWO), np.arange(1.0, 5.0) ** -3.0, np.zeros(4, dtype=bool)
    earned, credit, shares = np.zeros((3, 2)), np.zeros(2), np.zeros((3, 2))
    for (rows, teams), p in drafts(TWO, 3).items():
        chosen = np.array(teams)[np.array(rows) == 3]
        earned[0] += p * np.bincount(chosen[chosen >= 0], minlength=2)
    for rows in permutations(range(4), 3):
        n = kernels.assign_clicks(ranks, softmax, np.array(rows), np.array(rows) == 3, left, shares)
        earned[1] += chances_of(TWO, rows, 3.0).prod() * shares[:n].sum(axis=0)
    for rows, p in unions(TWO, 3):
        kernels.credit_pairwise(TWO, ranks, np.array(rows), np.array(rows) == 3, credit)
        earned[2] += p * credit
    assert (earned[:, 1] > earned[:, 0]).all()
