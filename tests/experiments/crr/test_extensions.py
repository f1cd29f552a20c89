"""Landmarks and L1 penalties, on made-up folds."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from corank import make_ranking
from experiments.crr import extensions
from experiments.options import ExperimentOptions


def test_points_are_chosen_by_validation_and_measured_on_the_test_part(tmp_path, monkeypatch):
    fold = SimpleNamespace(train=("0",), validation="1", test="2")
    monkeypatch.setattr(extensions, "folds", lambda: [fold])
    monkeypatch.setattr(extensions, "read_parts", lambda names: make_ranking(15, 20, random_state=int(names[0])))
    monkeypatch.setattr(extensions, "LANDMARKS", (8,))
    monkeypatch.setattr(extensions, "L1", (0.1, 1e6))
    monkeypatch.setattr(extensions, "N_STEPS", 500)
    (table,) = extensions.run(ExperimentOptions(tmp_path, quick=True)).tables
    columns, landmarks, sparse, empty = table.rows
    train, validation, test = (make_ranking(15, 20, random_state=seed) for seed in range(3))

    def precision(alpha, part):
        scores = extensions.CRR("squared", 0.5, alpha).fit(train.X, train.y, qid=train.qid).predict(part.X)
        lists = [part.qid == q for q in np.unique(part.qid)]
        return np.mean([average_precision_score(part.y[of] > 0, scores[of]) for of in lists])

    chosen = max(extensions.ALPHAS, key=lambda alpha: precision(alpha, validation))
    assert columns[1] == pytest.approx(precision(chosen, test))
    assert landmarks[-1] == 8
    assert sparse[-1] < columns[-1]
    assert empty[-1] == 0
