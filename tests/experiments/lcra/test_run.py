from __future__ import annotations

import numpy as np
import pytest

from corank.data.synthetic import make_ranking
from experiments.lcra import run, trial
from experiments.lcra.problems import ProblemSource, SplitRepeat
from experiments.options import ExperimentOptions


def small(rng, half):
    made = make_ranking(20, 8, random_state=int(rng.integers(1000)))
    test = made.qid >= 14
    return SplitRepeat(made.X, made.y, made.qid, np.flatnonzero(~test), np.flatnonzero(test), list(made.views))


def test_a_choice_is_that_of_the_other_half_and_never_sees_its_own():
    values = np.array([[1.0, 0.0, 5.0], [0.1, 0.2, 0.0], [2.0, 0.0, 5.0], [0.1, 0.3, 0.0]])
    # odd repeats are best at point 1, even repeats at point 2
    np.testing.assert_array_equal(run.choose(values, 1.0), [0.0, 0.0, 0.0, 0.0])
    # as errors: odd repeats at point 2, even ones at point 1
    np.testing.assert_array_equal(run.choose(values, -1.0), [5.0, 0.2, 5.0, 0.3])
    changed = values.copy()
    changed[0] = [7.0, 9.0, 8.0]
    assert run.choose(changed, 1.0)[0] == 9.0


@pytest.mark.long
def test_the_report_has_a_row_per_problem_and_number_of_judgements(monkeypatch, tmp_path):
    listed = {
        "MQ2008": ProblemSource("MQ2008", "stands in", "AP", small, (0.5, 0.2)),
        "few users": ProblemSource("few users", "two draws", "disagreement", small, (0.5, 0.3, 5), n_draws=2),
    }
    monkeypatch.setattr(run, "problems", lambda: listed)
    monkeypatch.setattr(run, "LOSS_PROBLEMS", ("few users",))
    monkeypatch.setattr(run, "PURSUITS", (("few users", 0.3), ("few users", 5)))
    for module in (run, trial):
        monkeypatch.setattr(module, "N_STEPS", 200)
    monkeypatch.setattr(trial, "N_TERMS", 2)
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    names, chosen, by_alpha, defaults, pursuits, losses, paper = report.tables
    cells = [
        ("MQ2008", "50%"),
        ("MQ2008", "20%"),
        ("few users", "50%"),
        ("few users", "30%"),
        ("few users", "5 queries"),
    ]
    assert [(row[0], row[2]) for row in chosen.rows] == cells
    assert [row[:2] for row in defaults.rows] == cells
    assert [row[0] for row in names.rows] == [row[0] for row in by_alpha.rows] == ["MQ2008", "few users"]
    assert [row[1] for row in pursuits.rows] == ["30%", "5 queries"]
    assert [row[2] for row in losses.rows] == list(run.LOSSES)
    assert [row[0] for row in paper.rows] == list(run.PAPER)
    for row in chosen.rows:
        sign = listed[row[0]].sign
        assert np.isclose(row[6], sign * (row[5] - row[4]))
    assert report.plots[0].read_bytes().startswith(b"\x89PNG")
