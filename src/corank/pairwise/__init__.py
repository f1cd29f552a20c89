"""Losses on pairs, pair samplers, Laplacians of compared pairs and their moments."""

from corank.pairwise.factors import QUERY_WEIGHTS, drawn_weight, query_factors, weigh_queries
from corank.pairwise.laplacian import Laplacian, PairLaplacian
from corank.pairwise.losses import LOSSES, Loss
from corank.pairwise.moment_blocks import dense
from corank.pairwise.moments import Moments, pair_squares
from corank.pairwise.query_graph import QueryLaplacian
from corank.pairwise.sampling import PairSampler

__all__ = [
    "LOSSES",
    "QUERY_WEIGHTS",
    "Laplacian",
    "Loss",
    "Moments",
    "PairLaplacian",
    "PairSampler",
    "QueryLaplacian",
    "dense",
    "drawn_weight",
    "pair_squares",
    "query_factors",
    "weigh_queries",
]
