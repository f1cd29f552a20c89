"""Order things by asking which of two is better: what to ask next, the journal of answers, how sure the order is."""

from __future__ import annotations

from corank.asking.asking import Asking, Progress
from corank.asking.journal import Journal
from corank.asking.question import Question
from corank.asking.ranking import Ranking
from corank.asking.simulate import Replay, simulate
from corank.data.choices import Choices, read_choices

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
