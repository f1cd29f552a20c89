"""
One preference on a spiral
==========================

35 points along a spiral, and a single preference: the outer end (triangle up) before the inner one (triangle down).
Left: a Gaussian process on the coordinates, whose mean falls off around the two points, across the arms. Middle: the
same with a graph that joins each point to its three nearest neighbours, so that it follows the arms. Right: both with
error bars along the spiral (figure 1 of Chu and Ghahramani, 2005).

Needs matplotlib.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from experiments.gp.spiral import fitted, plot, spiral

X, pair = spiral()
picture = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "spiral.png"
plot(X, pair, fitted(X, pair), picture)
if len(sys.argv) == 1:
    figure = plt.figure(figsize=(12.6, 3.9))
    panel = figure.add_axes((0, 0, 1, 1))
    panel.imshow(plt.imread(picture))
    panel.axis("off")
    plt.show()
