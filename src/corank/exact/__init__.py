"""The optimum of a convex ranking problem, without a stochastic step."""

from corank.exact.least_squares import squared, squared_views
from corank.exact.solution import Solution

__all__ = ["Solution", "squared", "squared_views"]
