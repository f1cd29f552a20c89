from __future__ import annotations

import numpy as np

from experiments.ranking_pursuit.users import draw_users


def test_a_draw_shares_no_item_between_learning_and_testing(ratings, drawn):
    for users in (drawn.held_out, drawn.tested):
        for b in range(len(users)):
            train = users.train[users.train_starts[b] : users.train_starts[b + 1]]
            test = users.test[users.test_starts[b] : users.test_starts[b + 1]]
            assert not set(train) & set(test)
            assert 0 <= len(test) - len(train) <= 1
    hidden = draw_users(ratings, (40, 60), 12, 15, 0.5, np.random.default_rng(1)).tested
    assert 0.4 < np.isnan(hidden.y).mean() <= 0.5
    assert not np.isnan(hidden.scored().y).any()
    sides = [np.bincount(hidden.side[hidden.train_user == b]) for b in range(len(hidden))]
    assert all(abs(int(a) - int(b)) <= 1 for a, b in sides)


def test_items_that_the_reference_users_rated_alike_are_no_distance_apart(ratings):
    # every item twice: norms and products round differently, which must not look like a distance
    twice = np.repeat(ratings, 2, axis=1)[:, :120]
    drawn = draw_users(twice, (40, 60), 12, 15, 1.0, np.random.default_rng(1))
    for distances in (drawn.distances, *drawn.halves):
        np.testing.assert_array_equal(np.sort(distances)[:, :2], 0.0)
    assert drawn.nearest > 1.0


def test_the_community_is_everybody_who_is_neither_held_out_nor_tested(ratings, drawn):
    n_drawn = len(drawn.held_out) + len(drawn.tested)
    assert drawn.community.shape == (len(ratings) - n_drawn, len(drawn.distances))
    known = sum(len(users.train) + len(users.test) for users in (drawn.held_out, drawn.tested))
    # all 120 items are there in this draw
    assert drawn.community.nnz == (~np.isnan(ratings)).sum() - known
    np.testing.assert_allclose(
        drawn.community.sum() + sum(users.y.sum() + users.y_test.sum() for users in (drawn.held_out, drawn.tested)),
        np.nansum(ratings.astype(np.float64)),
    )
