"""Choose which rows to judge next, and measure what a strategy is worth."""

from corank.judging.suggestions.curve import JudgingCurve, judging_curve
from corank.judging.suggestions.strategies import Pool
from corank.judging.suggestions.suggest import suggest

__all__ = ["JudgingCurve", "Pool", "judging_curve", "suggest"]
