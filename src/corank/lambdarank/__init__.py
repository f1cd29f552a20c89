"""Learn from forces: LambdaRank with any λ, a check whether a cost exists, and three scorers."""

from corank.lambdarank.check import Verdict, check_lambda
from corank.lambdarank.kinds import KINDS
from corank.lambdarank.lambdarank import LambdaRank
from corank.lambdarank.lambdas import Lambda
from corank.lambdarank.plot import plot_lambda
from corank.lambdarank.potential import Potential, potential
from corank.lambdarank.terms import Term

__all__ = ["KINDS", "Lambda", "LambdaRank", "Potential", "Term", "Verdict", "check_lambda", "plot_lambda", "potential"]
