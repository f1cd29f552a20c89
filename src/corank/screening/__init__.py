"""Find nearly all relevant records while reading few: what to read next, the journal of answers, when to stop."""

from __future__ import annotations

from corank.data.records import Records, read_records
from corank.data.review import load_review
from corank.screening.journal import Journal
from corank.screening.screening import Progress, Screening
from corank.screening.simulate import Replay, simulate
from corank.screening.stopping import Estimate
from corank.screening.views import make_views

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
