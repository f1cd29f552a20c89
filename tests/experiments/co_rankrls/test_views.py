from __future__ import annotations

import numpy as np
import pytest

from corank.data.synthetic import make_ranking
from corank.metrics import disagreement_error
from corank.models.rls import CoRankRLS, RankRLS
from experiments.co_rankrls import draw, views
from experiments.options import ExperimentOptions


@pytest.fixture(autouse=True)
def small(monkeypatch):
    made = make_ranking(40, 10, random_state=0)
    monkeypatch.setattr(draw, "_rows", lambda: (made.X[:, :6], made.y, made.qid))
    monkeypatch.setattr(draw, "N_BASIS", 8)
    monkeypatch.setattr(views, "LAMBDAS", (0.1, 10.0))
    monkeypatch.setattr(views, "NUS", (0.01, 1.0))


def n_pairs(qid):
    """Half of the ways to draw two rows of one query, which may be the same row."""
    return np.sum(qid[:, None] == qid) / 2


def test_the_scores_minimise_the_objective_of_the_paper():
    drawn = views.draw_views(0, 0, 0.5)
    lam, nu, unscored = 3.0, 0.2, np.isnan(drawn.y)
    side = [drawn.kernel(drawn.X, drawn.X[view.basis]) for view in drawn.views]
    pairs = np.array([(i, j) for i in range(len(drawn.y)) for j in range(i) if drawn.qid[i] == drawn.qid[j]])
    P, U = (pairs[of[pairs].all(axis=1)] for of in (~unscored, unscored))

    def gaps(f, of):
        return f[of[:, 0]] - f[of[:, 1]]

    def system(v, u):
        """Half the second derivative of Σ_v Σ_P (gaps of y − f_v)² + λ ‖f_v‖² + ν Σ_{v,u} Σ_U (gaps of f_v − f_u)²."""
        apart = gaps(side[v], U).T @ gaps(side[u], U)
        if v != u:
            return -2 * nu * apart
        return gaps(side[v], P).T @ gaps(side[v], P) + 2 * nu * apart + lam * side[v][drawn.views[v].basis]

    A = np.block([[system(v, u) for u in range(2)] for v in range(2)])
    b = np.concatenate([gaps(K, P).T @ gaps(drawn.y, P) for K in side])
    bases = drawn.X[np.concatenate([view.basis for view in drawn.views])]
    expected = drawn.kernel(drawn.X_test, bases) @ np.linalg.solve(A, b) / 2
    found = views._scores(drawn, views._summary(drawn), lam, nu, drawn.X_test)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


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
    P, U = (n_pairs(drawn.qid[of]) for of in (~np.isnan(drawn.y), np.isnan(drawn.y)))
    model = RankRLS(float(table.rows[0][4]) / P, drawn.kernel, ties=True, scale=False)
    model.fit(drawn.X, drawn.y, qid=drawn.qid)
    found = disagreement_error(drawn.y_test, model.predict(drawn.X_test), drawn.qid_test)
    assert table.rows[0][1] == pytest.approx(found, abs=1e-5)
    lam, nu = map(float, table.rows[-1][4].split(" / "))
    model = CoRankRLS(drawn.views, nu * U / (2 * P), lam / P, ties=True, scale=False)
    model.fit(drawn.X, drawn.y, qid=drawn.qid)
    found = disagreement_error(drawn.y_test, model.predict(drawn.X_test), drawn.qid_test)
    assert table.rows[-1][1] == pytest.approx(found, abs=1e-5)


def test_the_curve_ends_at_the_table(tmp_path):
    options = ExperimentOptions(tmp_path)
    table, _ = views.views_table(options, 2, 0.5)
    curve = views.curve_table(options, 2, 0.5)
    assert curve.rows[0][0] == 0
    assert curve.rows[-1][1] == pytest.approx(table.rows[-1][1], abs=1e-5)
