from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from corank.data.make import make_ranking
from corank.data.ranking import RankingData
from corank.experiments.crr.grid import Grid, Point, solve
from corank.moments import Moments


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_solve_finds_the_optimum_of_the_formula(mix):
    problem = make_ranking(6, 7, n_latent=2, features_per_view=2, random_state=1)
    X, y, qid = problem.X, problem.y, problem.qid
    data = RankingData.of(X, y, qid)
    w, b = solve(Moments.of(data), Moments.of(data, plain=True), mix, 0.2)
    pairs = [(i, j) for i in range(len(y)) for j in range(i) if qid[i] == qid[j] and y[i] != y[j]]
    first, second = np.array(pairs).T

    def objective(v):
        rows = y - X @ v[:-1] - v[-1]
        gaps = (y[first] - y[second]) - (X[first] - X[second]) @ v[:-1]
        return mix * np.mean(rows**2) / 2 + (1 - mix) * np.mean(gaps**2) / 2 + 0.1 * v[:-1] @ v[:-1]

    best = minimize(objective, np.zeros(X.shape[1] + 1), tol=1e-12).x
    np.testing.assert_allclose(w, best[:-1], atol=1e-5)
    np.testing.assert_allclose(b, best[-1] if mix else 0.0, atol=1e-5)


def test_tuning_looks_at_the_validation_part_only():
    rng = np.random.default_rng(0)
    values = rng.random((4, 5, 2, 3))
    grid = Grid([Point("pairs", 0.0, float(alpha)) for alpha in range(4)], values)
    choice = grid.tuned()
    changed = values.copy()
    changed[:, :, 1] = rng.random((4, 5, 3))
    assert Grid(grid.points, changed).tuned() == choice
    expected = np.mean([values[choice[fold], fold, 1] for fold in range(5)], axis=0)
    np.testing.assert_allclose(grid.test(choice), expected)


def test_a_part_of_the_grid_keeps_its_values():
    values = np.arange(2 * 5 * 2 * 3, dtype=float).reshape(2, 5, 2, 3)
    part = Grid([Point("pairs", 0.0, 1.0), Point("query", 0.5, 1.0)], values).of(lambda point: point.mix == 0.5)
    assert part.points == [Point("query", 0.5, 1.0)]
    np.testing.assert_array_equal(part.values, values[1:])
