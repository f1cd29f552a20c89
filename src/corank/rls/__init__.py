"""Learn by one linear system: RankRLS and CoRankRLS, dense or sparse, with whole paths and exact cross-validation."""

from corank.basis.features import FeatureMap
from corank.rls.co_rankrls import CoRankRLS
from corank.rls.rankrls import RankRLS
from corank.rls.summary import Summary

__all__ = ["CoRankRLS", "FeatureMap", "RankRLS", "Summary"]
