from __future__ import annotations

import numpy as np
import pytest

from corank.metrics import disagreement_error
from corank.models.pursuit import RankingPursuit
from experiments.options import ExperimentOptions
from experiments.ranking_pursuit import run
from experiments.ranking_pursuit.grams import Grams
from experiments.ranking_pursuit.methods import METHODS, errors_of


@pytest.mark.long
def test_a_trial_reports_the_errors_of_the_parameters_it_chose(drawn):
    found = run.try_methods(drawn, ("RankRLS", "Matching pursuit"), (1.0, 8.0, 64.0))
    assert set(found) == {"RankRLS", "Matching pursuit", "Matching pursuit, by order"}
    cell = found["RankRLS"]
    at = METHODS["RankRLS"].grid.index(cell["point"])
    grams = Grams(drawn, cell["width"])
    scores, _ = METHODS["RankRLS"].scores(grams, drawn.tested)
    users = drawn.tested
    for b in range(len(users)):
        rows = slice(users.test_starts[b], users.test_starts[b + 1])
        assert cell["errors"][b] == pytest.approx(disagreement_error(users.y_test[rows], scores[rows, at]), abs=1e-6)
    held, _ = METHODS["RankRLS"].scores(grams, drawn.held_out)
    assert np.argmin(errors_of(held, drawn.held_out)[0].mean(axis=0)) == at


@pytest.mark.long
def test_levelled_squares_are_those_of_scores_moved_by_the_mean_of_what_the_training_ratings_miss(drawn):
    cell = run.try_methods(drawn, ("Ranking pursuit",), (8.0, 16.0))["Ranking pursuit"]
    users, K = drawn.tested, Grams(drawn, cell["width"]).whole
    at = METHODS["Ranking pursuit"].grid.index(cell["point"])
    for b in (0, 7):
        own, asked = (slice(starts[b], starts[b + 1]) for starts in (users.train_starts, users.test_starts))
        train, y = users.train[own], users.y[own]
        model = RankingPursuit(60, "precomputed").fit(K[np.ix_(train, train)], y)
        n_terms = min(at + 1, len(model.terms_))
        level = np.mean(y - model.predict(K[np.ix_(train, train)], n_terms=n_terms))
        f = model.predict(K[np.ix_(users.test[asked], train)], n_terms=n_terms) + level
        assert cell["levelled"][b] == pytest.approx(np.mean((users.y_test[asked] - f) ** 2), rel=1e-4)


@pytest.mark.long
def test_the_whole_experiment_on_made_up_ratings(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "DATA", {"Jester": lambda: ratings, "MovieLens": lambda: ratings})
    monkeypatch.setattr(run, "QUICK_USERS", 8)
    monkeypatch.setattr(run, "WIDTHS", (4.0, 32.0, 32.0, 32.0))
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    assert [table.title.split(":")[0] for table in report.tables[:5]] == [f"Table {n}" for n in range(1, 6)]
    assert "Ranking pursuit" in report.markdown()
    monkeypatch.setattr(run, "draw_users", None)
    assert run.run(ExperimentOptions(tmp_path, quick=True)) == report
