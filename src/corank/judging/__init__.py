"""What to judge next: rules that choose rows, batches that do not repeat themselves, and what a rule is worth."""

from corank.judging.curve import JudgingCurve, judging_curve
from corank.judging.rules import Pool
from corank.judging.suggest import suggest

__all__ = ["JudgingCurve", "Pool", "judging_curve", "suggest"]
