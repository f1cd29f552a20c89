"""Recall against records read, as a text plot for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corank_lab.screening.simulate import ScreeningReplay

HEIGHT, MARGIN, WIDEST = 11, 7, 80


def recall_curve(replays: Sequence[ScreeningReplay], width: int = WIDEST) -> str:
    """Plot the mean recall of replays of one collection as stars, and random reading as points."""
    import numpy as np

    n_columns = max(min(width, WIDEST) - MARGIN - 1, 10)
    n = len(replays[0].found)
    mean = np.r_[0.0, np.mean([replay.curve for replay in replays], axis=0)]
    shares = np.linspace(0, 1, n_columns)
    # position of the last record read
    recall = mean[np.floor(shares * n + 1e-9).astype(int)]
    levels = np.rint(recall * (HEIGHT - 1)).astype(int)
    grid = np.full((HEIGHT, n_columns), " ")
    grid[np.rint(shares * (HEIGHT - 1)).astype(int), np.arange(n_columns)] = "."
    below = 0
    for column, level in enumerate(levels):
        grid[min(below + 1, level) : level + 1, column] = "*"  # connect jumps
        below = level
    names = {0: "0 %", HEIGHT // 2: "50 %", HEIGHT - 1: "100 %"}
    lines = [f"{names.get(row, ''):>{MARGIN - 1}} |{''.join(grid[row]).rstrip()}" for row in reversed(range(HEIGHT))]
    middle = f"{n // 2}".center(n_columns - len("0") - len(str(n)))
    rule = " " * (MARGIN - 1) + " +" + "-" * (n_columns - 1)
    starts = "1 start" if len(replays) == 1 else f"{len(replays)} starts"
    return "\n".join(
        [
            f"relevant records found (*: mean of {starts}, .: at random)",
            *lines, rule,
            " " * MARGIN + f"0{middle}{n}",
            "records read".center(n_columns + 2 * MARGIN).rstrip(),
        ]
    )  # fmt: skip
