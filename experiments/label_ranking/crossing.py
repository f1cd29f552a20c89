"""Cross-validation of the label ranking experiment: every method on every fold, all measures of a trial at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from sklearn.model_selection import KFold

from corank.models.labels import (
    average_precision,
    f1,
    footrule_distance,
    hamming_loss,
    kendall_distance,
    kendall_tau,
    one_error,
    ranking_loss,
    spearman_rho,
    subset_loss,
    top_positions,
)
from experiments.label_ranking.methods import Floats, Method, top_order
from experiments.label_ranking.sets import LabelData
from experiments.options import ExperimentOptions

N_FOLDS = 10
"""Of sets and top lists."""

N_RANKING_FOLDS = 5

Measures = Mapping[str, Callable[[Floats, Floats], Floats]]
Folds = dict[str, dict[str, list[float]]]
"""What each fold measured, by method and measure; nothing where a method was left out."""

RANKS: Measures = {
    "τ": lambda y, u: kendall_tau(y, -u),
    "ρ": lambda y, u: spearman_rho(y, -u),
}
SETS: Measures = {
    "Hamming": lambda y, u: hamming_loss(y, u > 0.0),
    "subset 0/1": lambda y, u: subset_loss(y, u > 0.0),
    "F1": lambda y, u: f1(y, u > 0.0),
    "ranking loss": ranking_loss,
    "one-error": one_error,
    "AP": average_precision,
}
TOPS: Measures = {
    "Kendall": lambda y, u: kendall_distance(top_positions(y), top_order(u)),
    "footrule": lambda y, u: footrule_distance(top_positions(y), top_order(u)),
    "Hamming": lambda y, u: hamming_loss(y > 0, u > 0.0),
    "F1": lambda y, u: f1(y > 0, u > 0.0),
    "ranking loss": lambda y, u: ranking_loss(y > 0, u),
}


def n_folds(options: ExperimentOptions, measures: Measures) -> int:
    """Return the number of folds: rankings have many sets, and their p-values count the folds of all."""
    return 3 if options.quick else N_RANKING_FOLDS if measures is RANKS else N_FOLDS


def crossed(
    options: ExperimentOptions,
    name: str,
    read: Callable[[], LabelData],
    methods: Mapping[str, Method],
    measures: Measures,
) -> Folds:
    """
    Cross-validate every method on one set.

    options: number of repeats, 1 by default, and the seed.
    name, read: the set.
    methods, measures: what is tried, and how it is judged.
    """
    folds, repeats, loaded = n_folds(options, measures), options.repeats or 1, list[LabelData]()
    options.expect(len(methods) * folds * repeats)
    results: Folds = {method: {measure: [] for measure in measures} for method in methods}
    for method, learn in methods.items():
        for repeat in range(repeats):
            for fold in range(folds):

                def trial(learn: Method = learn, repeat: int = repeat, fold: int = fold) -> dict[str, float] | None:
                    if not loaded:
                        loaded.append(read())
                    return _trial(loaded[0], learn, measures, options.seed + repeat, (folds, fold))

                key = {"experiment": "label-ranking", "set": name, "method": method, "repeat": repeat, "fold": fold}
                values = options.result({**key, "folds": folds}, trial)
                for measure in measures if values is not None else ():
                    results[method][measure].append(values[measure])
    return results


def _trial(
    data: LabelData, learn: Method, measures: Measures, seed: int, place: tuple[int, int]
) -> dict[str, float] | None:
    folds, fold = place
    train, test = list(KFold(folds, shuffle=True, random_state=seed).split(data.X))[fold]
    utilities = learn(data.X[train], data.y[train], data.X[test], seed)
    if utilities is None:
        return None
    return {name: float(np.nanmean(measure(data.y[test], utilities))) for name, measure in measures.items()}
