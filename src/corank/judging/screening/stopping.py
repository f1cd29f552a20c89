"""The stopping rules of `corank.judging.stopping` under the names that sessions use."""

from corank.judging.stopping.rates import RecallEstimate
from corank.judging.stopping.rule import StoppingRule
from corank.judging.stopping.rules import DEFAULT_RULE, STOPPING_RULES, stopping_rule
from corank.judging.stopping.sampling import RandomSample
from corank.judging.stopping.urns import SamplePlan, missing_allowed

__all__ = [
    "DEFAULT_RULE",
    "STOPPING_RULES",
    "RandomSample",
    "RecallEstimate",
    "SamplePlan",
    "StoppingRule",
    "missing_allowed",
    "stopping_rule",
]
