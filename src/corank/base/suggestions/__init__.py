"""Choose which rows to judge next, and compare strategies by replay."""

from corank.base.suggestions.curve import JudgingCurve, judging_curve
from corank.base.suggestions.suggest import STRATEGIES, Pool, suggest

__all__ = ["STRATEGIES", "JudgingCurve", "Pool", "judging_curve", "suggest"]
