"""Compare rankers on the same folds, with paired tests, costs and a chosen winner."""

from corank.evaluation.compare.methods import METHODS
from corank.evaluation.compare.study import compare
from corank.evaluation.compare.values import (
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
