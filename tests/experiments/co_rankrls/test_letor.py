from __future__ import annotations

import numpy as np
import pytest

from corank.data.mq2008 import folds, read_parts
from corank.experiments.co_rankrls import letor
from corank.experiments.options import ExperimentOptions
from corank.metrics import evaluate
from corank.rls import RankRLS


@pytest.mark.usefixtures("real_data")
def test_the_linear_row_is_the_mean_of_the_folds(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "BASES", (5,))
    monkeypatch.setattr(letor, "ALPHAS", (1.0, 100.0))
    table = letor.folds_table(ExperimentOptions(tmp_path, quick=True))
    assert [row[0] for row in table.rows[:2]] == ["RankRLS, linear", "RankRLS, Gaussian, r = 5"]
    expected = []
    for fold in folds():
        train, test = read_parts(fold.train), read_parts((fold.test,))
        model = RankRLS(alphas=(1.0, 100.0), metric="AP").fit(train.X, train.y, qid=train.qid)
        expected.append(evaluate(test.y, model.predict(test.X), test.qid, "AP", convention="letor4")["AP"].mean)
    assert table.rows[0][1] == pytest.approx(np.mean(expected))
