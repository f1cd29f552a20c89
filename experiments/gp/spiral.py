"""
One preference on a spiral: figure 1 of Chu and Ghahramani, Extensions of Gaussian Processes for Ranking.

35 points along a spiral and a single preference. Without a graph, f falls off around the two judged points, across the
arms of the spiral; with a graph, it follows the arms. The paper's parameters are κo = 0.25, κ = 4 and σ² = 0.01:
with k(x, x) = 1 they are gamma = 2, sigma² = 0.04 and a graph of weight 0.25.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels import GaussianKernel
from corank.comparison.report import Report
from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra
from corank.models.gp import PreferenceGP
from corank.tables import ReportTable
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

N, SIZE = 35, 0.25


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: ignored; there are no random draws, and the run is short.
    Returns: how well each prior ranks the points along the spiral, and the three panels of the figure.
    """
    X, pair = spiral()
    models = fitted(X, pair)
    rows = []
    for name, model in models.items():
        mean, std = model.predict(X, return_std=True)
        along = float(np.corrcoef(np.argsort(np.argsort(-mean)), np.arange(N))[0, 1])
        rows.append((name, along, float(std[pair].mean()), float(std.mean())))
    picture = options.folder / "gp-spiral.png"
    plot(X, pair, models, picture)
    table = ReportTable(
        "Order along the spiral",
        (
            "prior",
            "rank correlation with the position on the spiral",
            "standard deviation at the pair",
            "mean standard deviation",
        ),
        tuple(rows),
        digits=3,
    )
    about = f"{N} points on a spiral; the outermost is preferred to the innermost; there are no other answers."
    return Report("One preference on a spiral", about, (table,), (), (picture,))


def spiral() -> tuple[Floats, NDArray[np.int64]]:
    """The points, from the outer end to the inner one, and the one pair that is judged."""
    turn = np.sqrt(np.linspace(1.0, 0.05, N)) * 3.5 * np.pi
    X = np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]) * (2.0 / (3.5 * np.pi))
    return X, np.array([0, N - 1])


def fitted(X: Floats, pair: NDArray[np.int64]) -> dict[str, PreferenceGP]:
    """The supervised and the semi-supervised model, with the paper's parameters."""
    return {
        name: PreferenceGP(
            GaussianKernel(2.0), 0.1 / np.sqrt(SIZE), learn=False, scale=False, graph_neighbors=k, graph_weight=SIZE
        ).fit(X, pairs=[pair])
        for name, k in (("supervised", None), ("semi-supervised", 3))
    }


def plot(X: Floats, pair: NDArray[np.int64], models: dict[str, PreferenceGP], path: Path) -> None:
    """Draw the contours of both ranking functions, and the error bars of both."""
    import_extra("matplotlib", "report")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.6, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 3)
    ticks = np.linspace(-2.4, 2.4, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    for panel, (name, model) in zip(panels, models.items(), strict=False):
        height = model.predict(grid).reshape(81, 81)
        drawn = panel.contourf(ticks, ticks, height, 15, cmap="RdBu_r", vmin=-abs(height).max(), vmax=abs(height).max())
        figure.colorbar(drawn, ax=panel)
        panel.plot(*X.T, "o", color="0.3", markersize=3.5)
        panel.plot(*X[pair[0]], "^", color="k", markersize=9)
        panel.plot(*X[pair[1]], "v", color="k", markersize=9)
        panel.set(title=f"{name}: f", aspect="equal")
        mean, std = model.predict(X, return_std=True)
        place = np.arange(1, N + 1) + (0.0 if name == "supervised" else 0.35)
        panels[2].errorbar(place, mean, std, fmt="o", markersize=3, capsize=2, linewidth=1, label=name)
    panels[2].set(title="f and its standard deviation", xlabel="position on the spiral, from outside")
    panels[2].legend()
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
