"""LambdaRank: learn from gradients of your choice with three scorers; check whether they derive from a cost."""

from corank.lambdarank.check import LambdaCheck, check_lambda, plot_lambda
from corank.lambdarank.field import Potential, potential
from corank.lambdarank.lambdarank import LambdaRank
from corank.lambdarank.lambdas import Lambda
from corank.lambdarank.terms import LAMBDAS, Term
from corank.lambdarank.tree_ensemble import TreeEnsemble

__all__ = [
    "LAMBDAS",
    "Lambda",
    "LambdaCheck",
    "LambdaRank",
    "Potential",
    "Term",
    "TreeEnsemble",
    "check_lambda",
    "plot_lambda",
    "potential",
]
