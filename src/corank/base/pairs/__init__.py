"""Losses on pairs, pair samplers, Laplacians of compared pairs and their moments."""

from corank.base.pairs.laplacian import Laplacian, PairLaplacian, QueryLaplacian
from corank.base.pairs.losses import LOSSES, Loss
from corank.base.pairs.moments import Moments
from corank.base.pairs.sampling import PairSampler

__all__ = ["LOSSES", "Laplacian", "Loss", "Moments", "PairLaplacian", "PairSampler", "QueryLaplacian"]
