"""Leaderboards: rank items from votes on pairs, with cheap votes or features as a prior."""

from corank.models.votes.leaderboard import Leaderboard

__all__ = ["Leaderboard"]
