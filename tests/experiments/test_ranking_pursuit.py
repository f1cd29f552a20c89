"""The methods of the experiment are those of the library, and its tables hold what was measured."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from corank.experiments import ranking_pursuit
from corank.experiments.pursuit_methods import METHODS, PENALTIES, errors_of, ridge
from corank.experiments.pursuit_tables import tables_of
from corank.experiments.pursuit_users import GROUPS, draw
from corank.experiments.settings import Settings
from corank.metrics import disagreement_error
from corank.rls import RankRLS


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    taste, items = rng.normal(size=(900, 4)), rng.normal(size=(4, 120))
    table = (taste @ items + rng.normal(size=(900, 120))).astype(np.float32)
    keep = rng.uniform(20, 95, 900)[:, None] > rng.uniform(0, 120, (900, 120))
    return np.where(keep, table, np.nan).astype(np.float32)


@pytest.fixture(scope="module")
def drawn(ratings):
    return draw(ratings, (40, 60), 12, 15, False, np.random.default_rng(1))


def test_a_draw_shares_no_item_between_learning_and_testing(ratings, drawn):
    for users in (drawn.held_out, drawn.tested):
        for b in range(len(users)):
            train = users.train[users.train_starts[b] : users.train_starts[b + 1]]
            test = users.test[users.test_starts[b] : users.test_starts[b + 1]]
            assert not set(train) & set(test)
            assert 0 <= len(test) - len(train) <= 1
    hidden = draw(ratings, (40, 60), 12, 15, True, np.random.default_rng(1)).tested
    assert 0.4 < np.isnan(hidden.y).mean() <= 0.5
    assert not np.isnan(hidden.scored().y).any()
    sides = [np.bincount(hidden.side[hidden.train_user == b]) for b in range(len(hidden))]
    assert all(abs(int(a) - int(b)) <= 1 for a, b in sides)


def test_ridge_is_kernel_ridge_and_rank_rls(drawn):
    K, users = ranking_pursuit.gram(drawn.distances, 8.0), drawn.held_out
    plain, _ = ridge(centred=False)(K, users)
    ranking, _ = ridge(centred=True)(K, users)
    for b in (0, 3, 11):
        train = users.train[users.train_starts[b] : users.train_starts[b + 1]]
        y = users.y[users.train_starts[b] : users.train_starts[b + 1]]
        rows = slice(users.test_starts[b], users.test_starts[b + 1])
        seen = K[users.test[rows]][:, train]
        for c in (1, 5):
            other = KernelRidge(alpha=PENALTIES[c], kernel="precomputed").fit(K[np.ix_(train, train)], y)
            np.testing.assert_allclose(plain[rows, c], other.predict(seen), rtol=1e-6, atol=1e-8)
            rank = RankRLS(alpha=PENALTIES[c], kernel="precomputed", query_weight="rows").fit(
                K[np.ix_(train, train)], y
            )
            np.testing.assert_allclose(ranking[rows, c], rank.predict(seen), rtol=1e-6, atol=1e-8)


def test_a_trial_reports_the_errors_of_the_parameters_it_chose(drawn):
    found = ranking_pursuit.trial(drawn, ("RankRLS", "Matching pursuit"))
    assert set(found) == {"RankRLS", "Matching pursuit", "Matching pursuit, by order"}
    cell = found["RankRLS"]
    at = METHODS["RankRLS"].grid.index(cell["point"])
    scores, _ = METHODS["RankRLS"].run(ranking_pursuit.gram(drawn.distances, cell["width"]), drawn.tested)
    users = drawn.tested
    for b in range(len(users)):
        rows = slice(users.test_starts[b], users.test_starts[b + 1])
        assert cell["errors"][b] == pytest.approx(disagreement_error(users.y_test[rows], scores[rows, at]), abs=1e-6)
    held, _ = METHODS["RankRLS"].run(ranking_pursuit.gram(drawn.distances, cell["width"]), drawn.held_out)
    assert np.argmin(errors_of(held, drawn.held_out)[0].mean(axis=0)) == at


def test_no_similarity_no_gram():
    assert ranking_pursuit.gram(np.array([[0.0, 1.0], [1.0, 0.0]]), 2.0**-15) is None
    np.testing.assert_allclose(ranking_pursuit.gram(np.array([[0.0, 2.0], [2.0, 0.0]]), 1.0)[0, 1], np.exp(-1.0))


def test_the_whole_experiment_on_made_up_ratings(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr(ranking_pursuit, "DATA", {"Jester": lambda: ratings, "MovieLens": lambda: ratings})
    monkeypatch.setattr(ranking_pursuit, "QUICK_USERS", 8)
    monkeypatch.setattr(ranking_pursuit, "WIDTHS", (4.0, 32.0))
    report = ranking_pursuit.run(Settings(tmp_path, quick=True))
    assert [table.title.split(":")[0] for table in report.tables[:5]] == [f"Table {n}" for n in range(1, 6)]
    assert "Ranking pursuit" in report.markdown()
    monkeypatch.setattr(ranking_pursuit, "draw", None)
    assert ranking_pursuit.run(Settings(tmp_path, quick=True)) == report


def test_tables_pool_users_over_repeats():
    cell = {"width": 1.0, "point": "", "errors": [0.2, None, 0.4], "squares": [1.0, 2.0, 3.0], "share": 0.5}
    names = {False: ranking_pursuit.SUPERVISED, True: ranking_pursuit.SEMI}
    cells = {
        (name, hide, group): [dict.fromkeys(names[hide], cell)] * 2
        for name in ("Jester", "MovieLens")
        for hide in (False, True)
        for group in GROUPS
    }
    tables, findings = tables_of(cells)
    assert tables[0].rows[0][:3] == ("RLS", pytest.approx(0.3), 0.425)
    assert tables[4].rows[0][1] == pytest.approx(2.0)
    assert len(findings) == 12
