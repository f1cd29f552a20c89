"""A picture of recall against reading, one line a replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra
from corank.judging.screening.simulate import Replay


def plot_recall(replays: Sequence[Replay], path: Path, *, title: str = "", overwrite: bool = False) -> None:
    """
    Plot the recall of each replay against the share of the records read, beside reading at random.

    path: the PNG file to write.
    overwrite: whether a file that stands there is replaced.
    """
    import_extra("matplotlib", "report")
    # no window system is asked for, and no global state is touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    panel.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=0.8, label="at random")
    panel.axhline(0.95, color="0.8", linewidth=0.8)
    for replay in replays:
        n = len(replay.found)
        shares, recall = np.arange(n + 1) / n, np.r_[0.0, replay.curve]
        label = "replays, and where the rule stops" if replay is replays[0] else None
        panel.step(shares, recall, where="post", color="C0", alpha=0.5, linewidth=1, label=label)
        panel.plot(replay.stop / n, recall[min(replay.stop, n)], marker="o", color="C0", markersize=4)
    panel.set(xlabel="share of the records read", ylabel="recall", title=title, xlim=(0, 1), ylim=(0, 1.02))
    panel.legend(loc="lower right", frameon=False)
    with atomic_file(path, overwrite=overwrite) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
