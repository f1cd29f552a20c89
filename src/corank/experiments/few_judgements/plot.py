"""A picture of quality against judgements, one panel a problem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data.atomic import atomic_file
from corank.errors import need


def plot_curves(
    curves: dict[str, dict[str, NDArray[np.float64]]], n_judged: tuple[int, ...], bars: dict[str, float], path: Path
) -> None:
    """
    Plot means over topics with one standard error.

    curves: name of a problem to name of a line to values (n_topics, n_points).
    n_judged: judged rows at each point.
    bars: name of a problem to what needs no judgement.
    path: the PNG file to write.
    """
    need("matplotlib", "report")
    # no window system is asked for, and no global state is touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.8 * len(curves), 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
    for panel, (name, lines) in zip(panels, curves.items(), strict=True):
        panel.axhline(bars[name], color="0.5", linewidth=1, linestyle=":", label="words of the name, nothing judged")
        for line, values in lines.items():
            mean = values.mean(axis=0)
            error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros_like(mean)
            style = "--" if "Logistic" in line else "-"
            (drawn,) = panel.plot(n_judged, mean, marker="o", markersize=4, linestyle=style, label=line)
            panel.fill_between(n_judged, mean - error, mean + error, color=drawn.get_color(), alpha=0.12, linewidth=0)
        panel.set_title(name, fontsize=10)
        panel.set_xticks(n_judged)
    panels[0].set_ylabel("AP on test rows")
    figure.supxlabel("judged rows")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False
    )
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
