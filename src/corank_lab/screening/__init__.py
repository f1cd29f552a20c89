"""Find nearly all relevant records while reading few: ranking, journal of answers, stopping rules, replays."""

from __future__ import annotations

from corank_lab.records.records import Records, load_review, read_records
from corank_lab.screening.answers import ScreeningAnswers, combine, find_conflicts
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.screening import Screening
from corank_lab.screening.simulate import ScreeningReplay, simulate
from corank_lab.screening.stopping import STOPPING_RULES, RecallEstimate
from corank_lab.screening.stopping.forecast import ScreeningProgress
from corank_lab.screening.team import ScreeningJournal
from corank_lab.screening.views import make_views

__all__ = [
    "STOPPING_RULES",
    "RecallEstimate",
    "Records",
    "Screening",
    "ScreeningAnswers",
    "ScreeningJournal",
    "ScreeningProgress",
    "ScreeningReplay",
    "UniqueRecords",
    "combine",
    "find_conflicts",
    "load_review",
    "make_views",
    "read_records",
    "simulate",
]
