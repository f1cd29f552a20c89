"""Compare rankers on the same folds, with paired tests, costs and a chosen winner."""

from corank.comparison.methods import METHODS
from corank.comparison.study import compare
from corank.comparison.values import (
    Coefficient,
    CurvePoint,
    DataSummary,
    MethodOutcome,
    PathPoint,
    QueryValue,
    ReliabilityPoint,
    Rival,
    Study,
    TradeOffPoint,
)

__all__ = [
    "METHODS",
    "Coefficient",
    "CurvePoint",
    "DataSummary",
    "MethodOutcome",
    "PathPoint",
    "QueryValue",
    "ReliabilityPoint",
    "Rival",
    "Study",
    "TradeOffPoint",
    "compare",
]
