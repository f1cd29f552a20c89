"""When to stop reading: models of the finds, exact tests, random samples, the registry of rules, and a forecast."""

from __future__ import annotations

from corank_lab.screening.stopping.forecast import Forecast, Forecaster
from corank_lab.screening.stopping.rates import RecallEstimate
from corank_lab.screening.stopping.rules import (
    DEFAULT_CONFIDENCE,
    DEFAULT_RULE,
    STOPPING_RULES,
    StoppingRule,
    read_confidence,
    stopping_rule,
)
from corank_lab.screening.stopping.urns import SamplePlan, p_by_betting, p_missed

__all__ = [
    "DEFAULT_CONFIDENCE",
    "DEFAULT_RULE",
    "STOPPING_RULES",
    "Forecast",
    "Forecaster",
    "RecallEstimate",
    "SamplePlan",
    "StoppingRule",
    "p_by_betting",
    "p_missed",
    "read_confidence",
    "stopping_rule",
]
