"""A picture of quality against judgements, one panel a problem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra


def plot_curves(
    curves: dict[str, dict[str, NDArray[np.float64]]], n_judged: tuple[int, ...], bars: dict[str, float], path: Path
) -> None:
    """
    Plot means over topics; their spread says nothing of differences, which are tested in pairs.

    curves: name of a problem to name of a line to values (n_topics, n_points).
    n_judged: judged rows at each point.
    bars: name of a problem to what needs no judgement.
    path: the PNG file to write.
    """
    import_extra("matplotlib", "report")
    # no window system is asked for, and no global state is touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.8 * len(curves), 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
    for panel, (name, lines) in zip(panels, curves.items(), strict=True):
        panel.axhline(bars[name], color="0.5", linewidth=1, linestyle=":", label="words of the name, nothing judged")
        for line, values in lines.items():
            style = "--" if "Logistic" in line else "-"
            panel.plot(n_judged, values.mean(axis=0), marker="o", markersize=4, linestyle=style, label=line)
        panel.set_title(name, fontsize=10)
        panel.set_xticks(n_judged)
        panel.set_xlabel("judged rows")
    panels[0].set_ylabel("AP on test rows")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False
    )
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
