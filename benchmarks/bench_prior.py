"""
What a prior is worth on LETOR MQ2008 with few judged queries: mean average precision on the official folds.

Judged queries are drawn from the training parts of each fold, the same ones for every ranker, and the test part is
ranked; queries without a relevant document are left out. ``python benchmarks/bench_prior.py`` needs CORANK_DATA.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from corank import SPD, ColumnMean, OnTop, Ranker, RankRLS, RankSVM, evaluate
from corank.data.collection import Collection
from corank.data.mq2008 import folds, read_parts
from corank.data.routing import predict_with_qid

BM25 = ColumnMean([20, 21, 22, 23, 24])
"""BM25 of body, anchor, title, URL and the whole document."""
BAR = "mean of five BM25 columns"
ALPHAS = np.logspace(-1, 4, 11)
N_JUDGED = (5, 20, 100, 300)
N_SEEDS = 10

RANKERS: dict[str, Ranker] = {
    BAR: BM25,
    "RankRLS": RankRLS(),
    "RankRLS on top": OnTop(BM25, RankRLS()),
    "RankRLS, alphas": RankRLS(alphas=ALPHAS),
    "RankRLS, alphas on top": OnTop(BM25, RankRLS(alphas=ALPHAS)),
    "RankSVM": RankSVM(),
    "RankSVM on top": OnTop(BM25, RankSVM()),
    "logistic SPD": SPD("logistic"),
    "logistic SPD on top": OnTop(BM25, SPD("logistic")),
}


def draws(n_judged: int) -> Iterator[tuple[Collection, NDArray[np.bool_], Collection]]:
    """The training parts of each fold and seed, which of their rows are judged, and the test part."""
    for number, fold in enumerate(folds()):
        train, test = read_parts(fold.train), read_parts((fold.test,))
        queries = np.unique(train.qid)
        usable = np.array([q for q in queries if len(np.unique(train.y[train.qid == q])) > 1])
        for seed in range(N_SEEDS):
            chosen = np.random.default_rng([seed, number]).choice(usable, n_judged, replace=False)
            yield train, np.isin(train.qid, chosen), test


def main() -> None:
    """Print one JSON line for each number of judged queries and each ranker."""
    for n_judged in N_JUDGED:
        found: dict[str, list[float]] = {name: [] for name in RANKERS}
        for train, judged, test in draws(n_judged):
            for name, ranker in RANKERS.items():
                ranker.fit(train.X[judged], train.y[judged], qid=train.qid[judged])
                scores = predict_with_qid(ranker, test.X, test.qid)
                found[name].append(evaluate(test.y, scores, test.qid, "AP")["AP"].mean)
        for name, values in found.items():
            line = {"bench": "prior", "judged": n_judged, "ranker": name, "MAP": round(float(np.mean(values)), 4)}
            for other in {BAR, name.removesuffix(" on top")} - {name}:
                gaps = np.subtract(values, found[other])
                line[f"minus {other}"] = f"{gaps.mean():+.4f}, {int((gaps > 0).sum())} of {len(gaps)} draws"
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
