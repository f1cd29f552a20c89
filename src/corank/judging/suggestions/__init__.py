"""Choose which rows to judge next, and compare strategies by replay."""

from corank.judging.suggestions.curve import JudgingCurve, judging_curve
from corank.judging.suggestions.strategies import STRATEGIES, Pool
from corank.judging.suggestions.suggest import suggest

__all__ = ["STRATEGIES", "JudgingCurve", "Pool", "judging_curve", "suggest"]
