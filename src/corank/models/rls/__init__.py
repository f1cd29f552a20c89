"""Learn by one linear system: RankRLS, ViewRankRLS, CoRankRLS, with whole paths and exact cross-validation."""

from corank.models.rls.co_rankrls import CoRankRLS
from corank.models.rls.rankrls import RankRLS
from corank.models.rls.summary import Summary
from corank.models.rls.view_rankrls import ViewRankRLS

__all__ = ["CoRankRLS", "RankRLS", "Summary", "ViewRankRLS"]
