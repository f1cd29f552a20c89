from __future__ import annotations

import numpy as np

from experiments.lcra.plot import plot_gains


def test_the_picture_is_a_png_for_one_repeat_and_for_many(tmp_path):
    gains = {
        "one repeat": [(0.1, np.array([0.02]))],
        "two": [(0.01, np.array([0.02, 0.01])), (0.5, np.array([0.0, -0.01]))],
    }
    plot_gains(gains, tmp_path / "gains.png")
    assert (tmp_path / "gains.png").read_bytes().startswith(b"\x89PNG\r\n")
