from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from experiments.crr import grid
from experiments.crr.grid import Grid, Point


@pytest.fixture(scope="module")
def problem():
    made = make_ranking(6, (4, 9), n_latent=2, features_per_view=2, random_state=1)
    return RankingData.of(made.X, made.y, made.qid)


@pytest.mark.parametrize("query_weight", ["pairs", "equal"])
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_a_point_is_the_optimum_of_the_objective_it_names(problem, monkeypatch, mix, query_weight):
    monkeypatch.setattr(grid, "_data", lambda target, parts: problem)
    X, y, qid = problem.X, problem.y, problem.queries.codes
    w, b = grid.learn("grades", Point(query_weight, mix, 0.2), (1,))
    pairs = [(i, j) for i in range(len(y)) for j in range(i) if qid[i] == qid[j] and y[i] != y[j]]
    first, second = np.array(pairs).T
    share = 1.0 / np.bincount(qid[first])[qid[first]] if query_weight == "equal" else np.ones(len(first))

    def objective(v):
        rows = y - X @ v[:-1] - v[-1]
        gaps = (y[first] - y[second]) - (X[first] - X[second]) @ v[:-1]
        mean = np.average(gaps**2, weights=share)
        return mix * np.mean(rows**2) / 2 + (1 - mix) * mean / 2 + 0.1 * v[:-1] @ v[:-1]

    best = minimize(objective, np.zeros(X.shape[1] + 1), tol=1e-12).x
    np.testing.assert_allclose(w, best[:-1], atol=1e-5)
    np.testing.assert_allclose(b, best[-1] if mix else 0.0, atol=1e-5)


def test_tuning_looks_at_the_validation_part_only():
    rng = np.random.default_rng(0)
    values = rng.random((4, 5, 2, 3))
    tried = Grid([Point("pairs", 0.0, float(alpha)) for alpha in range(4)], values)
    choice = tried.tuned()
    changed = values.copy()
    changed[:, :, 1] = rng.random((4, 5, 3))
    assert Grid(tried.points, changed).tuned() == choice
    expected = np.mean([values[choice[fold], fold, 1] for fold in range(5)], axis=0)
    np.testing.assert_allclose(tried.test(choice), expected)


def test_a_part_of_the_grid_keeps_its_values():
    values = np.arange(2 * 5 * 2 * 3, dtype=float).reshape(2, 5, 2, 3)
    part = Grid([Point("pairs", 0.0, 1.0), Point("equal", 0.5, 1.0)], values).of(lambda point: point.mix == 0.5)
    assert part.points == [Point("equal", 0.5, 1.0)]
    np.testing.assert_array_equal(part.values, values[1:])
