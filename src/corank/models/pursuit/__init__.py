"""Ranking pursuit: sparse models chosen greedily, for ranking, combined with regression, and semi-supervised."""

from corank.models.pursuit.co_ranking_pursuit import CoRankingPursuit
from corank.models.pursuit.many import ManyPursuits, fit_many
from corank.models.pursuit.many_views import ManyCoPursuits, fit_many_views
from corank.models.pursuit.ranking_pursuit import RankingPursuit

__all__ = ["CoRankingPursuit", "ManyCoPursuits", "ManyPursuits", "RankingPursuit", "fit_many", "fit_many_views"]
