"""Plot of the three learnt functions and of BM25."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra
from corank.text import LinkLearn

GRIDS = (np.linspace(0.0, 3.5, 60), np.linspace(0.2, 7.5, 60), np.linspace(-1.6, 1.6, 60))
"""Points at which the functions are plotted: log tf, log(N/df) and log(length/mean length)."""


def shapes(model: LinkLearn) -> list[list[float]]:
    """Return the three functions on `GRIDS`; f2 is squared, because the weight of a word contains it twice."""
    f1, f2, f3 = (network(x) for network, x in zip(model.networks_, GRIDS, strict=True))
    return [f1.tolist(), (f2**2).tolist(), f3.tolist()]


def plot_functions(best: list[list[float]], paper: list[list[float]], path: Path) -> None:
    """
    Draw functions, each divided by its value in the middle (f1: at tf = 1).

    best, paper: as `shapes` gave them.
    path: the PNG file to write.
    """
    import_extra("matplotlib", "report")
    # needs no window system, and changes no global state of pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tf, idf, ratio = np.exp(GRIDS[0]), GRIDS[1], np.exp(GRIDS[2])
    bm25 = [tf / (tf + 1.2), np.log1p(np.exp(idf)), 1.0 / (1.0 + 1.2 * (0.25 + 0.75 * ratio))]
    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 3)
    labels = ("occurrences of a word in the document", "log(N/df)", "length / mean length")
    for at, (panel, x, label) in enumerate(zip(panels, (tf, idf, ratio), labels, strict=True)):
        lines = (
            ("BM25", bm25[at], ":"),
            ("LinkLearn, as in the paper", paper[at], "--"),
            ("LinkLearn, queries", best[at], "-"),
        )
        for name, values, style in lines:
            shown = np.asarray(values)
            panel.plot(x, shown / shown[0 if at == 0 else len(x) // 2], style, label=name)
        panel.set_xlabel(label)
        if at == 0:
            panel.set_xscale("log")
    panels[0].set_ylabel("weight")
    panels[0].legend(fontsize=8, frameon=False)
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
