"""Order things by asking which of two is better: what to ask next, the journal of answers, how sure the order is."""

from __future__ import annotations

from corank.data.formats.items import Choices, read_choices
from corank.judging.preferences.journal import Journal
from corank.judging.preferences.question import Question
from corank.judging.preferences.ranking import Ranking
from corank.judging.preferences.session import Asking, Progress
from corank.judging.preferences.simulate import Replay, simulate

__all__ = [
    "Asking",
    "Choices",
    "Journal",
    "Progress",
    "Question",
    "Ranking",
    "Replay",
    "read_choices",
    "simulate",
]
