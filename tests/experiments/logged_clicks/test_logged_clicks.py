"""The experiment on logged clicks, on made-up queries."""

from __future__ import annotations

import numpy as np
import pytest

from corank.data.queries import Queries
from experiments.logged_clicks import problems, run
from experiments.logged_clicks.problems import SWAPPED, WANTED, K, Part
from experiments.options import ExperimentOptions


def made_up(fold, test, longest=None):
    rng = np.random.default_rng(10 * fold + test)
    X = rng.normal(size=(40 * 12, 26))
    X[:, 20:25] = X[:, :1]
    grades = np.digitize(X[:, 0] + 0.3 * rng.normal(size=480), [0.0, 1.0]).astype(np.float64)
    kept = np.flatnonzero(np.arange(480) % 12 < (longest or 12))
    return Part(X[kept], grades[kept], Queries.of(np.repeat(np.arange(40), 12)[kept], len(kept)), np.arange(len(kept)))


def test_people_look_want_and_swap_as_told():
    part = made_up(0, False)
    log = problems.clicks(part, -np.arange(480.0), 1.0, 40_000, np.random.default_rng(0))
    row = log.find(part.qid, part.docids)
    assert log.position.max() == K
    expected = WANTED[part.y[row].astype(int)] / log.position
    for place in range(1, K + 1):
        here = log.position == place
        assert abs(log.clicked[here].mean() - expected[here].mean()) < 4 * np.sqrt(0.25 / here.sum())
    # a list starts with another document than its first in all swapped lists but those that drew the first itself
    first = log.position == 1
    assert abs(np.mean(row[first] % 12 != 0) - SWAPPED * (1 - 1 / K)) < 0.01


@pytest.mark.long
def test_a_quick_run_compares_every_way(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "part", made_up)
    monkeypatch.setattr(run, "LISTS", (200, 400, 0))
    monkeypatch.setattr(run, "BIAS_LISTS", 10_000)
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    *learnt, foretold = report.tables
    assert [table.columns[1:3] for table in learnt] == [("200 lists", "400 lists")] * 2
    for table in learnt:
        values = {row[0]: row[1:3] for row in table.rows}
        assert set(values) == {*run.WAYS, *run.RIVALS}
        assert all(0.0 < value <= 1.0 for of in values.values() for value in of)
    by_method = {(row[0], row[1]): row[2:] for row in foretold.rows}
    everything = by_method[f"up to {K} documents", "ips"]
    assert everything[-1] == 0.0
    assert abs(everything[1] / everything[0] - 1.0) < 0.15
    assert by_method["all", "ips"][-1] > 0.0
