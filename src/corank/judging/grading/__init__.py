"""Grade documents for queries: what to judge next, overlap of judges, agreement, conflicts and judgement lists."""

from __future__ import annotations

from corank.judging.grading.agreement import AlphaInterval, alpha_interval
from corank.judging.grading.answers import Judgement
from corank.judging.grading.features import GradingFeatures, grading_features
from corank.judging.grading.reading import pool_from_index, read_grading_task
from corank.judging.grading.session import GradingSession
from corank.judging.grading.task import GradingDocument, GradingQuery, GradingScale, GradingTask

__all__ = [
    "AlphaInterval",
    "GradingDocument",
    "GradingFeatures",
    "GradingQuery",
    "GradingScale",
    "GradingSession",
    "GradingTask",
    "Judgement",
    "alpha_interval",
    "grading_features",
    "pool_from_index",
    "read_grading_task",
]
