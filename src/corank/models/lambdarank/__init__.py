"""LambdaRank: learn from gradients of your choice with three scorers; check whether they derive from a cost."""

from corank.models.lambdarank.check import LambdaCheck, Potential, check_lambda, lambda_cost
from corank.models.lambdarank.lambdarank import LambdaRank
from corank.models.lambdarank.lambdas import Lambda
from corank.models.lambdarank.terms import LAMBDAS, Term
from corank.models.lambdarank.tree_ensemble import TreeEnsemble

__all__ = [
    "LAMBDAS",
    "Lambda",
    "LambdaCheck",
    "LambdaRank",
    "Potential",
    "Term",
    "TreeEnsemble",
    "check_lambda",
    "lambda_cost",
]
