from __future__ import annotations

import numpy as np
import pytest

from corank.data.make import make_ranking
from corank.experiments.co_rankrls import draw, views
from corank.experiments.options import ExperimentOptions
from corank.metrics import disagreement_error
from corank.rls import CoRankRLS, RankRLS


@pytest.fixture(autouse=True)
def small(monkeypatch):
    made = make_ranking(40, 10, random_state=0)
    monkeypatch.setattr(draw, "_rows", lambda: (made.X[:, :6], made.y, made.qid))
    monkeypatch.setattr(draw, "N_BASIS", 8)
    monkeypatch.setattr(views, "ALPHAS", (0.1, 10.0))
    monkeypatch.setattr(views, "COUPLINGS", (0.01, 1.0))


def test_a_draw_splits_queries_and_bases():
    drawn = views.draw_views(0, 1, 0.5)
    assert not np.isin(drawn.qid, drawn.qid_test).any()
    assert np.isnan(drawn.y).mean() == pytest.approx(0.5, abs=0.01)
    assert not np.isin(drawn.views[0].basis, drawn.views[1].basis).any()


def test_the_figures_are_those_of_the_estimators(tmp_path):
    options = ExperimentOptions(tmp_path)
    table, findings = views.views_table(options, 1, 0.5)
    assert [row[0] for row in table.rows] == list(views.METHODS)
    assert len(findings) == len(views.METHODS) - 1
    drawn = views.draw_views(0, 0, 0.5)
    alpha = float(table.rows[0][4])
    model = RankRLS(alpha, drawn.kernel).fit(drawn.X, drawn.y, qid=drawn.qid)
    found = disagreement_error(drawn.y_test, model.predict(drawn.X_test), drawn.qid_test)
    assert table.rows[0][1] == pytest.approx(found, abs=1e-5)
    alpha, coupling = map(float, table.rows[-1][4].split(" / "))
    model = CoRankRLS(drawn.views, coupling=coupling, alpha=alpha).fit(drawn.X, drawn.y, qid=drawn.qid)
    found = disagreement_error(drawn.y_test, model.predict(drawn.X_test), drawn.qid_test)
    assert table.rows[-1][1] == pytest.approx(found, abs=1e-5)


def test_the_curve_ends_at_the_table(tmp_path):
    options = ExperimentOptions(tmp_path)
    table, _ = views.views_table(options, 2, 0.5)
    curve = views.curve_table(options, 2, 0.5)
    assert curve.rows[0][0] == 0
    assert curve.rows[-1][1] == pytest.approx(table.rows[-1][1], abs=1e-5)
