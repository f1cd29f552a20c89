"""
AutoLabelRanker against its candidates, and against scikit-learn's random forest of positions: mean Kendall's τ.

Cross-validation of sets of rankings with five folds; `behind` is what AutoLabelRanker loses to the best of its
candidates, which is chosen with the test rows. The slope of its weights was chosen on glass, iris, bodyfat and housing.

Run: CORANK_DATA=... python benchmarks/bench_label_choice.py [iris glass ...]
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold

from corank import CalibratedLabelRanker, OnlineLabelRanker
from corank.models.labels import (
    AutoLabelRanker,
    ForestLabelRanker,
    NeighborLabelRanker,
    PairwiseLabelRanker,
    kendall_tau,
)
from experiments.label_ranking.sets import read_rankings

CANDIDATES: dict[str, Callable[[], Any]] = {
    "batch": lambda: CalibratedLabelRanker(targets="ranks"),
    "online": lambda: OnlineLabelRanker(targets="ranks", random_state=0),
    "neighbours": lambda: NeighborLabelRanker(targets="ranks"),
    "forest": lambda: ForestLabelRanker(targets="ranks", random_state=0),
    "pairwise": lambda: PairwiseLabelRanker(targets="ranks"),
}
SETS = ("glass", "iris", "bodyfat", "housing", "stock", "vehicle", "vowel", "heat", "dtt", "cold", "diau", "spo")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--folds", type=int, default=5, help="Number of folds that are measured, at most 5.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        data = read_rankings(name)
        splits = list(KFold(5, shuffle=True, random_state=0).split(data.X))[: options.folds]
        values: dict[str, list[float]] = {}
        for train, test in splits:
            X, y = data.X[train], data.y[train]
            scale = X.std(axis=0) + 1e-12
            rankers = {**CANDIDATES, "automatic": lambda: AutoLabelRanker("ranks", random_state=0)}
            for method, make in rankers.items():
                # the online ranker and its rivals see the columns that the automatic choice gives them
                order = make().fit(X / scale, y).predict_ranking(data.X[test] / scale)
                values.setdefault(method, []).append(float(np.nanmean(kendall_tau(data.y[test], order))))
            forest = RandomForestRegressor(100, min_samples_leaf=2, random_state=0).fit(X, y)
            tau = kendall_tau(data.y[test], forest.predict(data.X[test]))
            values.setdefault("scikit-learn's forest", []).append(float(np.nanmean(tau)))
        means = {method: round(float(np.mean(taus)), 4) for method, taus in values.items()}
        behind = round(max(means[method] for method in CANDIDATES) - means["automatic"], 4)
        line = {"bench": "label_choice", "set": name, "folds": len(splits), **means, "behind": behind}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
