"""
Probabilities of `Calibrated` and `CRR` on held-out rows, against logistic regression and gradient boosting.

Log loss (probabilities clipped to 1e-6), area under the ROC curve of all rows, and expected calibration error over ten
bins of equal width, each a mean over sets after a mean over their draws. Scikit-learn's logistic regression has
standardised columns, with its default penalty and, calibrated by a sigmoid, on the same folds; its gradient boosting
has its defaults. The sets of `CHOSEN_ON` decided between variants of `Calibrated`, the others only judge.

Run: CORANK_DATA=... python benchmarks/bench_calibration.py [--draws 1] [--by-set]
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
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
FIGURES = ("log_loss", "auc", "calibration_error")
RANKERS = {
    "RankRLS": RankRLS(),
    "CRR, 0.5": CRR(mix=0.5),
    "SPD": SPD("logistic", random_state=0),
    "trees": LambdaRank(scorer="trees", random_state=0),
}


class Part(NamedTuple):
    """Rows, labels 0 and 1, and query ids."""

    X: Any
    y: Any
    qid: Any


def problems(draws: int) -> Iterator[tuple[str, Part, Part]]:
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
        for seed in range(draws):
            yield name, *halves(X, (y > np.median(y)) * 1.0, seed, 1000)
    for name in ("Music", "Scene", "Yeast"):
        data = read_multilabel(name)
        for label in range(draws):
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


def predictions(train: Part, test: Part) -> Iterator[tuple[str, Any]]:
    """Yield names of methods and predicted probabilities of test rows."""
    cv = folds(train)
    yield "share of 1, no features", np.full(len(test.y), train.y.mean())
    for name, ranker in RANKERS.items():
        model = Calibrated(ranker, "logistic", cv=cv).fit(train.X, train.y, qid=train.qid)
        yield f"Calibrated({name})", model.predict(test.X)
    for mix in (0.1, 0.5):
        model = CRR(loss="logistic", mix=mix).fit(train.X, train.y, qid=train.qid)
        yield f"CRR(logistic, {mix})", model.predict_proba(test.X)[:, 1]
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    rivals = {
        "logistic regression": regression,
        "logistic regression, sigmoid": CalibratedClassifierCV(regression, method="sigmoid", cv=cv, ensemble=False),
        "gradient boosting": HistGradientBoostingClassifier(random_state=0),
    }
    for name, rival in rivals.items():
        yield name, rival.fit(train.X, train.y).predict_proba(test.X)[:, 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--draws", type=int, default=3, help="Draws, or labels, of each set.")
    parser.add_argument("--by-set", action="store_true", help="Print every set, too.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    values: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for name, train, test in problems(options.draws):
        for method, p in predictions(train, test):
            error = reliability_curve(test.y, p, n_bins=10).expected_error
            figures = log_loss(test.y, np.clip(p, 1e-6, 1.0 - 1e-6)), roc_auc_score(test.y, p), error
            values[method][name].append(figures)
            if options.by_set:
                line = dict(zip(FIGURES, np.round(figures, 4).tolist(), strict=True))
                print(json.dumps({"bench": "calibration", "set": name, "method": method, **line}), flush=True)
    for role, is_role in (("chosen on", True), ("judged on", False)):
        for method, sets in values.items():
            means = [np.mean(draws, axis=0) for name, draws in sets.items() if (name in CHOSEN_ON) == is_role]
            line = dict(zip(FIGURES, np.mean(means, axis=0).round(4).tolist(), strict=True))
            print(json.dumps({"bench": "calibration", "sets": role, "n": len(means), "method": method, **line}))


if __name__ == "__main__":
    main()
