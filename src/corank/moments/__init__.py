"""Sums over the pairs and rows of a problem, from which every squared loss is solved."""

from corank.moments.moments import Moments, pair_squares
from corank.moments.walk import dense

__all__ = ["Moments", "dense", "pair_squares"]
