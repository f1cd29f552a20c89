"""Pictures of learning from clicks: who learns how fast, and what agreement adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra
from experiments.clicks.problem import fold_error

Floats = NDArray[np.float64]


def plot_lines(panels: Mapping[str, Mapping[str, Floats]], at: Sequence[int], words: str, path: Path) -> None:
    """
    Plot means over runs with 95 % bands against the number of lists, one panel after the other.

    panels: title to label to values of shape (n_runs, n_points).
    at: numbers of lists.
    words: what is measured.
    path: the PNG file to write.
    """
    import_extra("matplotlib", "report")
    # no window system is asked for, and no global state is touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(3.3 * columns, 3.0 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for panel, (title, by_label) in zip(axes.ravel(), panels.items(), strict=False):
        for label, values in by_label.items():
            mean, half = values.mean(axis=0), 1.96 * np.nan_to_num(fold_error(values))
            (line,) = panel.plot(at, mean, marker="o", markersize=3, label=label)
            panel.fill_between(at, mean - half, mean + half, color=line.get_color(), alpha=0.2, linewidth=0)
        panel.set_xscale("log")
        panel.set_title(title, fontsize=10)
    for panel in axes.ravel()[len(panels) :]:
        panel.set_visible(False)
    axes[0, 0].legend(fontsize=7)
    figure.supxlabel("lists shown")
    figure.supylabel(words)
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
