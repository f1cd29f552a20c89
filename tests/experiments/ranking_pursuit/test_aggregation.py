from __future__ import annotations

import numpy as np
import pytest

from corank.models.pursuit import RankingPursuit
from experiments.options import ExperimentOptions
from experiments.ranking_pursuit import aggregation, squares
from experiments.ranking_pursuit.aggregates import AGGREGATES, by_vote, stacking_weights
from experiments.ranking_pursuit.grams import Grams
from experiments.ranking_pursuit.run import try_methods
from experiments.ranking_pursuit.solutions import (
    BAG_LENGTHS,
    COUNTED,
    KEPT,
    LENGTHS,
    N_BAGS,
    N_DISJOINT,
    STEPS_PER_ITEM,
    disjoint,
    frequent,
    resampled,
)


@pytest.fixture(scope="module")
def small():
    """The Gram matrix and the ratings of one user with 30 items."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3))
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    return K, rng.normal(size=30)


def greedy(K, y, allowed, steps):
    """Basic pursuit: try every item, and take the one with the least squared error of all pairwise differences."""
    a = np.zeros(K.shape[1])
    for _ in range(steps):
        r = y - K @ a
        gaps = np.subtract.outer(r, r)
        trials = []
        for j in allowed:
            column = np.subtract.outer(K[:, j], K[:, j])
            step = (column * gaps).sum() / (column**2).sum()
            trials.append((((gaps - step * column) ** 2).sum(), j, step))
        _, j, step = min(trials)
        a[j] += step
    return a


def test_disjoint_solutions_are_those_of_ranking_pursuit(small):
    K, y = small
    coefs, shares = disjoint(K, y)
    for at, length in enumerate(LENGTHS[:3]):
        model = RankingPursuit(length, "precomputed", n_solutions=N_DISJOINT).fit(K, y)
        for m in range(N_DISJOINT):
            mine = coefs[:, at * N_DISJOINT + m]
            np.testing.assert_allclose(K @ mine, model.predict(K, solution=m), rtol=1e-8, atol=1e-10)
            assert shares[at * N_DISJOINT + m] == len(set(model.solutions_[m]["terms"])) / 30


def test_resampled_solutions_are_pursuits_from_bootstrap_samples(small):
    K, y = small
    coefs, shares = resampled(K, y)
    rng = np.random.default_rng(30)
    bags = [rng.integers(30, size=30) for _ in range(N_BAGS)]
    at = BAG_LENGTHS.index(4)
    mine = coefs[:, at * N_BAGS : (at + 1) * N_BAGS]
    for bag, column in zip(bags, mine.T, strict=True):
        np.testing.assert_allclose(column, greedy(K[bag], y[bag], range(30), 4), rtol=1e-8, atol=1e-12)
    assert shares[at * N_BAGS] == (mine != 0.0).any(axis=1).mean()


def test_frequent_items_are_refitted_from_all_ratings(small):
    K, y = small
    rng = np.random.default_rng(30)
    counts = np.zeros(30)
    for _ in range(N_BAGS):
        bag = rng.integers(30, size=30)
        counts += greedy(K[bag], y[bag], range(30), COUNTED[0]) != 0.0
    kept = sorted(range(30), key=lambda j: (-counts[j], j))[:4]
    coefs, _ = frequent(K, y)
    grid = [(c, k, s) for c in COUNTED for k in KEPT for s in STEPS_PER_ITEM]
    for steps in STEPS_PER_ITEM:
        mine = coefs[:, grid.index((COUNTED[0], 4, steps))]
        np.testing.assert_allclose(mine, greedy(K, y, kept, 4 * steps), rtol=1e-7, atol=1e-10)


def test_votes_are_wins_over_other_items(drawn):
    users = drawn.tested
    scores = np.random.default_rng(0).integers(4, size=(len(users.test), 3)).astype(float)
    votes = by_vote(None, users, scores, 1)
    for b in range(len(users)):
        own = scores[users.test_starts[b] : users.test_starts[b + 1]]
        wins = (own[:, None] > own).sum(axis=(1, 2)) + 0.5 * ((own[:, None] == own).sum(axis=(1, 2)) - 3)
        np.testing.assert_allclose(votes[users.test_starts[b] : users.test_starts[b + 1]], 1 + wins / 3)


@pytest.mark.long
def test_no_weights_on_a_grid_have_a_smaller_squared_error_than_the_stacked_ones(drawn):
    users = drawn.held_out
    rng = np.random.default_rng(0)
    scores = (
        users.y_test[:, None] * [0.2, 0.7] + rng.normal(size=(len(users.test), 2)) + 10.0 * users.test_user[:, None]
    )
    w = stacking_weights(scores, users)

    def error(weights):
        total = 0.0
        for b in range(len(users)):
            own = slice(users.test_starts[b], users.test_starts[b + 1])
            total += len(users.y_test[own]) * np.var(users.y_test[own] - scores[own] @ weights)
        return total

    best = min(error(np.array([i, j]) / 20) for i in range(41) for j in range(41))
    assert min(error(factor * w) for factor in np.linspace(0, 4, 801)) <= best + 1e-3
    assert w.sum() == pytest.approx(1.0)
    assert np.all(w >= 0.0)
    assert stacking_weights(-scores, users).tolist() == [0.5, 0.5]


@pytest.mark.long
def test_the_mean_of_disjoint_solutions_is_the_mean_of_the_models(drawn):
    method, grams, users = AGGREGATES["Disjoint, mean"], Grams(drawn, 8.0), drawn.tested
    scores, shares = method.scores(grams, users)
    at = method.grid.index("3 solutions, 4 terms")
    train, test = users.train[: users.train_starts[1]], users.test[: users.test_starts[1]]
    model = RankingPursuit(4, "precomputed", n_solutions=3).fit(
        grams.whole[np.ix_(train, train)], users.y[: len(train)]
    )
    rows = grams.whole[np.ix_(test, train)]
    mean = np.mean([model.predict(rows, solution=m) for m in range(3)], axis=0)
    np.testing.assert_allclose(scores[: len(test), at], mean, rtol=1e-6, atol=1e-9)
    terms = {term for one in model.solutions_ for term in one["terms"]}
    assert shares[0, at] == pytest.approx(len(terms) / len(train))


@pytest.mark.long
def test_levels_change_the_squared_error_of_constant_scores_from_the_mean_square_to_that_of_the_mean(drawn):
    found = try_methods(drawn, (squares.NOTHING,), (8.0,), squares.TABLE_5, by_squares=True)
    users = drawn.tested
    for b in (0, 5):
        y = users.y[users.train_starts[b] : users.train_starts[b + 1]]
        test = users.y_test[users.test_starts[b] : users.test_starts[b + 1]]
        assert found[squares.NOTHING]["squares"][b] == pytest.approx(np.mean(test**2), rel=1e-4)
        both = found[f"{squares.NOTHING}, by squares"]
        assert both["levelled"][b] == pytest.approx(np.mean((test - y.mean()) ** 2), rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("experiment", [aggregation, squares])
def test_both_experiments_on_made_up_ratings(ratings, tmp_path, monkeypatch, experiment):
    monkeypatch.setattr(experiment, "DATA", {"Jester": lambda: ratings, "MovieLens": lambda: ratings})
    monkeypatch.setattr(experiment, "QUICK_USERS", 8)
    monkeypatch.setattr(experiment, "WIDTHS", (4.0, 32.0))
    report = experiment.run(ExperimentOptions(tmp_path, quick=True))
    assert len(report.tables) == 3
    monkeypatch.setattr(experiment, "draw_users", None)
    assert experiment.run(ExperimentOptions(tmp_path, quick=True)) == report
