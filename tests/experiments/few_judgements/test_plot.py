from __future__ import annotations

import numpy as np

from experiments.few_judgements.plot import plot_curves


def test_the_picture_is_a_png_for_one_topic_and_for_many(tmp_path):
    curves = {"one": {"a": np.array([[0.1, 0.2]])}, "two": {"a": np.array([[0.1, 0.2], [0.2, 0.4]])}}
    plot_curves(curves, (5, 15), {"one": 0.1, "two": 0.2}, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG\r\n")
