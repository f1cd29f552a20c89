from __future__ import annotations

import numpy as np
import pytest

from corank_lab.cli.screening.results import HEIGHT, MARGIN, recall_curve
from corank_lab.screening import ScreeningReplay


def replay(found):
    found = np.array(found, dtype=bool)
    return ScreeningReplay(0, np.arange(len(found)), found, 0.0, len(found), 1.0)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_stars_are_at_the_recall(width):
    """Every column is compared with the recall counted record by record."""
    found = np.random.default_rng(0).random(300) < 0.3 * np.exp(-np.arange(300) / 60)
    lines = recall_curve([replay(found)], width).split("\n")
    assert max(map(len, lines[1:])) <= min(width, 80)
    plot = [line[MARGIN + 1 :] for line in lines[1 : 1 + HEIGHT]][::-1]
    columns = min(width, 80) - MARGIN - 1
    for column in range(columns):
        read = int(column * len(found) / (columns - 1) + 1e-9)
        recall = sum(found[:read]) / sum(found)
        highest = max(row for row, line in enumerate(plot) if line[column : column + 1] == "*")
        assert highest == round(recall * (HEIGHT - 1))


def test_one_curve_for_any_number_of_starts():
    one, other = [1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1]
    both = recall_curve([replay(one), replay(other)], 40)
    assert "mean of 2 starts" in both
    assert "mean of 1 start," in recall_curve([replay(one)], 40)
    assert both.split("\n")[-2].split() == ["0", "4", "8"]
