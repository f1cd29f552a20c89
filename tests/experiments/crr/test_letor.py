from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from experiments.crr.letor import run
from experiments.options import ExperimentOptions


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
