"""
Calibration of `Calibrated` on held-out rows, against scikit-learn's CalibratedClassifierCV on the same folds.

Expected calibration error over ten bins of equal width of the predicted probability, log loss (probabilities clipped to
1e-6) and Brier score, each a mean over sets after a mean over their draws. Rankers are `RankRLS`, `CRR`, `SPD` and
trees; scikit-learn calibrates a logistic regression on standardised columns. "Before" is isotonic regression on the
pooled scores of the folds, as corank 0.1 did. The sets of `CHOSEN_ON` decided between variants, the others only judge.

Run: CORANK_DATA=... python benchmarks/bench_calibration.py [--rankers RankRLS]
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corank import CRR, SPD, Calibrated, LambdaRank, QueryKFold, RankRLS
from corank.base import reliability_curve
from corank.data.io.letor_reader import read_letor
from experiments.datasets.catalog import dataset
from experiments.datasets.mq2008 import read_parts
from experiments.gp_ordinal.run import read_set
from experiments.label_ranking.sets import read_multilabel

CHOSEN_ON = ("mq2008 1", "mslr > 1", "abalone", "bostonhousing_ord", "winequality-red", "Music")
ORDINAL = (
    "abalone", "affairs", "bostonhousing_ord", "cement_strength", "winequality-red", "winequality-white",
    "wisconsin_breast_ord", "auto_riskness",
)  # fmt: skip
RANKERS = {
    "RankRLS": RankRLS(),
    "CRR": CRR(mix=0.5),
    "SPD": SPD("logistic", random_state=0),
    "trees": LambdaRank(scorer="trees", random_state=0),
}


class Part(NamedTuple):
    """Rows, labels 0 and 1, and query ids."""

    X: Any
    y: Any
    qid: Any


def problems() -> Iterator[tuple[str, Part, Part]]:
    """Yield the name of a set, training and test part."""
    for k in range(1, 6):
        parts = [read_parts((number,)) for number in (k, k % 5 + 1)]
        yield f"mq2008 {k}", *(Part(np.asarray(c.X), (c.y > 0) * 1.0, c.qid) for c in parts)
    files = [dataset("mslr-sample").path(f"msn1.fold1.{part}.5k.txt") for part in ("train", "test")]
    parts = [read_letor([file], n_features=136, dtype=np.float64, layout="dense") for file in files]
    for least in (0, 1):
        yield f"mslr > {least}", *(Part(np.asarray(c.X), (c.y > least) * 1.0, c.qid) for c in parts)
    for name in ORDINAL:
        X, y = read_set(name)
        for seed in range(3):
            yield name, *halves(X, (y > np.median(y)) * 1.0, seed, 1000)
    for name in ("Music", "Scene", "Yeast"):
        data = read_multilabel(name)
        for label in range(6):
            yield name, *halves(data.X, data.y[:, label], label, len(data.X))


def halves(X: Any, y: Any, seed: int, most: int) -> tuple[Part, Part]:
    """Split rows of one query at random; at most `most` rows are trained on."""
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(len(y) // 2, most)
    train, test = (Part(X[rows], y[rows], np.zeros(len(rows), dtype=int)) for rows in (order[:n], order[n:]))
    return train, test


def folds(part: Part) -> list[Any]:
    """Five folds: of queries, or of rows if there is one query."""
    if len(np.unique(part.qid)) > 1:
        return list(QueryKFold(5).split(part.X, qid=part.qid))
    return list(StratifiedKFold(5, shuffle=True, random_state=0).split(part.X, part.y))


def predictions(train: Part, test: Part, rankers: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield names of methods and predicted probabilities of test rows."""
    cv = folds(train)
    yield "no features: share of 1", np.full(len(test.y), train.y.mean())
    for name, ranker in ((name, RANKERS[name]) for name in rankers):
        pooled = np.empty(len(train.y))
        for fit, held in cv:
            model = clone(ranker).fit(train.X[fit], train.y[fit], qid=train.qid[fit])
            pooled[held] = model.predict(train.X[held])
        whole = clone(ranker).fit(train.X, train.y, qid=train.qid)
        curve = IsotonicRegression(out_of_bounds="clip").fit(pooled, train.y)
        yield f"{name}, before", curve.predict(whole.predict(test.X))
        for method in ("isotonic", "logistic"):
            model = Calibrated(ranker, method, cv=cv).fit(train.X, train.y, qid=train.qid)
            yield f"{name}, {method}", model.predict(test.X)
    regression = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    for method in ("isotonic", "sigmoid"):
        for ensemble in (True, False):
            rival = CalibratedClassifierCV(regression, method=method, cv=cv, ensemble=ensemble).fit(train.X, train.y)
            yield f"scikit-learn, {method}{', ensemble' if ensemble else ''}", rival.predict_proba(test.X)[:, 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rankers", nargs="+", choices=list(RANKERS), default=list(RANKERS))
    parser.add_argument("--by-set", action="store_true", help="Print every set, too.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for name, train, test in problems():
        for method, p in predictions(train, test, options.rankers):
            safe = np.clip(p, 1e-6, 1.0 - 1e-6)
            error = reliability_curve(test.y, p, n_bins=10).expected_error
            found[method][name].append((error, log_loss(test.y, safe), brier_score_loss(test.y, p)))
    for method, sets in found.items() if options.by_set else ():
        for name, values in sets.items():
            error, loss, brier = np.mean(values, axis=0).round(4).tolist()
            line = {"bench": "calibration", "set": name, "method": method}
            print(json.dumps({**line, "ece": error, "log_loss": loss, "brier": brier}), flush=True)
    for role, is_role in (("chosen on", True), ("judged on", False)):
        for method, sets in found.items():
            means = [np.mean(values, axis=0) for name, values in sets.items() if (name in CHOSEN_ON) == is_role]
            error, loss, brier = np.mean(means, axis=0).round(4).tolist()
            line = {"bench": "calibration", "sets": role, "n": len(means), "method": method}
            print(json.dumps({**line, "ece": error, "log_loss": loss, "brier": brier}), flush=True)


if __name__ == "__main__":
    main()
