"""The experiment about stopping rules, on small reviews made of words."""

from __future__ import annotations

import numpy as np
import pytest

from corank_lab.records.writer import write_records
from corank_lab.screening import simulate
from corank_lab.screening.stopping.rules import DEFAULT_RULE, STOPPING_RULES, stopping_rule
from experiments.options import ExperimentOptions
from experiments.screening import stopping
from helpers.records import collection

KINDS = {"SYNERGY": ("One_2001",), "Cohen": ("Two_2002",)}


@pytest.fixture
def small(monkeypatch, tmp_path):
    for seed, (folder, (name,)) in enumerate(zip(("synergy_reviews", "reviews_more"), KINDS.values(), strict=True)):
        records = collection(50, 9, seed=seed)
        (tmp_path / "data" / folder).mkdir(parents=True)
        write_records(tmp_path / "data" / folder / f"{name}.csv", records, records.labels, {})
    monkeypatch.setenv("CORANK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(stopping, "KINDS", KINDS)
    names = tuple(name for names in KINDS.values() for name in names)
    monkeypatch.setattr(stopping, "QUICK", names)
    stopping._collection.cache_clear()
    yield ExperimentOptions(tmp_path / "out", quick=True)
    stopping._collection.cache_clear()


@pytest.mark.long
def test_a_run_replays_every_rule(small):
    report = stopping.run(small)
    rules, _, choice, groups, _, reviews = report.tables
    assert [row[0] for row in rules.rows] == list(STOPPING_RULES)
    replays = [simulate(collection(50, 9, seed=seed), 2, rule="consecutive") for seed in (0, 1)]
    row = dict(zip(rules.columns, rules.rows[list(STOPPING_RULES).index("consecutive")], strict=True))
    reached = [np.mean([one.stop_recall >= 0.95 for one in of_review]) for of_review in replays]
    assert (row["SYNERGY"], row["Cohen"]) == pytest.approx(tuple(reached))
    assert row["read"] == pytest.approx(np.mean([[one.stop / 48 for one in of_review] for of_review in replays]))
    assert [row[:3] for row in reviews.rows] == [("One_2001", 50, 9), ("Two_2002", 50, 9)]
    assert set(KINDS) <= {row[0] for row in groups.rows}
    assert choice.rows
    assert stopping.run(small).tables == report.tables


def test_a_traced_rule_stops_where_the_rule_stops():
    rng = np.random.default_rng(0)
    for n, share in ((80, 0.2), (300, 0.1), (300, 0.02)):
        found = rng.random(n) < share * 4 * np.exp(-np.arange(n) / (0.3 * n))
        found[0] = True
        rule = stopping_rule(DEFAULT_RULE, n)
        share, _ = stopping._stop(stopping._trace(found), stopping.DEFAULT, stopping.OTHERS)
        assert share == pytest.approx(rule.stops_at(found) / n)


def test_the_needed_place():
    found = np.array([1, 0, 1, 0, 1, 0], dtype=bool)
    assert stopping.place_needed(found) == 5
    found = np.zeros(100, dtype=bool)
    found[:40] = found[90] = True
    assert stopping.place_needed(found) == 39  # 40 of 42 relevant records, one of which is known
