"""Exact solvers of convex ranking problems, and shared parts of iterative methods: Newton, Adam, early stopping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    from corank.base.solvers.least_squares import squared, squared_views
    from corank.base.solvers.smooth_losses import MAX_PAIRS, smooth_loss
    from corank.base.solvers.solution import Solution

_HOMES = {
    "MAX_PAIRS": "corank.base.solvers.smooth_losses",
    "Solution": "corank.base.solvers.solution",
    "smooth_loss": "corank.base.solvers.smooth_losses",
    "squared": "corank.base.solvers.least_squares",
    "squared_views": "corank.base.solvers.least_squares",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)

__all__ = ["MAX_PAIRS", "Solution", "smooth_loss", "squared", "squared_views"]
