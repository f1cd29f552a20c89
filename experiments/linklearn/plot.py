"""Plots of the three learnt functions and of BM25, and of the validation curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def plot_functions(best: list[list[float]], plain: list[list[float]], path: Path) -> None:
    """
    Draw functions, each divided by its value in the middle (f1: at tf = 1).

    best, plain: as `shapes` gave them.
    path: the PNG file to write.
    """
    tf, idf, ratio = np.exp(GRIDS[0]), GRIDS[1], np.exp(GRIDS[2])
    bm25 = [tf / (tf + 1.2), np.log1p(np.exp(idf)), 1.0 / (1.0 + 1.2 * (0.25 + 0.75 * ratio))]
    figure, panels = _panels(3)
    labels = ("occurrences of a word in the document", "log(N/df)", "length / mean length")
    for index, (panel, x, label) in enumerate(zip(panels, (tf, idf, ratio), labels, strict=True)):
        lines = (
            ("BM25", bm25[index], ":"),
            ("LinkLearn, whole articles", plain[index], "--"),
            ("LinkLearn, queries", best[index], "-"),
        )
        for name, values, style in lines:
            shown = np.asarray(values)
            panel.plot(x, shown / shown[0 if index == 0 else len(x) // 2], style, label=name)
        panel.set_xlabel(label)
        if index == 0:
            panel.set_xscale("log")
    panels[0].set_ylabel("weight")
    panels[0].legend(fontsize=8, frameon=False)
    _save(figure, path)


def plot_validation(fits: dict[str, dict[str, Any]], path: Path) -> None:
    """
    Draw the average precision on validation links while texts are used.

    fits: for each source of links, what `experiments.linklearn.paper` learnt.
    path: the PNG file to write.
    """
    figure, panels = _panels(len(fits))
    for panel, (source, fit) in zip(panels, fits.items(), strict=True):
        for name, item in fit.items():
            for index, line in enumerate(item if isinstance(item, list) else [item]):
                style, label = (":", "" if index else "other rates") if isinstance(item, list) else ("-", name)
                panel.plot(line["texts"], line["curve"], style, color="grey" if style == ":" else None, label=label)
        panel.set_title(f"links of {source}", fontsize=9)
        panel.set_xlabel("texts used")
    panels[0].set_ylabel("AP of validation links")
    panels[0].legend(fontsize=8, frameon=False)
    _save(figure, path)


def _panels(n: int) -> tuple[Any, Any]:
    """Return a figure with n panels side by side; it needs no window system, and changes no global state of pyplot."""
    import_extra("matplotlib", "report")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.5 * n, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, n, squeeze=False)[0]


def _save(figure: Any, path: Path) -> None:
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
