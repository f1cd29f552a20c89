"""Losses on pairs, pair samplers, Laplacians of compared pairs and their moments."""

from corank.pairwise.laplacian import Laplacian, PairLaplacian
from corank.pairwise.losses import LOSSES, Loss
from corank.pairwise.moments import Moments
from corank.pairwise.query_graph import QueryLaplacian
from corank.pairwise.sampling import PairSampler

__all__ = ["LOSSES", "Laplacian", "Loss", "Moments", "PairLaplacian", "PairSampler", "QueryLaplacian"]
