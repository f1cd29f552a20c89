from __future__ import annotations

import numpy as np
import pytest

from corank.metrics import evaluate
from corank.models.rls import RankRLS
from experiments.co_rankrls import run
from experiments.datasets.mq2008 import folds, read_parts
from experiments.options import ExperimentOptions


@pytest.mark.usefixtures("real_data")
def test_the_linear_row_is_the_mean_of_the_folds(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "BASES", (5,))
    monkeypatch.setattr(run, "LETOR_LAMBDAS", (1.0, 100.0))
    table = run.folds_table(ExperimentOptions(tmp_path, quick=True))
    assert [row[0] for row in table.rows[:2]] == ["RankRLS, linear", "RankRLS, Gaussian, r = 5"]
    expected = []
    for fold in folds():
        train, test = read_parts(fold.train), read_parts((fold.test,))
        sizes = np.unique(train.qid, return_counts=True)[1]
        alphas = np.array([1.0, 100.0]) / np.sum(sizes**2 / 2)
        model = RankRLS(alphas=alphas, metric="AP", ties=True, scale=False).fit(train.X, train.y, qid=train.qid)
        expected.append(evaluate(test.y, model.predict(test.X), test.qid, "AP", convention="letor4")["AP"].mean)
    assert table.rows[0][1] == pytest.approx(np.mean(expected))
