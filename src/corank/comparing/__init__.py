"""Which ranker to use: many of them on the same folds, with what chance explains and what they cost."""

from corank.comparing.values import (
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
    "Coefficient",
    "CurvePoint",
    "DataSummary",
    "Outcome",
    "PathPoint",
    "QueryValue",
    "ReliabilityPoint",
    "Study",
    "TradeOffPoint",
]
