from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from experiments.lcra import losses
from experiments.lcra.problems import ProblemSource
from experiments.options import ExperimentOptions


def test_folds_hold_every_scored_row_once_and_split_no_query():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.5, np.nan, rng.integers(3, size=200))
    qid = np.repeat(np.arange(20), 10)
    fold = losses._folds(y, qid, rng)
    assert ((fold == -1) == np.isnan(y)).all()
    for query in range(20):
        assert len(set(fold[(qid == query) & (fold >= 0)])) <= 1
    single = losses._folds(y, np.zeros(200), rng)
    for grade in range(3):
        sizes = np.bincount(single[y == grade], minlength=losses.N_FOLDS)
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.long
def test_an_outcome_has_a_tuned_and_an_untuned_value_of_each_method(monkeypatch):
    monkeypatch.setattr(losses, "N_STEPS", 200)
    rng = np.random.default_rng(0)
    words, cited = (sparse.csr_array(rng.random((80, 6)) * (rng.random((80, 6)) < 0.5)) for _ in range(2))
    y = (words.toarray()[:, 0] + cited.toarray()[:, 0] > 0.5).astype(float)
    problem = ProblemSource("documents", "", "AP", lambda rng: losses._documents([words, cited], y, rng))
    draw = problem.draw(np.random.default_rng(1))
    assert [list(view) for view in draw.views] == [list(range(6)), list(range(6, 12))]
    assert not set(draw.train) & set(draw.test)
    found = losses._outcome(problem, "hinge", 0.5, 0, 0)
    assert set(found) == {"SPD", "SPD-MV", "LCRA"}
    assert all(len(values) == 2 and all(0 < value <= 1 for value in values) for values in found.values())


@pytest.mark.long
def test_the_report_has_a_row_per_problem_fraction_loss_and_tuning(monkeypatch, tmp_path):
    monkeypatch.setattr(losses, "N_STEPS", 200)
    monkeypatch.setattr(losses, "FRACTIONS", (0.5,))
    rng = np.random.default_rng(0)
    words = sparse.csr_array(rng.random((60, 8)))
    y = (words.toarray()[:, 0] > 0.6).astype(float)
    problem = ProblemSource("documents", "", "AP", lambda rng: losses._documents([words], y, rng))
    monkeypatch.setattr(losses, "loss_problems", lambda: (problem,))
    _, table = losses.run(ExperimentOptions(tmp_path, repeats=1)).tables
    assert {row[2:4] for row in table.rows} == {(loss, how) for loss in losses.LOSSES for how in ("tuned", "untuned")}
    for row in table.rows:
        assert row[7] == row[6] - max(row[4:6])
