from __future__ import annotations

import numpy as np
import pytest

from experiments.crr import deploy
from experiments.lambdarank.problems import Judged, Split
from experiments.options import ExperimentOptions


def judged(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(240, 4))
    return Judged(X, np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=240)), 0, 2), np.repeat(np.arange(24), 10))


def test_every_method_has_three_measures_and_the_baseline_learns_the_share(monkeypatch, tmp_path):
    monkeypatch.setattr(deploy, "_split", lambda collection, fold: Split(judged(0), judged(1), (0,)))
    monkeypatch.setattr(deploy, "SIZES", {"MQ2008": (12,)})
    chosen = {name: deploy.METHODS[name] for name in (deploy.BASE, "logistic regression (scikit-learn)")}
    monkeypatch.setattr(deploy, "METHODS", chosen)
    (table,) = deploy.run(ExperimentOptions(tmp_path, repeats=1)).tables
    assert [row[1] for row in table.rows] == [*chosen, deploy.BASELINE]
    assert all(0 < row[2] <= 1 and 0 < row[3] < 0.3 for row in table.rows)
    train, test = judged(0).some(12, np.random.default_rng([0, 0, 12])), judged(1)
    share = np.mean(train.y >= 1)
    assert table.rows[-1][3] == pytest.approx(np.mean(((test.y >= 1) - share) ** 2))
    assert table.rows[-1][4] == pytest.approx(abs(np.mean(test.y >= 1) - share))
