from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.models.linear import LCRA, SPD
from experiments.lcra.problems import problems
from experiments.lcra.trial import GRIDS, GridSums, draw_repeat, try_grids


@pytest.mark.parametrize("coupling", [0.0, 0.7])
def test_the_sums_solve_what_the_exact_estimators_solve(coupling):
    made = make_ranking(20, 8, random_state=2)
    y = mask_scores(made.y, fraction=0.5, random_state=0)
    sums = GridSums.of(RankingData.of(made.X, y, made.qid))
    both = LCRA(made.views, coupling, alpha=0.1, scale=False, solver="exact")
    np.testing.assert_allclose(
        sums.solve(made.views, 0.1, coupling), both.fit(made.X, y, qid=made.qid).coef_, rtol=0, atol=1e-8
    )
    one = SPD(loss="squared", alpha=0.1, scale=False, solver="exact").fit(made.X, y, qid=made.qid)
    np.testing.assert_allclose(sums.solve([np.arange(20)], 0.1, 0.0), one.coef_, rtol=0, atol=1e-8)


def test_without_a_scored_pair_nothing_is_learnt():
    data = RankingData.of([[0.0], [1.0], [2.0]], [1.0, np.nan, np.nan])
    assert GridSums.of(data).solve([np.arange(1)], 0.1, 1.0).tolist() == [0.0]


def test_a_trial_measures_every_point_and_chooses_one():
    problem = problems()["redundant views"]
    found = try_grids(problem, 0.1, 0, 0)
    assert {name: len(outcome["values"]) for name, outcome in found.items()} == {
        name: len(grid) for name, grid in GRIDS.items()
    }
    draw, y = draw_repeat(problem, 0.1, 0, 0)
    assert np.isclose(np.mean(~np.isnan(y)), 0.1, atol=1e-3)
    at = found["LCRA"]["chosen"]
    alpha, coupling = GRIDS["LCRA"][at]
    model = LCRA(draw.views, coupling, alpha=alpha, scale=False, solver="exact")
    model.fit(draw.X[draw.train], y, qid=draw.qid[draw.train])
    assert np.isclose(problem.measure(draw, model.predict(draw.X[draw.test])), found["LCRA"]["values"][at], atol=1e-6)


def test_the_choice_does_not_see_the_test_part():
    problem = problems()["redundant views"]

    def spoilt(rng):
        draw = problem.draw(rng)
        y = draw.y.copy()
        y[draw.test] = rng.permutation(y[draw.test])
        return type(draw)(draw.X, y, draw.qid, draw.train, draw.test, draw.views)

    first = try_grids(problem, 0.1, 1, 0)
    second = try_grids(type(problem)("spoilt", "", "AP", spoilt), 0.1, 1, 0)
    assert {name: o["chosen"] for name, o in first.items()} == {name: o["chosen"] for name, o in second.items()}
    assert first["SPD"]["values"] != second["SPD"]["values"]
