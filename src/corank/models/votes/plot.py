"""Draw a leaderboard: scores with intervals, and the matrix of win probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from corank.errors import import_extra

MAX_ITEMS = 60
"""Items of the intervals; the matrix shows half as many."""


def draw(board: Any, path: Any = None) -> Any:
    """Return a figure of a fitted `Leaderboard`, and write it if a path is given."""
    import_extra("matplotlib", "report")
    from matplotlib.figure import Figure

    n = min(len(board.items_), MAX_ITEMS)
    k = min(n, MAX_ITEMS // 2)
    figure = Figure((11.0, 1.2 + 0.26 * n), layout="constrained")
    left, right = figure.subplots(1, 2)
    y = np.arange(n)
    score, low, high = board.scores_[:n], board.lower_[:n], board.upper_[:n]
    left.errorbar(score, y, xerr=[score - low, high - score], fmt="o", color="#014c9c", capsize=2)
    left.axvline(0.0, color="#c9ced6", linewidth=1, zorder=0)
    left.set_yticks(y, [_shortened(name) for name in board.items_[:n]])
    left.set_ylim(n - 0.5, -0.5)
    left.set_xlabel(f"score, difference to the mean item, {board.level:.0%} interval")
    matrix = board.win_matrix()[:k, :k]
    image = right.imshow(np.where(np.eye(k, dtype=bool), np.nan, matrix), vmin=0.0, vmax=1.0, cmap="RdBu")
    right.set_xticks(np.arange(k), [_shortened(name) for name in board.items_[:k]], rotation=90)
    right.set_yticks(np.arange(k), [_shortened(name) for name in board.items_[:k]])
    right.set_title("share of votes of the row against the column, ties half", fontsize=10)
    if k <= 12:
        for a in range(k):
            for b in range(k):
                if a != b:
                    dark = abs(matrix[a, b] - 0.5) > 0.3
                    right.text(
                        b, a, f"{matrix[a, b]:.2f}", ha="center", va="center", fontsize=8, color="w" if dark else "k"
                    )
    figure.colorbar(image, ax=right, shrink=0.8)
    if path is not None:
        figure.savefig(
            path,
            dpi=150,
            format=str(path).rsplit(".", 1)[-1] if str(path).endswith((".png", ".svg", ".pdf")) else "png",
        )
    return figure


def _shortened(name: str, n: int = 28) -> str:
    return name if len(name) <= n else name[: n - 1] + "…"
