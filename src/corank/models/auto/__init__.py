"""AutoRanker: try a short list of rankers on left-out queries and average the best."""

from corank.models.auto.auto_ranker import AutoRanker
from corank.models.auto.leaderboard import CandidateTable

__all__ = ["AutoRanker", "CandidateTable"]
