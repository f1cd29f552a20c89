"""When to stop reading: models of the finds, exact tests, random samples, the registry of rules, and a forecast."""

from __future__ import annotations

from corank.judging.stopping.forecast import Forecast, make_forecast
from corank.judging.stopping.rates import RecallEstimate
from corank.judging.stopping.rule import StoppingRule
from corank.judging.stopping.rules import DEFAULT_RULE, STOPPING_RULES, stopping_rule
from corank.judging.stopping.urns import SamplePlan, p_missed, recall_frontier

__all__ = [
    "DEFAULT_RULE",
    "STOPPING_RULES",
    "Forecast",
    "RecallEstimate",
    "SamplePlan",
    "StoppingRule",
    "make_forecast",
    "p_missed",
    "recall_frontier",
    "stopping_rule",
]
