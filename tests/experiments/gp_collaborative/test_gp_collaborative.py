"""The experiment on MovieLens, on a made-up catalogue."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from experiments.gp_collaborative import kernels, run
from experiments.gp_collaborative.methods import CHEAP, METHODS, errors
from experiments.gp_collaborative.problem import KERNELS, Movies
from experiments.options import ExperimentOptions


def made_up():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 2))
    ratings = np.clip(np.round(3 + Z @ [0.5, 0.0] + rng.normal(size=(50, 2)) @ Z.T), 1, 5)
    Y = np.where(rng.random((8, 30)) < 0.8, ratings[:8], np.nan)
    others = sparse.csr_array(ratings[8:])
    features = {"correlation": sparse.csr_array((ratings[8:] - 3.01).T), "directions": Z}
    return Movies(Y, others, features)


def test_errors_are_counted_on_movies_that_were_not_seen():
    known, train = made_up(), np.arange(10)
    found = errors(known, train, 3, lambda: (np.full((8, 30), 3.0), np.full((8, 30), 4.0)))
    rest = known.Y[:3, 10:]
    np.testing.assert_allclose(found["absolute"], np.nanmean(np.abs(rest - 3), axis=1))
    there = ~np.isnan(rest)
    np.testing.assert_allclose(found["wrong"], [np.mean(y[t] != 4) for y, t in zip(rest, there, strict=True)])


def test_a_worse_kernel_is_that_of_fewer_users():
    known = made_up()
    whole = known.features["correlation"].toarray()
    thin = kernels.thinned(known, 7, 0, 0).features["correlation"].toarray()
    assert thin.shape == (30, 7)
    assert {column.tobytes() for column in thin.T} <= {column.tobytes() for column in whole.T}
    np.testing.assert_array_equal(kernels.thinned(known, 50, 0, 0).features["correlation"].toarray(), whole)


@pytest.mark.long
def test_a_quick_run_reports_every_method(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "movies", made_up)
    monkeypatch.setattr(run, "training_movies", lambda n, repeat, seed: np.arange(0, 30, 2))
    monkeypatch.setattr(run, "SCALES", ((10, 4), (20, 8)))
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    absolute, wrong, seconds = report.tables
    assert len(absolute.rows) == len(wrong.rows) == len(CHEAP) + len(KERNELS) * len(METHODS)
    for row in absolute.rows:
        assert 0 < row[2] < 1.5
    assert [row[:2] for row in seconds.rows] == [(10, 4), (20, 8)]
    assert len(report.findings) == 8


def test_the_real_movies_are_those_that_are_rated_most(real_data):
    known = run.movies()
    assert known.Y.shape == (100, 800)
    assert known.others.shape[1] == 800
    assert all(rows.shape[0] == 800 for rows in known.features.values())
    train = run.training_movies(100, 0, 0)
    assert len(np.unique(train)) == 100
    assert not np.array_equal(train, run.training_movies(100, 1, 0))
