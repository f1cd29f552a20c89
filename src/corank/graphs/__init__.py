"""Who is compared with whom, as Laplacians that are applied and never built."""

from corank.graphs.factors import QUERY_WEIGHTS, drawn_weight, query_factors, weigh_queries
from corank.graphs.laplacian import Laplacian
from corank.graphs.pair import PairLaplacian
from corank.graphs.query import QueryLaplacian

__all__ = [
    "QUERY_WEIGHTS",
    "Laplacian",
    "PairLaplacian",
    "QueryLaplacian",
    "drawn_weight",
    "query_factors",
    "weigh_queries",
]
