"""Rank items by asking which of two is better: questions, journal of answers, ranking with uncertainty."""

from __future__ import annotations

from corank.data import Items, read_items
from corank_lab.preferences.answers import PairwiseAnswer, PreferenceJournal, Question
from corank_lab.preferences.model import Ranking
from corank_lab.preferences.session import PreferenceProgress, PreferenceSession

__all__ = [
    "Items",
    "PairwiseAnswer",
    "PreferenceJournal",
    "PreferenceProgress",
    "PreferenceSession",
    "Question",
    "Ranking",
    "read_items",
]
