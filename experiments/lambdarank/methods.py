"""The methods compared: λ with each scorer, other rankers, and LightGBM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base import ColumnMean
from corank.data.queries import Queries
from corank.errors import import_extra
from corank.metrics import evaluate
from corank.models.lambdarank import LambdaRank
from corank.models.lambdarank.trees import DEFAULTS
from corank.models.linear import SPD
from corank.models.rls import RankRLS
from experiments.lambdarank.problems import Judged, Split

Floats = NDArray[np.float64]

METRICS = ("nDCG@10", "AP", "RR", "WTA")
N_BASIS = 200
N_TREES, RATE = 200, 0.1
# LightGBM's own lambdarank with the trees that corank grows; its smallest leaf is in rows
SAME_TREES = {
    "num_leaves": DEFAULTS["num_leaves"], "min_child_samples": 20, "reg_lambda": DEFAULTS["lambda_l2"],
    "extra_trees": DEFAULTS["extra_trees"], "n_estimators": N_TREES, "learning_rate": RATE,
}  # fmt: skip
LIGHTGBM, LIGHTGBM_SAME = "LightGBM lambdarank, its defaults", "LightGBM lambdarank, the same trees"
BM25 = "mean of BM25 columns, no judgement"

Fit = Callable[[int], Any]


def _linear(lambdas: str, seed: int) -> LambdaRank:
    return LambdaRank(lambdas, random_state=seed)


METHODS: dict[str, Fit] = {
    "SPD": lambda seed: SPD(),
    "RankRLS, Gaussian kernel": lambda seed: RankRLS(kernel="gaussian", n_basis=N_BASIS, random_state=seed),
    **{f"linear, {lambdas}": partial(_linear, lambdas) for lambdas in ("ranknet", "ndcg", "map", "mrr", "wta", "err")},
    "mlp, ranknet": lambda seed: LambdaRank("ranknet", "mlp", random_state=seed),
    "mlp, ndcg": lambda seed: LambdaRank("ndcg", "mlp", random_state=seed),
    "trees, ranknet": lambda seed: LambdaRank("ranknet", "trees", random_state=seed),
    "trees, ndcg": lambda seed: LambdaRank("ndcg", "trees", random_state=seed),
    "trees, ndcg(near=0.01)": lambda seed: LambdaRank("ndcg(near=0.01)", "trees", random_state=seed),
}
"""Rankers of corank, by name; each function takes a random seed."""

DRAWING = ("mlp", "trees", "LightGBM")
"""Prefixes of the names of methods that depend on a seed."""


def score(method: str, split: Split, seed: int) -> Floats:
    """Fit a method, and score the test rows."""
    train, X = split.train, split.test.X
    if method == BM25:
        assert split.bm25 is not None
        return ColumnMean(split.bm25).fit(X, qid=split.test.qid).predict(X, split.test.qid)
    if method in METHODS:
        return np.asarray(METHODS[method](seed).fit(train.X, train.y, qid=train.qid).predict(X))
    settings = SAME_TREES if method == LIGHTGBM_SAME else {}
    return _lightgbm(train, settings, seed).predict(X)  # type: ignore[no-any-return]


def measured(method: str, split: Split, seed: int) -> dict[str, list[float]]:
    """Return each metric, query by query; NaN if it is not defined."""
    found = evaluate(split.test.y, score(method, split, seed), split.test.qid, METRICS)
    return {metric: [float(value) for value in found[metric].values] for metric in METRICS}


def _lightgbm(train: Judged, settings: dict[str, Any], seed: int) -> Any:
    queries = Queries.of(train.qid, len(train.y))
    model = import_extra("lightgbm", "trees").LGBMRanker(verbosity=-1, n_jobs=1, random_state=seed, **settings)
    return model.fit(train.X[queries.order], train.y[queries.order], group=queries.sizes)
