from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from corank.data.mq2008 import folds, read_parts
from corank.descent import CRR
from corank.experiments.crr.grid import Point, predict
from corank.experiments.crr.letor import run
from corank.experiments.options import ExperimentOptions


@pytest.fixture(autouse=True)
def one_thread():
    """Matrices are small here, and threads of several test processes wait for each other longer than they work."""
    with threadpool_limits(1):
        yield


def test_a_quick_run_on_the_real_folds_lies_near_the_paper(real_data, tmp_path):
    report = run(ExperimentOptions(tmp_path, quick=True))
    table = report.tables[0]
    found = {row[0]: row[1:4] for row in table.rows}
    # three standard errors of a MAP over 784 queries
    for method, paper in (("regression", 0.464), ("ranking", 0.479), ("CRR, mix 0.5", 0.479)):
        assert abs(found[method][0] - paper) < 0.04
    assert found["regression"][2] < found["CRR, mix 0.5"][2] < found["ranking"][2]
    assert run(ExperimentOptions(tmp_path, quick=True)).tables == report.tables


def test_the_grid_scores_as_the_exact_estimator_does(real_data):
    fold = folds()[0]
    rows, test = read_parts(fold.train), read_parts((fold.test,))
    model = CRR(loss="squared", mix=0.3, alpha=0.05, solver="exact").fit(rows.X, rows.y, qid=rows.qid)
    scores = predict("grades", Point("pairs", 0.3, 0.05), fold.train, test.X)
    np.testing.assert_allclose(scores, model.predict(test.X), atol=1e-8)
