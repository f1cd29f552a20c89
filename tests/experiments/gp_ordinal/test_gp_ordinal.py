"""The experiment on ordinal sets, on made-up ones; its rivals against what they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from experiments.gp_ordinal import run
from experiments.gp_ordinal.methods import METHODS, all_thresholds
from experiments.options import ExperimentOptions


def made_up(name):
    rng = np.random.default_rng(len(name))
    X = rng.normal(size=(60, 3))
    return X, np.digitize(X @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=60), [-0.7, 0.7]) + 1.0


def test_all_thresholds_minimise_what_mord_minimises():
    """Σ over rows and thresholds of log(1 + exp(∓(xᵀw − θ))) + ½ alpha ‖w‖², by a general solver."""
    X, y = made_up("x")

    def loss(p):
        margin = (X @ p[:3])[:, None] - p[3:]
        side = np.where(y[:, None] > [1.0, 2.0], 1.0, -1.0)
        return np.logaddexp(0.0, -side * margin).sum() + 0.5 * p[:3] @ p[:3]

    best = minimize(loss, np.array([0.0, 0.0, 0.0, -1.0, 1.0])).x
    grades = 1.0 + ((X @ best[:3])[:, None] > best[3:]).sum(axis=1)
    assert np.mean(all_thresholds(X, y, X, 1.0) == grades) > 0.98


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_quick_run_reports_every_method(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "read_set", made_up)
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    absolute, wrong, seconds = report.tables
    assert absolute.columns == wrong.columns == ("set", *METHODS)
    ranks = absolute.rows[-1][1:]
    assert sum(ranks) == pytest.approx(len(METHODS) * (len(METHODS) + 1) / 2)
    at = list(METHODS).index("GPOR") + 1
    assert all(row[at] < row[1] for row in absolute.rows[:-1])
    assert len(seconds.rows) == 1
    assert len(report.findings) == 10
