"""Types of parameters that take one of a few strings; `corank.parameters` checks the values."""

from __future__ import annotations

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
