"""Find nearly all relevant records while reading few: what to read next, the journal of answers, when to stop."""

from __future__ import annotations

from corank.data.records.records import Records, read_records
from corank.data.records.review import load_review
from corank.judging.screening.journal import Journal
from corank.judging.screening.screening import Progress, Screening
from corank.judging.screening.simulate import Replay, simulate
from corank.judging.screening.stopping import Estimate
from corank.judging.screening.views import make_views

__all__ = [
    "Estimate",
    "Journal",
    "Progress",
    "Records",
    "Replay",
    "Screening",
    "load_review",
    "make_views",
    "read_records",
    "simulate",
]
