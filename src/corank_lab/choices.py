"""Stopping rules with one line on each, for help texts and pages: light to import, unlike the rules."""

from __future__ import annotations

STOPPING_RULES = {
    "agree": "A model and an exact test agree",
    "hypergeometric": "An exact test on the ranking",
    "betting": "A test that holds however often it is looked at",
    "sample": "A proof by a random sample",
    "consecutive": "Fifty irrelevant records in a row; missed 95 % recall in 49 % of 240 replays",
}
"""Those of `corank_lab.screening.stopping.rules`, in the same order."""
