"""Pictures of forces: against the lead of one document over another, and as a field for three of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra
from corank.lambdarank.field import Field


def plot_lambda(forces: Any, path: str | Path, *, labels: ArrayLike = (2, 1, 0), overwrite: bool = False) -> None:
    """
    Plot forces twice: on the better of two documents against its lead, and on three of them as a field.

    Parameters
    ----------
    forces : str, Lambda or callable
        As `LambdaRank` takes them.
    path : str or Path
        The PNG file to write.
    labels : array-like of three numbers
        Grades of the three documents; the first and last are those of the two.
    overwrite : bool, default False
        Whether a file that stands at `path` is replaced.
    """
    import_extra("matplotlib", "report")
    # no window system is asked for, and no global state is touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    y = np.asarray(labels, dtype=np.float64)
    two, three = Field.of(forces, [y[0], y[-1]], 2), Field.of(forces, y, 3)
    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    leads = np.linspace(-4.0, 4.0, 400)
    pulls = np.array([two(np.array([0.5 * x, -0.5 * x])) for x in leads])
    left.plot(leads, pulls[:, 0], label=f"grade {y[0]:g}")
    left.plot(leads, pulls[:, 1], label=f"grade {y[-1]:g}")
    left.axhline(0.0, color="0.8", linewidth=0.8)
    left.set(xlabel="lead of the better document", ylabel="force", title=str(two.forces))
    left.legend(frameon=False)
    # the plane in which the scores sum to zero, spanned by two leads
    grid = np.linspace(-2.5, 2.5, 15)
    first, second = (axis.ravel() for axis in np.meshgrid(grid, grid))
    basis = np.array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0]]) / 3.0
    found = np.array([three(np.array([a, b]) @ basis) for a, b in zip(first, second, strict=True)])
    right.quiver(first, second, found[:, 0] - found[:, 2], found[:, 1] - found[:, 2], angles="xy", color="C0")
    right.axhline(0.0, color="0.8", linewidth=0.8)
    right.axvline(0.0, color="0.8", linewidth=0.8)
    right.plot([-2.5, 2.5], [-2.5, 2.5], color="0.8", linewidth=0.8)
    right.set(
        xlabel=f"lead of grade {y[0]:g} over grade {y[2]:g}", ylabel=f"lead of grade {y[1]:g} over grade {y[2]:g}",
        title="three documents", aspect="equal",
    )  # fmt: skip
    with atomic_file(path, overwrite=overwrite) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
