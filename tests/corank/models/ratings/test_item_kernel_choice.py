"""Leave-one-out without refitting against refits, and the choice of alpha and power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.models.ratings import Collaborative
from corank.models.ratings.collaborative import ALPHAS, POWERS, ItemSpectrum, _blocks, choose, leave_one_out
from corank.models.ratings.ranker import item_means, residuals
from helpers.ratings import draw_ratings


def refit(K, t, alpha, i):
    """Predict row i from the others: a dense solve with the level as an unknown of its own."""
    rest = np.arange(len(t)) != i
    n = rest.sum()
    A = np.block([[K[np.ix_(rest, rest)] + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(A, np.append(t[rest], 0.0))
    return K[i, rest] @ solution[:-1] + solution[-1]


@pytest.mark.parametrize("k", [2, 3, 10])
def test_leave_one_out_is_refitting(k):
    rng = np.random.default_rng(k)
    Z, t = rng.normal(size=(4, k, 3)), rng.normal(size=(4, k))
    K = Z @ Z.transpose(0, 2, 1)
    for alpha in (0.1, 5.0):
        expected = [[t[b, i] - refit(K[b], t[b], alpha, i) for i in range(k)] for b in range(4)]
        np.testing.assert_allclose(leave_one_out(K, t, alpha), expected, rtol=1e-9)


def test_blocks_contain_each_rating_once_and_no_single_ones():
    ratings = draw_ratings(30, 40, share=0.55)
    m = np.arange(40.0)
    blocks = _blocks(ratings, m, np.random.default_rng(0))
    n = np.diff(ratings.indptr)
    assert sum(items.size for items, _ in blocks) == (n - (n % 10 == 1)).sum()
    assert {items.shape[1] for items, _ in blocks} <= set(range(2, 11))
    found = np.sort(np.concatenate([(t + m[items]).ravel() for items, t in blocks]))
    assert set(found) <= set(ratings.data)


def test_the_choice_minimises_the_held_out_error():
    ratings, rng = draw_ratings(60, 15), np.random.default_rng(0)
    order = np.random.default_rng(0).permutation(60)
    alpha, power, source = choose(ratings, 2.0, 10, ALPHAS, POWERS, rng)
    rest = ratings[np.sort(order[12:])]
    m = item_means(rest, 2.0)
    spectrum = ItemSpectrum.of(residuals(rest, m), 10)
    dice = np.random.default_rng(0)
    dice.permutation(60)
    blocks, errors = _blocks(ratings[order[:12]], m, dice), {}
    for p in POWERS:
        Z = spectrum.features(p)
        for a in ALPHAS:
            errors[a, p] = sum(
                (t[b, i] - refit(Z[items[b]] @ Z[items[b]].T, t[b], a, i)) ** 2
                for items, t in blocks
                for b in range(len(t))
                for i in range(t.shape[1])
            )
    assert (alpha, power) == min(errors, key=errors.get)
    assert source == "held-out users"


def test_given_values_are_used_and_few_users_are_not_held_out():
    ratings = draw_ratings(30, 12)
    both = Collaborative(3.0, 1.25).fit(ratings)
    assert (both.alpha_, both.power_, both.alpha_from_) == (3.0, 1.25, "given")
    one = Collaborative(3.0, random_state=0).fit(ratings)
    assert (one.alpha_, one.alpha_from_) == (3.0, "held-out users")
    assert one.power_ in POWERS
    few = Collaborative(power=1.25).fit(ratings[:10])
    assert (few.alpha_, few.power_, few.alpha_from_) == (2.0, 1.25, "default")
    # one user of two ratings among many of one: whoever is held out has none to leave out
    user, item = np.append(np.arange(40), 0), np.append(np.arange(40) % 12, 5)
    single = sparse.csr_array((np.arange(41.0), (user, item)), shape=(40, 12))
    assert Collaborative(random_state=0).fit(single).alpha_from_ == "default"
