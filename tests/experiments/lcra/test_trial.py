from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.models.linear import LCRA, SPD
from experiments.lcra import trial
from experiments.lcra.problems import problems
from experiments.lcra.trial import ALPHAS, COUPLINGS, ViewSums, draw_repeat, exact_values, pursuit_values


@pytest.mark.parametrize("coupling", [0.0, 0.7])
def test_the_path_is_what_the_exact_estimators_solve(coupling):
    made = make_ranking(20, 8, random_state=2)
    y = mask_scores(made.y, fraction=0.5, random_state=0)
    sums, alphas = ViewSums.of(RankingData.of(made.X, y, made.qid)), (0.01, 0.1, 30.0)
    path, single = sums.path(made.views, alphas, coupling), sums.path([np.arange(20)], alphas, 0.0)
    for alpha, coef, alone in zip(alphas, path, single, strict=True):
        both = LCRA(made.views, coupling, alpha=alpha, scale=False, solver="exact")
        np.testing.assert_allclose(coef, both.fit(made.X, y, qid=made.qid).coef_, rtol=0, atol=1e-8)
        one = SPD(loss="squared", alpha=alpha, scale=False, solver="exact").fit(made.X, y, qid=made.qid)
        np.testing.assert_allclose(alone, one.coef_, rtol=0, atol=1e-8)


def test_without_a_scored_pair_nothing_is_learnt():
    data = RankingData.of([[0.0], [1.0], [2.0]], [1.0, np.nan, np.nan])
    assert ViewSums.of(data).path([np.arange(1)], [0.1], 1.0).tolist() == [[0.0]]


def test_a_trial_measures_every_point_and_the_defaults():
    problem = problems()["redundant views"]
    tested = exact_values(problem, 0.1, 1, 0)
    assert np.shape(tested["SPD"]) == (len(ALPHAS),)
    assert np.shape(tested["views"]) == (len(COUPLINGS), len(ALPHAS))
    draw, y = draw_repeat(problem, 0.1, 1, 0)
    X, qid, rows = draw.X[draw.train], draw.qid[draw.train], draw.X[draw.test]
    model = LCRA(draw.views, COUPLINGS[2], alpha=ALPHAS[5], scale=False, solver="exact").fit(X, y, qid=qid)
    assert np.isclose(draw.measure("AP", model.predict(rows)[:, None])[0], tested["views"][2][5], atol=1e-6)
    spd = SPD(loss="squared", scale=False, solver="exact").fit(X, y, qid=qid)
    lcra = LCRA(draw.views, scale=False, solver="exact").fit(X, y, qid=qid)
    expected = draw.measure("AP", np.column_stack([spd.predict(rows), lcra.predict(rows)]))
    np.testing.assert_allclose(np.array(tested["default"])[[0, 2]], expected, rtol=0, atol=1e-6)


def test_pursuits_are_tested_after_every_term(monkeypatch):
    monkeypatch.setattr(trial, "N_TERMS", 3)
    tested = pursuit_values(problems()["redundant views"], 5, 0, 0)
    assert np.shape(tested["SPD"]) == (3,)
    assert np.shape(tested["views"]) == (len(trial.PURSUIT_COUPLINGS), 3)
