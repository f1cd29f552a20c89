"""LambdaRank: learn from gradients of your choice with three scorers; check whether they derive from a cost."""

from corank.models.lambdarank.check import LambdaCheck, check_lambda
from corank.models.lambdarank.lambdarank import LambdaRank
from corank.models.lambdarank.lambdas import Lambda
from corank.models.lambdarank.lgbm import LGBMRanker
from corank.models.lambdarank.terms import LAMBDAS, Term
from corank.models.lambdarank.tree_ensemble import TreeEnsemble

__all__ = [
    "LAMBDAS",
    "LGBMRanker",
    "Lambda",
    "LambdaCheck",
    "LambdaRank",
    "Term",
    "TreeEnsemble",
    "check_lambda",
]
