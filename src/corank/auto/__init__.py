"""AutoRanker: try a short list of rankers on left-out queries and average the best."""

from corank.auto.auto_ranker import AutoRanker
from corank.auto.leaderboard import Leaderboard

__all__ = ["AutoRanker", "Leaderboard"]
