"""Find nearly all relevant records while reading few: ranking, journal of answers, stopping rules, replays."""

from __future__ import annotations

from corank.data.records.records import Records, load_review, read_records
from corank.judging.screening.answers import ScreeningAnswers, ScreeningJournal
from corank.judging.screening.judges import combine, find_conflicts, read_judges
from corank.judging.screening.matching import UniqueRecords
from corank.judging.screening.progress import ScreeningProgress
from corank.judging.screening.screening import Screening
from corank.judging.screening.shared import SharedReading
from corank.judging.screening.simulate import ScreeningReplay, simulate
from corank.judging.screening.stopping import STOPPING_RULES, RecallEstimate
from corank.judging.screening.views import make_views

__all__ = [
    "STOPPING_RULES",
    "RecallEstimate",
    "Records",
    "Screening",
    "ScreeningAnswers",
    "ScreeningJournal",
    "ScreeningProgress",
    "ScreeningReplay",
    "SharedReading",
    "UniqueRecords",
    "combine",
    "find_conflicts",
    "load_review",
    "make_views",
    "read_judges",
    "read_records",
    "simulate",
]
