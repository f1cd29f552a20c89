"""The rules by hand, a replay on a small collection, and the report on made-up replays."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from corank.comparison.advice import Prior, recommend
from corank.metrics import evaluate
from corank.models.rls import RankRLS
from experiments.compare_advice import collections, replay, run
from experiments.compare_advice.replay import CANDIDATES
from experiments.lambdarank.problems import Judged, made
from experiments.options import ExperimentOptions


def test_rules_differ_as_they_should():
    rng = np.random.default_rng(0)
    base = 0.5 + 0.2 * rng.normal(size=30)
    swing = np.where(np.arange(30) < 16, 0.05, -0.05)  # better on 16 queries, worse on 14
    values = {"columns": base, "rankrls": base + swing, "lightgbm": base - 0.3}
    draw = run.Draw("some", 10, values, {})
    assert run.best_mean(draw) == "rankrls"
    assert run.one_standard_error(draw) == "columns"
    # other collections that differ little say nothing; one method that is far ahead everywhere keeps its lead
    equal = Prior(CANDIDATES, np.full(3, 10.0), np.zeros((3, len(CANDIDATES))), 0.1, 1.0)
    assert recommend(values, prior=equal)[1] == "rankrls"
    ahead = equal.results + 0.5 * (np.array(CANDIDATES) == "lightgbm")
    assert recommend(values, prior=replace(equal, results=ahead, inflation=10.0))[1] == "lightgbm"


def test_the_fixed_rule_does_not_see_the_collection():
    draws = [
        run.Draw(name, 10, {}, {method: float(method == best) for method in CANDIDATES})
        for name, best in zip("abc", ("auto", "lcra", "lcra"), strict=True)
    ]
    assert run.best_of_others(draws[0], draws) == "lcra"
    assert run.best_of_others(draws[1], draws[:2]) == "auto"


@pytest.mark.long
def test_a_replay_measures_models_of_all_drawn_queries(monkeypatch):
    data = made(3, 40).train
    monkeypatch.setattr(replay, "collection", lambda name: data)
    monkeypatch.setattr(replay, "CANDIDATES", ("columns", "rankrls"))
    found = replay.replay("made", 12, 4, 0)
    order = np.random.default_rng([0, 4]).permutation(np.unique(data.qid))
    drawn = np.isin(data.qid, order[:12])
    assert len(found["rankrls"]["inside"]) == 12
    # any sensible alpha gives about the same result on the remaining queries
    model = RankRLS(alpha=20.0).fit(data.X[drawn], data.y[drawn], qid=data.qid[drawn])
    outside = evaluate(data.y[~drawn], model.predict(data.X[~drawn]), data.qid[~drawn], "nDCG@10")["nDCG@10"].mean
    assert found["rankrls"]["outside"] == pytest.approx(outside, abs=0.05)
    assert replay.replay("made", 30, 0, 0) is None


def test_collections_are_cut_to_queries_with_two_grades():
    rng = np.random.default_rng(0)
    qid = np.repeat([5, 3, 9], [40, 30, 10])
    y = np.where(qid == 9, 1.0, rng.integers(0, 2, 80))
    found = collections._capped(Judged(np.arange(80.0)[:, None], y, qid), 12)
    assert {query: int((found.qid == query).sum()) for query in np.unique(found.qid)} == {3: 12, 5: 12}
    np.testing.assert_array_equal(found.y, y[found.X[:, 0].astype(int)])


def test_the_report_of_made_up_replays(monkeypatch, tmp_path):
    def made_up(name, n, draw, seed):
        rng = np.random.default_rng([len(name), n, draw])
        truth = rng.normal(0.6, 0.05, len(CANDIDATES))
        return {
            method: {"inside": (mean + 0.2 * rng.normal(size=n)).tolist(), "outside": float(mean)}
            for method, mean in zip(CANDIDATES, truth, strict=True)
        }

    monkeypatch.setattr(run, "replay", made_up)
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    regrets, fewer, by_collection, calibration, prior = report.tables
    assert regrets.rows[0][0] == run.NEW
    assert all(row[1] >= 0 for row in regrets.rows)
    assert all(0 <= value < 0.2 for row in fewer.rows for value in row[1:])
    # every collection has the same number of draws, so the mean of means is the mean
    for at, row in enumerate(regrets.rows):
        assert row[3] == pytest.approx(np.mean([other[1 + at] for other in by_collection.rows]))
    assert sum(row[1] for row in calibration.rows) == 2 * len(collections.COLLECTIONS) * (len(CANDIDATES) - 1)
    assert len(prior.rows) == 2 * len(collections.COLLECTIONS)
    shipped = json.loads((tmp_path / "advice.json").read_text())
    assert shipped["results"] == [list(row[2:]) for row in prior.rows]


def test_what_is_learnt_by_hand():
    rng = np.random.default_rng(0)
    shifts = dict(zip(CANDIDATES, [-0.2, 0.01, 0.0, -0.01, 0.02, -0.02, 0.0, 0.0], strict=True))
    draws = []
    for collection in "abcdefgh":
        outside = {name: 0.5 + shift + 0.05 * rng.normal() for name, shift in shifts.items()}
        inside = {name: outside[name] + 0.1 * rng.normal(size=10) for name in CANDIDATES}
        draws.append(run.Draw(collection, 10, inside, outside))
    prior = run.learn(draws)
    assert prior.results.tolist() == [[round(draw.outside[name], 4) for name in CANDIDATES] for draw in draws]
    # queries differ with deviation √2 times .1
    assert prior.spread == pytest.approx(0.1 * np.sqrt(2.0), rel=0.15)
    assert prior.inflation in run.INFLATIONS
