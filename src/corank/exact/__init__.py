"""The optimum of a convex ranking problem, without a stochastic step."""

from corank.exact.least_squares import squared, squared_views
from corank.exact.smooth import MAX_PAIRS, smooth_loss
from corank.exact.solution import Solution

__all__ = ["MAX_PAIRS", "Solution", "smooth_loss", "squared", "squared_views"]
