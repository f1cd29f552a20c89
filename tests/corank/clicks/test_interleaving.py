from __future__ import annotations

import numpy as np
import pytest

from corank.clicks import CascadeClicks, TeamDraft
from corank.errors import InputError

METHOD = TeamDraft(5)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", ["perfect", "navigational", "informational", "almost_random"])
def test_identical_rankings_tie_in_every_list(kind):
    user, rng = CascadeClicks(kind), np.random.default_rng(1)
    for _ in range(50):
        order, grades = rng.permutation(8), rng.integers(0, 3, 8)
        merged = METHOD.interleave([order, order], rng)
        np.testing.assert_allclose(METHOD.preferences(merged, user.clicks(grades[merged.rows], rng)), 0.0, atol=1e-12)


def test_many_lists_find_the_better_ranking():
    user, rng = CascadeClicks("navigational"), np.random.default_rng(2)
    grades = np.array([2, 2, 1, 1, 0, 0, 0, 0])
    good, bad = np.arange(8), np.array([4, 5, 0, 6, 2, 1, 7, 3])
    total = np.zeros((2, 2))
    for _ in range(400):
        merged = METHOD.interleave([good, bad], rng)
        total += METHOD.preferences(merged, user.clicks(grades[merged.rows], rng))
    assert total[0, 1] > 20.0
    np.testing.assert_allclose(total, -total.T)


def test_lists_hold_different_rows():
    for n in (1, 3, 12):
        rankings = [RNG.permutation(n) for _ in range(2)]
        merged = METHOD.interleave(rankings, RNG)
        assert len(merged.rows) == min(5, n) == len(set(merged.rows.tolist()))
        nothing = METHOD.credit(merged, np.zeros(len(merged.rows)))
        assert nothing.tolist() == [0.0, 0.0]


def test_several_rankings_are_compared_at_once():
    rankings = [RNG.permutation(9) for _ in range(6)]
    merged = METHOD.interleave(rankings, RNG)
    clicks = RNG.random(5) < 0.5
    preferences = METHOD.preferences(merged, clicks)
    assert preferences.shape == (6, 6)
    np.testing.assert_allclose(preferences, -preferences.T, atol=1e-12)
    credit = METHOD.credit(merged, clicks)
    clear = np.abs(preferences) > 0.5
    assert (np.sign(credit[:, None] - credit) == np.sign(preferences))[clear].all()


def test_a_shared_beginning_earns_no_team_draft_credit():
    for seed in range(20):
        merged = TeamDraft(4).interleave([[0, 1, 2, 3], [0, 1, 3, 2]], np.random.default_rng(seed))
        assert merged.rows[:2].tolist() == [0, 1]
        assert merged.teams[:2].tolist() == [-1, -1]
        assert TeamDraft(4).credit(merged, [1, 1, 0, 0]).tolist() == [0.0, 0.0]
        assert TeamDraft(4).credit(merged, [1, 1, 1, 1]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: TeamDraft(0), "k is 0"),
        (lambda: TeamDraft().interleave([[0, 1]], RNG), "pass row numbers, best first, of two or more rankings"),
        (lambda: TeamDraft().interleave([[0.5, 1], [1, 0]], RNG), "pass row numbers"),
        (lambda: TeamDraft().interleave([[0, 1], [1, 1]], RNG), "ranking 1 does not hold each of the rows 0 to 1 once"),
        (lambda: TeamDraft().credit(TeamDraft().interleave([[0, 1]] * 2, RNG), [1]), r"clicks has shape \(1,\)"),
    ],
)
def test_bad_calls_get_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


def test_rankings_of_different_lengths_get_one_sentence():
    with pytest.raises(InputError, match="rankings have 2 to 3 rows"):
        TeamDraft(5).interleave([[0, 1, 2], [0, 1]], np.random.default_rng(0))
