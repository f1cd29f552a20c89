"""
Scores that rank and mean something: listwise ranking plus regression, against CRR and calibrated rankers.

Sculley (KDD 2010) names listwise ranking functions combined with regression as the most interesting future work. All
methods learn whether a document is relevant; nDCG@10 uses the grades. What should be deployed with how many judgements?
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corank.base import Calibrated, reliability_curve
from corank.comparison.report import Report
from corank.data.queries import Queries
from corank.data.splits import QueryKFold
from corank.errors import import_extra
from corank.metrics import evaluate
from corank.models.lambdarank import LambdaRank
from corank.models.linear import CRR, SPD
from corank.tables import Cell, ReportTable
from experiments.lambdarank.problems import Judged, Split, mq2008, mslr
from experiments.options import ExperimentOptions
from experiments.significance import p_text

Floats = NDArray[np.float64]
Predict = Callable[[Judged, Floats, Floats, int], Floats]
"""Takes training rows, their relevance, test rows and a seed; returns probabilities of test rows."""

LEAST = {"MQ2008": 1, "MSLR sample": 2}
"""Smallest grade that counts as relevant."""
SIZES = {"MQ2008": (10, 40, 160), "MSLR sample": (10, 20, 43)}
N_FOLDS = 5
WEIGHT = 1.0
"""Weight of the regression next to the listwise λ."""


def _crr(train: Judged, y: Floats, X: Floats, seed: int) -> Floats:
    model = CRR(loss="logistic", random_state=seed).fit(train.X, y, qid=train.qid)
    return np.asarray(model.predict_proba(X)[:, 1])


def _calibrated(ranker: Any, train: Judged, y: Floats, X: Floats, seed: int) -> Floats:
    model = Calibrated(ranker).fit(train.X, y, qid=train.qid)
    return np.asarray(model.predict_proba(X)[:, 1])


def _listwise(scorer: Any, train: Judged, y: Floats, X: Floats, seed: int) -> Floats:
    lambdas = f"ndcg@10 + {WEIGHT:g}*regression"
    model = LambdaRank(lambdas, scorer, random_state=seed).fit(train.X, y, qid=train.qid)
    return np.clip(model.predict(X), 0.0, 1.0)


def _lightgbm(train: Judged, y: Floats, X: Floats, seed: int) -> Floats:
    """Calibrate LightGBM's ranker by isotonic regression on scores of left-out queries."""
    lightgbm = import_extra("lightgbm", "trees")

    def fit(rows: Any) -> Any:
        queries = Queries.of(train.qid[rows], len(rows))
        ranker = lightgbm.LGBMRanker(random_state=seed, n_jobs=1, verbose=-1)
        return ranker.fit(train.X[rows][queries.order], y[rows][queries.order].astype(int), group=queries.sizes)

    pooled = np.empty(len(y))
    for rest, held in QueryKFold(N_FOLDS).split(train.X, qid=train.qid):
        pooled[held] = fit(rest).predict(train.X[held])
    curve = IsotonicRegression(out_of_bounds="clip").fit(pooled, y)
    return np.asarray(curve.predict(fit(np.arange(len(y))).predict(X)))


def _logistic(train: Judged, y: Floats, X: Floats, seed: int) -> Floats:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500)).fit(train.X, y)
    return np.asarray(model.predict_proba(X)[:, 1])


METHODS: dict[str, Predict] = {
    "CRR, logistic": _crr,
    "Calibrated(SPD)": partial(_calibrated, SPD("logistic")),
    "LambdaRank linear, ndcg@10 + regression": partial(_listwise, "linear"),
    "LambdaRank trees, ndcg@10 + regression": partial(_listwise, "trees"),
    "LightGBM lambdarank + isotonic": _lightgbm,
    "logistic regression (scikit-learn)": _logistic,
}
BASELINE = "mean of BM25 columns, share of relevant rows"
BASE = "CRR, logistic"


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 10 repeats by default; quick runs make 2.
    Returns: nDCG@10, MSE and calibration error by collection and number of judged queries.
    """
    repeats = options.repeats or (2 if options.quick else 10)
    options.expect(sum(map(len, SIZES.values())) * repeats)
    names, tables = [*METHODS, BASELINE], []
    for collection, sizes in SIZES.items():
        rows: list[tuple[Cell, ...]] = []
        for size in sizes:
            found = np.array(
                [
                    options.result(
                        {"experiment": "crr-deploy", "collection": collection, "queries": size, "repeat": repeat},
                        partial(_measure, collection, size, repeat, options.seed),
                    )
                    for repeat in range(repeats)
                ]
            )
            base = names.index(BASE)
            for at, name in enumerate(names):
                tests = ["" if at == base else p_text(found[:, at, m] - found[:, base, m], before="") for m in (0, 2)]
                rows.append((size, name, *map(float, found[:, at].mean(axis=0)), *tests))
        tables.append(
            ReportTable(
                f"{collection}: relevant from grade {LEAST[collection]}, mean of {repeats} draws",
                ("judged queries", "method", "nDCG@10", "MSE", "calibration error", "p of nDCG@10", "p of calibration"),
                tuple(rows),
                note=f"Calibration error over ten bins of equal width. p: Wilcoxon against {BASE}, over draws of "
                "training queries (of test folds too on MQ2008). With all 43 queries of MSLR, draws differ in their "
                "seed only, so that p says nothing.",
            )
        )
    return Report(
        "What to deploy: scores that rank and are probabilities",
        "All methods learn from relevance 0 or 1 with their defaults and predict a probability; nDCG@10 is computed "
        "from the grades of all test queries. The regression next to the listwise λ has the weight "
        f"{WEIGHT:g}, and its scores are clipped to [0, 1].",
        tuple(tables),
        (),
    )


@cache
def _split(collection: str, fold: int) -> Split:
    return mslr() if collection == "MSLR sample" else mq2008(fold)


def _measure(collection: str, size: int, repeat: int, seed: int) -> list[list[float]]:
    split = _split(collection, repeat % 5)
    train = split.train.some(size, np.random.default_rng([seed, repeat, size]))
    least, test = LEAST[collection], split.test
    y, truth = (train.y >= least).astype(np.float64), (test.y >= least).astype(np.float64)

    def values(scores: Floats, p: Floats) -> list[float]:
        ndcg = evaluate(test.y, scores, test.qid, "nDCG@10", n_jobs=1)["nDCG@10"].mean
        return [ndcg, float(np.mean((truth - p) ** 2)), reliability_curve(truth, p).expected_error]

    found = []
    for predict in METHODS.values():
        p = predict(train, y, test.X, repeat)
        found.append(values(p, p))
    assert split.bm25 is not None
    return [*found, values(test.X[:, list(split.bm25)].mean(axis=1), np.full(len(truth), y.mean()))]
