"""Draw queries, compare all methods on them as `corank compare` does, and measure each on the remaining queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.methods import METHODS, Settings
from corank.comparison.problem import ComparisonProblem, InputRows, make_problem
from corank.comparison.runner import part_of
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.metrics import evaluate
from corank.metrics.conventions import find_convention
from experiments.compare_advice.collections import collection

Floats = NDArray[np.float64]

METRIC, FOLDS = "nDCG@10", 5
SIZES = (10, 20, 40, 80)
"""Numbers of judged queries."""

CANDIDATES = (
    "columns", "rankrls", "lcra", "ranking-pursuit", "rankrls-gaussian", "lightgbm", "lightgbm-tuned", "auto",
)  # fmt: skip
"""The simplest first: a baseline, two linear methods, two kernels, trees and AutoRanker."""

LEAST_REMAINING = 20
"""Fewer remaining queries than this measure nothing."""


def replay(name: str, n_queries: int, draw: int, seed: int) -> dict[str, Any] | None:
    """
    Compare the candidates on a draw of queries.

    name: of the collection.
    draw: number of the draw; smaller draws are part of larger ones.
    Returns: for each method its values of every drawn query, out of fold, and the mean over the remaining queries after
        a fit on all drawn ones; None if too few queries remain.
    """
    judged = collection(name)
    order = np.random.default_rng([seed, draw]).permutation(np.unique(judged.qid))
    if len(order) < n_queries + LEAST_REMAINING:
        return None
    drawn = np.isin(judged.qid, order[:n_queries])
    problem, _ = make_problem(
        InputRows.of(judged.X[drawn], judged.y[drawn], judged.qid[drawn]), None, FOLDS, seed + draw
    )
    X, y, qid = judged.X[~drawn], judged.y[~drawn], judged.qid[~drawn]
    found: dict[str, Any] = {}
    for method in CANDIDATES:
        scores = np.empty(len(problem.y))
        for fold in range(problem.n_folds):
            test = problem.test(fold)
            scores[test] = _scores(problem, method, fold, problem.X[test], problem.codes[test], seed + draw)
        held_out = _scores(problem, method, None, X, qid, seed + draw)
        inside = evaluate(problem.y, scores, problem.codes, METRIC)[METRIC].values
        outside = evaluate(y, held_out, qid, METRIC)[METRIC].mean
        found[method] = {"inside": np.round(inside, 5).tolist(), "outside": round(outside, 6)}
    return found


def _scores(problem: ComparisonProblem, method: str, fold: int | None, X: Any, qid: Any, seed: int) -> Floats:
    """Fit a method on all folds but one, with its tuning inside, and score rows."""
    settings = Settings(METRIC, find_convention("corank"), seed, None)
    seeds = (seed, 0 if fold is None else fold + 1, 0)
    rows, y = problem.train(fold)
    part = part_of(problem, METHODS[method], rows, y, settings, seeds)
    model = fit_with_qid(METHODS[method].make(part), part.X, part.y, part.qid)
    return np.asarray(predict_with_qid(model, X, qid), dtype=np.float64)
