"""Find nearly all relevant records while reading few: ranking, journal of answers, stopping rules, replays."""

from __future__ import annotations

from corank.data.records.records import Records, load_review, read_records
from corank.judging.screening.answers import ScreeningJournal
from corank.judging.screening.screening import Screening, ScreeningProgress
from corank.judging.screening.simulate import ScreeningReplay, simulate
from corank.judging.screening.stopping import STOPPING_RULES, RecallEstimate
from corank.judging.screening.views import make_views

__all__ = [
    "STOPPING_RULES",
    "RecallEstimate",
    "Records",
    "Screening",
    "ScreeningJournal",
    "ScreeningProgress",
    "ScreeningReplay",
    "load_review",
    "make_views",
    "read_records",
    "simulate",
]
