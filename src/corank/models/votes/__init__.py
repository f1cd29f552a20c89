"""Leaderboards: rank items from votes on pairs, with cheap votes or features as a prior."""

from corank.models.votes.leaderboard import Leaderboard
from corank.models.votes.text import board_table, judge_table, sentences

__all__ = ["Leaderboard", "board_table", "judge_table", "sentences"]
