"""Parameters that take one of a few strings: their types, and one line on each strategy for help texts."""

from typing import Literal

LossName = Literal["hinge", "logistic", "squared", "squared_hinge"]
QueryWeight = Literal["pairs", "equal", "rows"]
Draw = Literal["pairs", "rows"]
Solver = Literal["auto", "sgd", "exact"]
Rate = Literal["pegasos", "constant", "sqrt", "adagrad"]
Scorer = Literal["linear", "mlp", "trees"]
Likelihood = Literal["ordinal", "gaussian"]
Fitting = Literal["basic", "back", "pre"]
Residual = Literal["shared", "separate"]
Missing = Literal["mean", "error"]
Targets = Literal["auto", "classes", "relevant", "ranks", "top"]
Conversion = Literal["all", "adjacent"]
AboveZero = Literal["all", "lowest"]
RankingLoss = Literal["share", "kendall", "footrule"]

ROW_STRATEGIES = {
    "uncertain": "Rows whose score is nearest to the border between good and bad",
    "top": "Rows with the highest score",
    "representative": "Rows that are most similar to the others and least to judged ones",
    "random": "Random rows",
}
"""Strategies of `corank.base.suggestions`."""
FUSION_STRATEGIES = {
    "queries": "Whole queries on which plausible fusions differ most",
    "sample": "Single documents, drawn in proportion to that difference",
}
"""Strategies of `corank.models.fusion.suggest`."""
PAIR_STRATEGIES = {
    "entropy": "Largest expected decrease of the entropy of f",
    "bald": "Largest mutual information of the answer and f",
    "random": "Random pairs",
}
"""Strategies of `corank.models.gp.questions`."""
