"""
Gain of a prior with few judged queries, on LETOR MQ2008 (official folds) and a sample of MSLR-WEB30K.

Judged queries are drawn from the training part, the same for every ranker, and the test part is ranked. Queries
without a relevant document are excluded. The prior is the mean of the BM25 columns. CORANK_DATA must be set:
``python benchmarks/bench_prior.py`` runs both, ``--set mslr`` one, ``--seeds 3`` takes fewer draws.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from corank import SPD, ColumnMean, Ranker, RankRLS, RankSVM, evaluate
from corank.base import ResidualRanker
from corank.data import read_letor
from corank.data.collection import Dataset
from corank.data.routing import predict_with_qid
from experiments.datasets.catalog import dataset
from experiments.datasets.mq2008 import folds, read_parts

Draw = tuple[Dataset, NDArray[np.bool_], Dataset]

BAR = "mean of five BM25 columns"
ALPHAS = np.logspace(-1, 4, 11)
# set: BM25 columns, metric, numbers of judged queries
SETS = {
    "mq2008": (ColumnMean([20, 21, 22, 23, 24]), "AP", (5, 20, 100, 300)),
    "mslr": (ColumnMean([105, 106, 107, 108, 109]), "nDCG@10", (5, 10, 20, 40)),
}


class Trusting(ResidualRanker):
    """A ranker on top whose alpha is ten times the one that it chooses by itself."""

    def _fit(self, data, held, rng):
        chosen = super()._fit(data, held, rng).ranker.alpha_
        return ResidualRanker(self.prior_ranker, clone(self.ranker).set_params(alpha=10.0 * chosen))._fit(
            data, held, rng
        )


def rankers(prior: ColumnMean) -> dict[str, Ranker]:
    return {
        BAR: prior,
        "RankRLS": RankRLS(),
        "RankRLS on top": ResidualRanker(prior, RankRLS()),
        "RankRLS, 10 alpha, on top": Trusting(prior, RankRLS()),
        "RankRLS, alphas": RankRLS(alphas=ALPHAS),
        "RankRLS, alphas on top": ResidualRanker(prior, RankRLS(alphas=ALPHAS)),
        "RankSVM": RankSVM(),
        "RankSVM on top": ResidualRanker(prior, RankSVM()),
        "logistic SPD": SPD("logistic"),
        "logistic SPD on top": ResidualRanker(prior, SPD("logistic")),
        "logistic SPD, 10 alpha, on top": Trusting(prior, SPD("logistic")),
    }


@cache
def parts(name: str) -> list[tuple[Dataset, Dataset]]:
    """Training and test part of each fold."""
    if name == "mq2008":
        return [(read_parts(fold.train), read_parts((fold.test,))) for fold in folds()]
    sample = dataset("mslr-sample")
    train, test = (read_letor(sample.path(f"msn1.fold1.{part}.5k.txt")) for part in ("train", "test"))
    return [(train, test)]


def draws(name: str, n_judged: int, n_seeds: int) -> Iterator[Draw]:
    """The training part of each fold and seed, which of its rows are judged, and the test part."""
    for number, (train, test) in enumerate(parts(name)):
        usable = np.array([q for q in np.unique(train.qid) if len(np.unique(train.y[train.qid == q])) > 1])
        for seed in range(n_seeds if name == "mq2008" else 3 * n_seeds):
            chosen = np.random.default_rng([seed, number]).choice(usable, min(n_judged, len(usable)), replace=False)
            yield train, np.isin(train.qid, chosen), test


def main() -> None:
    """Print one JSON line for each number of judged queries and each ranker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=SETS, action="append")
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    for name in asked.set or SETS:
        prior, metric, numbers = SETS[name]
        for n_judged in numbers:
            models = rankers(prior)
            found: dict[str, list[float]] = {model: [] for model in models}
            for train, judged, test in draws(name, n_judged, asked.seeds):
                for model, ranker in models.items():
                    ranker.fit(train.X[judged], train.y[judged], qid=train.qid[judged])
                    scores = predict_with_qid(ranker, test.X, test.qid)
                    found[model].append(evaluate(test.y, scores, test.qid, metric)[metric].mean)
            for model, values in found.items():
                line = {"bench": "prior", "set": name, "judged": n_judged, "ranker": model}
                line[metric] = round(float(np.mean(values)), 4)
                alone = model.removesuffix(" on top").removesuffix(",").removesuffix(", 10 alpha")
                for other in {BAR, alone} - {model}:
                    gaps = np.subtract(values, found[other])
                    line[f"minus {other}"] = f"{gaps.mean():+.4f}, {int((gaps > 0).sum())} of {len(gaps)} draws"
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
