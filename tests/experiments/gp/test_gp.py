"""The experiments of Chu and Ghahramani: their parts, and the whole of the one that needs no data."""

from __future__ import annotations

import numpy as np

from experiments import find
from experiments.gp.active import share_wrong
from experiments.gp.spiral import fitted, spiral
from experiments.options import ExperimentOptions


def test_wrong_pairs_are_counted_one_by_one():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 5, 30).astype(float), rng.integers(0, 5, 30).astype(float)
    wrong = [
        0.5 if y[i] == y[j] or scores[i] == scores[j] else float((scores[i] > scores[j]) != (y[i] > y[j]))
        for i in range(30)
        for j in range(i + 1, 30)
    ]
    assert share_wrong(scores, y) == np.mean(wrong)


def test_a_graph_carries_one_preference_along_the_spiral():
    X, pair = spiral()
    models = fitted(X, pair)
    along = {name: np.corrcoef(model.predict(X), -np.arange(35))[0, 1] for name, model in models.items()}
    assert along["semi-supervised"] > along["supervised"]


def test_the_spiral_makes_a_report(tmp_path):
    report = find("gp-spiral")(ExperimentOptions(tmp_path))
    assert [row[0] for row in report.tables[0].rows] == ["supervised", "semi-supervised"]
    assert (tmp_path / "gp-spiral.png").read_bytes().startswith(b"\x89PNG")
