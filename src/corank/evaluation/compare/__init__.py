"""Which ranker to use: many of them on the same folds, with what chance explains and what they cost."""

from corank.evaluation.compare.methods import METHODS
from corank.evaluation.compare.study import compare
from corank.evaluation.compare.values import (
    Coefficient,
    CurvePoint,
    DataSummary,
    Outcome,
    PathPoint,
    QueryValue,
    ReliabilityPoint,
    Study,
    TradeOffPoint,
)

__all__ = [
    "METHODS",
    "Coefficient",
    "CurvePoint",
    "DataSummary",
    "Outcome",
    "PathPoint",
    "QueryValue",
    "ReliabilityPoint",
    "Study",
    "TradeOffPoint",
    "compare",
]
