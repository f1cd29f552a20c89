"""The methods of the experiment are those of the library, and its tables hold what was measured."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from corank.experiments.options import ExperimentOptions
from corank.experiments.ranking_pursuit import run as ranking_pursuit
from corank.experiments.ranking_pursuit.grams import Grams
from corank.experiments.ranking_pursuit.methods import METHODS, PENALTIES, errors_of, ridge
from corank.experiments.ranking_pursuit.ridge import solve_shifted
from corank.experiments.ranking_pursuit.tables import tables_of
from corank.experiments.ranking_pursuit.users import GROUPS, draw_users
from corank.metrics import disagreement_error
from corank.pursuit import RankingPursuit
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
    return draw_users(ratings, (40, 60), 12, 15, 1.0, np.random.default_rng(1))


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


def test_ridge_is_kernel_ridge_and_rank_rls(drawn):
    grams, users = Grams(drawn, 8.0), drawn.held_out
    K = grams.whole
    plain, _ = ridge(centred=False)(grams, users)
    ranking, _ = ridge(centred=True)(grams, users)
    sparse, shares = ridge(centred=True, basis=0.5)(grams, users)
    assert np.all((shares >= 0.5) & (shares < 0.6))
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
            basis = np.arange((len(train) + 1) // 2)
            few = RankRLS(alpha=PENALTIES[c], kernel="precomputed", basis=basis, query_weight="rows")
            few.fit(K[np.ix_(train, train)], y)
            np.testing.assert_allclose(sparse[rows, c], few.predict(seen), rtol=1e-5, atol=1e-6)


def test_a_trial_reports_the_errors_of_the_parameters_it_chose(drawn):
    found = ranking_pursuit.try_methods(drawn, ("RankRLS", "Matching pursuit"), (1.0, 8.0, 64.0))
    assert set(found) == {"RankRLS", "Matching pursuit", "Matching pursuit, by order"}
    cell = found["RankRLS"]
    at = METHODS["RankRLS"].grid.index(cell["point"])
    grams = Grams(drawn, cell["width"])
    scores, _ = METHODS["RankRLS"].run(grams, drawn.tested)
    users = drawn.tested
    for b in range(len(users)):
        rows = slice(users.test_starts[b], users.test_starts[b + 1])
        assert cell["errors"][b] == pytest.approx(disagreement_error(users.y_test[rows], scores[rows, at]), abs=1e-6)
    held, _ = METHODS["RankRLS"].run(grams, drawn.held_out)
    assert np.argmin(errors_of(held, drawn.held_out)[0].mean(axis=0)) == at


def test_levelled_squares_are_those_of_scores_moved_by_the_mean_of_what_the_training_ratings_miss(drawn):
    cell = ranking_pursuit.try_methods(drawn, ("Ranking pursuit",), (8.0, 16.0))["Ranking pursuit"]
    users, K = drawn.tested, Grams(drawn, cell["width"]).whole
    at = METHODS["Ranking pursuit"].grid.index(cell["point"])
    for b in (0, 7):
        own, asked = (slice(starts[b], starts[b + 1]) for starts in (users.train_starts, users.test_starts))
        train, y = users.train[own], users.y[own]
        model = RankingPursuit(60, "precomputed").fit(K[np.ix_(train, train)], y)
        n_terms = min(at + 1, len(model.indices_))
        level = np.mean(y - model.predict(K[np.ix_(train, train)], n_terms=n_terms))
        f = model.predict(K[np.ix_(users.test[asked], train)], n_terms=n_terms) + level
        assert cell["levelled"][b] == pytest.approx(np.mean((users.y_test[asked] - f) ** 2), rel=1e-4)


def test_a_width_without_any_similarity_is_blind(drawn):
    assert Grams(drawn, 2.0**-15).is_blind
    grams = Grams(drawn, 16.0)
    assert not grams.is_blind
    np.testing.assert_allclose(grams.whole, np.exp(-0.5 * drawn.distances / 256.0))
    np.testing.assert_allclose(grams.halves[0] * grams.halves[1], grams.whole, rtol=1e-6)


def test_many_shifts_are_solved_as_one_by_one():
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 17):
        A = rng.normal(size=(n, n))
        A, b = A @ A.T, rng.normal(size=n)
        expected = np.stack([np.linalg.solve(A + alpha * np.eye(n), b) for alpha in (10.0, 0.1, 0.001)], axis=1)
        np.testing.assert_allclose(solve_shifted(A, b, (10.0, 0.1, 0.001)), expected, rtol=1e-9)


def test_the_whole_experiment_on_made_up_ratings(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr(ranking_pursuit, "DATA", {"Jester": lambda: ratings, "MovieLens": lambda: ratings})
    monkeypatch.setattr(ranking_pursuit, "QUICK_USERS", 8)
    monkeypatch.setattr(ranking_pursuit, "WIDTHS", (4.0, 32.0, 32.0, 32.0))
    report = ranking_pursuit.run(ExperimentOptions(tmp_path, quick=True))
    assert [table.title.split(":")[0] for table in report.tables[:5]] == [f"Table {n}" for n in range(1, 6)]
    assert "Ranking pursuit" in report.markdown()
    monkeypatch.setattr(ranking_pursuit, "draw_users", None)
    assert ranking_pursuit.run(ExperimentOptions(tmp_path, quick=True)) == report


def test_tables_pool_users_over_repeats():
    cell = {"errors": [0.2, None, 0.4], "squares": [1.0, 2.0, 3.0], "levelled": [0.5, 0.5, 0.5], "share": 0.5}
    worse = {**cell, "errors": [0.3, None, 0.5]}
    cells = {
        (name, share, group): [{method: worse if method == "RLS" else cell for method in methods}] * 4
        for name in ("Jester", "MovieLens")
        for share, methods in ranking_pursuit.SHARES.items()
        for group in GROUPS
    }
    tables, findings = tables_of(cells)
    assert tables[0].rows[0][:3] == ("RLS", pytest.approx(0.4), 0.425)
    assert tables[4].rows[0][1] == pytest.approx(2.0)
    assert tables[5].rows[0] == ("RLS", 0.5, 0.5, 0.5)
    assert "RankRLS against RLS: error significantly lower in 6 and higher in 0 of 6 groups." in findings[0]
    assert "Matching pursuit: error significantly lower in 0 and higher in 0 of 6" in findings[1]
