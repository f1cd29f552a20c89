"""Collect judgements: choose rows to judge, screen records, compare items, and measure how far judges agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    from corank.judging import agreement as agreement
    from corank.judging import grading as grading
    from corank.judging import preferences as preferences
    from corank.judging import screening as screening
    from corank.judging import suggestions as suggestions

_HOMES = {
    "agreement": "corank.judging",
    "grading": "corank.judging",
    "preferences": "corank.judging",
    "screening": "corank.judging",
    "suggestions": "corank.judging",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
