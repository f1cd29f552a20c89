"""
One model for each pair of labels against one utility per label: the future work of Brinker and Hüllermeier, 2005.

Sets and folds are those of `experiments.label_ranking.run`, but for its largest sets; all methods have their default
parameters.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corank.choices import Targets
from corank.evaluation.report import Report
from corank.label_ranking import CalibratedLabelRanker, NeighborLabelRanker, PairwiseLabelRanker
from corank.tables import Cell, ReportTable
from experiments.label_ranking.crossing import RANKS, SETS, Folds, crossed, n_folds
from experiments.label_ranking.methods import RANKING, Floats, Method
from experiments.label_ranking.run import MULTILABEL, QUICK
from experiments.label_ranking.sets import read_multilabel, read_rankings
from experiments.options import ExperimentOptions
from experiments.significance import p_text

RANKINGS = ("bodyfat", "glass", "housing", "iris", "stock", "vehicle", "vowel")


def _fitted(kind: type[Any], targets: Targets) -> Method:
    def run(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
        return np.asarray(kind(targets=targets).fit(X, y).utilities(Z))

    return run


def _methods(targets: Targets) -> dict[str, Method]:
    kinds = {"linear utilities": CalibratedLabelRanker, "neighbours": NeighborLabelRanker, "pairs": PairwiseLabelRanker}
    return {name: _fitted(kind, targets) for name, kind in kinds.items()}


def _one_vs_rest(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    model = make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression(max_iter=1000)))
    return np.asarray(model.fit(X, y.astype(int)).decision_function(Z))


def _shares(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    return np.tile(y.mean(axis=0) - 0.5, (len(Z), 1))


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: tenfold cross-validation, once by default; quick runs make three folds of few sets.
    Returns: rankings, and sets of labels.
    """
    ranked = {"constant": RANKING["constant"], **_methods("ranks")}
    labelled = {"constant": _shares, "one-vs-rest logistic": _one_vs_rest, **_methods("relevant")}
    names, sets = QUICK if options.quick else RANKINGS, MULTILABEL[:1]
    orders = {name: crossed(options, name, partial(read_rankings, name), ranked, RANKS) for name in names}
    found = {name: crossed(options, name, partial(read_multilabel, name), labelled, SETS) for name in sets}
    return Report(
        "One model for each pair of labels",
        f"{n_folds(options)}-fold cross-validation, {options.repeats or 1} times; means over test rows; all methods "
        "with their default parameters.",
        (
            _table("Kendall's τ of rankings, higher is better", orders, "τ"),
            _table("Hamming loss of sets, lower is better", found, "Hamming"),
            _table("Ranking loss of sets, lower is better", found, "ranking loss"),
        ),
        tuple(
            _contrast(what, all_folds, rival, measure)
            for what, all_folds, measure, rivals in (("Rankings", orders, "τ", ("linear utilities", "neighbours")),)
            for rival in rivals
        ),
    )


def _table(title: str, found: dict[str, Folds], measure: str) -> ReportTable:
    methods = tuple(next(iter(found.values())))
    rows: list[tuple[Cell, ...]] = [
        (name, *(float(np.mean(folds[method][measure])) for method in methods)) for name, folds in found.items()
    ]
    return ReportTable(title, ("set", *methods), tuple(rows), digits=3)


def _contrast(what: str, found: dict[str, Folds], rival: str, measure: str) -> str:
    gaps = np.array([np.mean(folds["pairs"][measure]) - np.mean(folds[rival][measure]) for folds in found.values()])
    return (
        f"{what}, {measure}: pairs minus {rival} is {gaps.mean():+.4f} over {len(gaps)} sets, higher in "
        f"{np.sum(gaps > 0.0)} ({p_text(gaps)}, sets)."
    )
