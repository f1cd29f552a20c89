"""The optimum of a convex ranking problem, without a stochastic step."""

from corank.solvers.least_squares import squared, squared_views
from corank.solvers.smooth_losses import MAX_PAIRS, smooth_loss
from corank.solvers.solution import Solution

__all__ = ["MAX_PAIRS", "Solution", "smooth_loss", "squared", "squared_views"]
