from __future__ import annotations

import numpy as np
import pytest

from experiments.gp import judges, questions
from experiments.options import ExperimentOptions


@pytest.mark.long
def test_every_way_predicts_the_pairs_that_were_not_answered(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    every = np.column_stack(np.triu_indices(8, 1))
    people = []
    for _ in range(12):
        f = np.arange(8) + 0.5 * rng.normal(size=8)
        gap = f[every[:, 0]] - f[every[:, 1]]
        people.append(np.where((gap > 0)[:, None], every, every[:, ::-1]))
    monkeypatch.setattr(judges, "preferences", lambda name: (8, people))
    found = judges.compared("made", 4, 12, [0, 0], coins=True)
    assert {len(of) for of in found["right"].values()} == {12}
    assert sum(found["is_coin"]) == 3
    assert np.mean(found["right"]["judges"]) > 0.6
    monkeypatch.setattr(judges, "SETTINGS", (("made", 4),))
    report = judges.run(ExperimentOptions(tmp_path, quick=True))
    assert [row[0] for row in report.tables[0].rows] == ["made"]
    assert [row[1] for row in report.tables[1].rows] == [3, 9]


def test_every_rule_begins_with_the_same_pair_and_ends_with_fewer_errors(monkeypatch):
    X = np.random.default_rng(1).normal(size=(40, 2))
    monkeypatch.setattr(questions, "boston", lambda: (X, X[:, 0]))
    monkeypatch.setattr(questions, "ITEMS", 12)
    monkeypatch.setitem(questions.QUESTIONS, "Boston", 6)
    found = questions.curves("Boston", [0, 0])
    assert set(found) == set(questions.RULES)
    assert len({curve[0] for curve in found.values()}) == 1
    assert all(len(curve) == len(found["random"]) for curve in found.values())
    assert found["bald"][-1] <= found["bald"][0]
