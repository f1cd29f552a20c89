"""Ranking pursuit: sparse models chosen greedily, for ranking, combined with regression, and semi-supervised."""

from corank.models.pursuit.co_ranking_pursuit import CoRankingPursuit
from corank.models.pursuit.ranking_pursuit import RankingPursuit

__all__ = ["CoRankingPursuit", "RankingPursuit"]
