"""Grade documents for queries: what to judge next, overlap of judges, agreement, conflicts and judgement lists."""

from __future__ import annotations

from corank_lab.grading.export import GradingFeatures, grading_features
from corank_lab.grading.session import AlphaInterval, GradingSession, alpha_interval
from corank_lab.grading.task import (
    GradingDocument,
    GradingQuery,
    GradingScale,
    GradingTask,
    Judgement,
    read_grading_task,
)

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
    "read_grading_task",
]
