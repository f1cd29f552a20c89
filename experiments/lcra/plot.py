"""A picture of what co-regularisation gains as more rows are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra


def plot_gains(gains: dict[str, list[tuple[float, NDArray[np.float64]]]], path: Path) -> None:
    """
    Plot mean gains with 95 % intervals against the scored share, one panel per problem.

    gains: name of a problem to (scored share, gains of the repeats).
    path: the PNG file to write.
    """
    import_extra("matplotlib", "report")
    # no window system is asked for, and no global state is touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_columns = 3
    n_rows = -(-len(gains) // n_columns)
    figure = Figure(figsize=(3.6 * n_columns, 2.9 * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for panel, (name, by_share) in zip(panels, gains.items(), strict=False):
        _draw(panel, name, by_share)
    for panel in panels[len(gains) :]:
        panel.set_visible(False)
    figure.supxlabel("scored training rows")
    figure.supylabel("gain over the better of SPD and SPD-MV")
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)


def _draw(panel: Any, name: str, by_share: list[tuple[float, NDArray[np.float64]]]) -> None:
    shares = [share for share, _ in by_share]
    means = np.array([values.mean() for _, values in by_share])
    errors = np.array(
        [1.96 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0 for _, values in by_share]
    )
    panel.axhline(0.0, color="0.6", linewidth=0.8)
    panel.fill_between(shares, means - errors, means + errors, alpha=0.25, linewidth=0)
    panel.plot(shares, means, marker="o", markersize=4)
    panel.set_xscale("log")
    panel.set_xticks(shares, [f"{share:.0%}" for share in shares])
    panel.minorticks_off()
    panel.set_title(name, fontsize=10)
