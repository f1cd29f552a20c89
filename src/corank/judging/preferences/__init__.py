"""Rank items by asking which of two is better: questions, journal of answers, ranking with uncertainty."""

from __future__ import annotations

from corank.data.formats.items import Items, read_items
from corank.judging.preferences.answers import PairwiseAnswer, PreferenceJournal, Question
from corank.judging.preferences.ranking import Ranking
from corank.judging.preferences.session import PreferenceProgress, PreferenceSession
from corank.judging.preferences.simulate import PreferenceReplay, simulate

__all__ = [
    "Items",
    "PairwiseAnswer",
    "PreferenceJournal",
    "PreferenceProgress",
    "PreferenceReplay",
    "PreferenceSession",
    "Question",
    "Ranking",
    "read_items",
    "simulate",
]
