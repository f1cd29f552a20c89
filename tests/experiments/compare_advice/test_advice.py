"""The rules by hand, a replay on a small collection, and the report on made-up replays."""

from __future__ import annotations

import numpy as np
import pytest

from corank.metrics import evaluate
from corank.models.rls import RankRLS
from experiments.compare_advice import collections, replay, rules, run
from experiments.compare_advice.replay import CANDIDATES
from experiments.lambdarank.problems import Judged, made
from experiments.options import ExperimentOptions


def test_rules_differ_as_they_should():
    rng = np.random.default_rng(0)
    base = 0.5 + 0.2 * rng.normal(size=30)
    swing = np.where(np.arange(30) < 16, 0.05, -0.05)  # better on 16 queries, worse on 14
    values = {"columns": base, "rankrls": base + swing, "lightgbm": base - 0.3}
    assert rules.best_mean(values) == "rankrls"
    assert rules.one_standard_error(values) == "columns"
    assert rules.not_proven_worse(values) == "columns"
    proved = {**values, "rankrls": base + 0.2 + 0.01 * rng.normal(size=30)}
    assert {rule(proved) for rule in (rules.not_proven_worse, rules.new_rule, rules.one_standard_error)} == {"rankrls"}
    few = {name: one[:3] for name, one in values.items()}
    assert rules.not_proven_worse(few) == rules.best_mean(few)
    assert rules.always("lightgbm")(values) == "lightgbm"
    # without a prior the best expected result is the best mean, with much of it the best offset
    assert rules.shrunk(values, {}, 20.0) == "rankrls"
    assert rules.shrunk(values, {"columns": 0.0, "rankrls": 0.0, "lightgbm": 0.1}, 1e6) == "lightgbm"


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
    regrets, by_collection, calibration, offsets, weights = report.tables
    assert [row[0] for row in regrets.rows] == list(rules.RULES)
    assert all(row[1] >= 0 for row in regrets.rows)
    # every collection has the same number of draws, so the mean of means is the mean
    for row, other in zip(regrets.rows, by_collection.rows, strict=True):
        assert row[3] == pytest.approx(np.mean(other[1:]))
    assert sum(row[1] for row in calibration.rows) == 10 * (len(CANDIDATES) - 1)
    assert [row[0] for row in offsets.rows] == list(CANDIDATES)
    assert [row[0] for row in weights.rows] == list(run.PSEUDOS)


def test_offsets_and_variances_by_hand():
    def of(collection, *means):
        noise = np.array([-1.0, 0.0, 1.0])
        inside = {name: at * noise for at, name in enumerate(CANDIDATES)}
        return run.Draw(collection, 10, 0, inside, dict(zip(CANDIDATES, means, strict=True)))

    draws = [
        of("a", 0.1, 0.3, 0.4, 0.5, 0.6, 0.7), of("b", 0.4, 0.7, 0.6, 0.5, 0.4, 0.3),
        of("c", 0.2, 0.5, 0.5, 0.5, 0.5, 0.9),
    ]  # fmt: skip
    assert list(run.offsets_of(draws, 10).values()) == pytest.approx([-0.05, 0.0, 0.0, 0.0, 0.0, 0.05])
    within, between = run.variances(draws, 10)
    # the methods 1 to 5 have values 1, 2, ... times the noise: differences of 1 to 4, of variance 1 to 16
    assert within == pytest.approx((4 * 1 + 3 * 4 + 2 * 9 + 16) / 10)
    wanted = [
        np.var([list(one.outside.values())[a] - list(one.outside.values())[b] for one in draws], ddof=1)
        for a in range(1, 6) for b in range(a + 1, 6)
    ]  # fmt: skip
    assert between == pytest.approx(np.mean(wanted))
