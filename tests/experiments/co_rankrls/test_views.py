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


def test_the_scores_minimise_the_objective_of_the_paper():
    drawn = views.draw_views(0, 0, 0.5)
    unscored, coupling, place = np.isnan(drawn.y), 0.1, 12
    # halves of the ways to draw two rows of one query, which may be the same row
    n_scored, n_unscored = (np.sum(drawn.qid[of][:, None] == drawn.qid[of]) / 2 for of in (~unscored, unscored))
    lam, nu = views.ALPHAS[place] * n_scored, 2 * coupling * n_scored / n_unscored
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
    scores = views.view_scores(views.pair_sums(drawn), coupling, drawn.X_test)[:, place]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8)


def test_a_draw_splits_queries_and_bases():
    drawn, other = (views.draw_views(0, repeat, 0.5) for repeat in (1, 2))
    assert not np.isin(drawn.qid, drawn.qid_test).any()
    assert not np.isin([*drawn.qid, *drawn.qid_test], [*other.qid, *other.qid_test]).any()
    assert np.isnan(drawn.y).mean() == pytest.approx(0.5, abs=0.01)
    assert not np.isin(drawn.views[0].basis, drawn.views[1].basis).any()


def test_the_figures_are_those_of_the_estimators():
    errors, drawn = views.grid_errors(0, 0, 0.5), views.draw_views(0, 0, 0.5)
    model = RankRLS(views.ALPHAS[7], drawn.kernel, ties=True, scale=False).fit(drawn.X, drawn.y, qid=drawn.qid)
    error = disagreement_error(drawn.y_test, model.predict(drawn.X_test), drawn.qid_test)
    assert errors["RankRLS"][7] == pytest.approx(error, abs=1e-5)
    model = CoRankRLS(drawn.views, views.COUPLINGS[3], views.ALPHAS[9], ties=True, scale=False)
    model.fit(drawn.X, drawn.y, qid=drawn.qid)
    error = disagreement_error(drawn.y_test, model.predict(drawn.X_test), drawn.qid_test)
    assert errors["Co-RankRLS"][3][9] == pytest.approx(error, abs=1e-5)


def test_parameters_come_from_the_other_half_and_the_curve_ends_at_the_table(tmp_path):
    trials = views.trials_of(ExperimentOptions(tmp_path), 4, 0.5)
    table, findings = views.views_table(trials, 0.5)
    assert [row[0] for row in table.rows] == list(views.METHODS)
    assert len(findings) == len(views.METHODS) - 1
    dense = np.array([trial["RankRLS"] for trial in trials])
    chosen = [dense[1::2].mean(axis=0).argmin(), dense[::2].mean(axis=0).argmin()]
    assert table.rows[0][1] == pytest.approx(np.mean([dense[r, chosen[r % 2]] for r in range(4)]))
    assert views.curve_table(trials, 0.5).rows[-1][1] == pytest.approx(table.rows[-1][1])
    grid = np.array([trial["Co-RankRLS"] for trial in trials]).mean(axis=0)
    assert views.alpha_table({0.5: trials}).rows[0][-2:] == pytest.approx((grid[0].min(), grid[1:].min()))
