"""Learn by one linear system: RankRLS, ViewRankRLS, CoRankRLS, with whole paths and exact cross-validation."""

from corank.rls.co_rankrls import CoRankRLS
from corank.rls.rankrls import RankRLS
from corank.rls.summary import Summary
from corank.rls.view_rankrls import ViewRankRLS

__all__ = ["CoRankRLS", "RankRLS", "Summary", "ViewRankRLS"]
