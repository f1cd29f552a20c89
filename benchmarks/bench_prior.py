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
from corank.metrics import compare

BM25 = [20, 21, 22, 23, 24]
"""BM25 of body, anchor, title, URL and the whole document."""
N_JUDGED = (5, 20)
N_SEEDS = 10

RANKERS: dict[str, Ranker] = {
    "mean of five BM25 columns": ColumnMean(BM25),
    "RankRLS": RankRLS(),
    "RankRLS on top": OnTop(ColumnMean(BM25), RankRLS()),
    "RankSVM": RankSVM(),
    "RankSVM on top": OnTop(ColumnMean(BM25), RankSVM()),
    "logistic SPD": SPD("logistic"),
    "logistic SPD on top": OnTop(ColumnMean(BM25), SPD("logistic")),
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
        found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in RANKERS}
        for train, judged, test in draws(n_judged):
            for name, ranker in RANKERS.items():
                ranker.fit(train.X[judged], train.y[judged], qid=train.qid[judged])
                scores = ranker._predict_queries(test.X, test.qid, None)
                found[name].append(evaluate(test.y, scores, test.qid, "AP")["AP"].values)
        # one number a query and seed; the same queries in the same order for all
        bar = "mean of five BM25 columns"
        for name, parts in found.items():
            means = np.array([np.nanmean(part) for part in parts])
            line = {"judged queries": n_judged, "ranker": name, "MAP": round(float(means.mean()), 4)}
            line["over draws"] = round(float(means.std()), 4)
            alone = name.removesuffix(" on top")
            for other in (alone, bar) if alone != name else ():
                gaps = means - np.array([np.nanmean(part) for part in found[other]])
                line[f"− {other}"] = f"{gaps.mean():+.4f} ({int((gaps > 0).sum())} of {len(gaps)} draws)"
            print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
