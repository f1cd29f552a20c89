"""
The rule of AutoRanker's average, replayed over stored scores of its candidates.

    python benchmarks/bench_auto_choice.py --store scores --draws 0 4              # scores of candidates, once
    python benchmarks/bench_auto_choice.py --store scores --rules                  # rules compared on them

For each collection, number of judged queries and draw of `auto_collections.split`, a file of the folder holds the scores
that every candidate gives to left-out rows and to test rows, once with the columns as they are, and once with
columns as ranks or standardised inside queries, or with the mean or the best column as prior. A rule of the average then
costs milliseconds. LightGBM is stored with its scores of test rows only.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from auto_collections import DEVELOPMENT, JUDGING, Rows, collection, split
from bench_auto import lightgbm_fit
from corank.base.priors import ColumnMean, prior_slope
from corank.core.rows.scaled import ScaledRows
from corank.data.column_scales import column_factors
from corank.data.ranking import RankingData
from corank.models.auto.candidates import CANDIDATES, Candidate, column_correlations
from corank.models.auto.left_out import ValidationFolds
from corank.models.auto.trials import Trial, Trials
from corank.models.rls import RankRLS

Floats = NDArray[np.float64]
SIZES: tuple[int | None, ...] = (5, 10, 20, 40, None)


def ranks_inside(X: Floats, qid: NDArray[np.int64]) -> Floats:
    result = np.empty_like(X)
    for q in np.unique(qid):
        at = qid == q
        result[at] = (rankdata(X[at], axis=0) - 0.5) / at.sum()
    return result


def standardised(X: Floats, qid: NDArray[np.int64]) -> Floats:
    result = np.empty_like(X)
    for q in np.unique(qid):
        at = qid == q
        deviation = X[at].std(axis=0)
        result[at] = (X[at] - X[at].mean(axis=0)) / np.where(deviation > 1e-12, deviation, np.inf)
    return result


VIEWS: dict[str, tuple[Callable[[Floats, NDArray[np.int64]], Floats], tuple[str, ...]]] = {
    "": (lambda X, qid: X, tuple(CANDIDATES)),
    "ranks:": (ranks_inside, ("linear", "linear-strong", "linear-strongest", "mean", "gaussian")),
    "both:": (lambda X, qid: np.hstack([X, ranks_inside(X, qid)]), ("linear", "linear-strong", "gaussian")),
    "zscore:": (standardised, ("linear", "linear-strong", "linear-strongest", "mean", "gaussian")),
}


def _signed_mean(data: RankingData, alpha: float, seed: int) -> ColumnMean:
    return ColumnMean(
        range(data.n_features), np.sign(column_correlations(data)) * column_factors(data), method=None
    )


def prior_scores(kind: str, data: RankingData) -> Floats:
    """Return weights of columns."""
    if kind == "mean":
        return column_factors(data)
    correlations = column_correlations(data)
    if kind == "signed":
        return np.sign(correlations) * column_factors(data)
    best = int(np.argmax(np.abs(correlations)))
    weights = np.zeros(data.n_features)
    weights[best] = np.sign(correlations[best]) or 1.0
    return weights


def with_prior(kind: str, multiple: float, alpha: float, data: RankingData) -> Callable[[Floats], Floats]:
    weights = prior_scores(kind, data)
    prior = np.asarray(data.X) @ weights
    slope = prior_slope(data, prior)
    model = RankRLS(multiple * alpha).fit(replace(data, prior=slope * prior))
    return lambda X: np.asarray(model.predict(X, prior=slope * (X @ weights)))


PRIORS = [(kind, name, multiple) for kind in ("mean", "signed", "column") for name, multiple in (("linear", 1.0), ("linear-strong", 10.0))]


def store(name: str, size: int | None, draw: int, path: Path) -> None:
    train, test = split(collection(name), size, draw)
    if size is not None and len(np.unique(train.qid)) < size:
        return
    names, inside, outside = [], [], []
    for view, (change, members) in VIEWS.items():
        X, T = change(train.X, train.qid), change(test.X, test.qid)
        data = RankingData.of(X, train.y, train.qid)
        left_out = ValidationFolds.of(RankingData.of(train.X, train.y, train.qid), None, np.random.default_rng(draw))
        assert left_out is not None
        left_out = replace(left_out, data=data)
        work = Trials(data, left_out, draw, None)
        candidates = [CANDIDATES[name] for name in members]
        if not view:
            candidates.append(Candidate("signed-mean", _signed_mean, 1.0))
        for candidate in candidates:
            scores = work._left_out_scores(candidate, lambda *_: None)
            model = work.fit_all(Trial(candidate, scores, 0.0), lambda *_: None)[0]
            names.append(view + candidate.name)
            inside.append(scores)
            outside.append(model.predict(T))
        if view:
            continue
        for kind, member, multiple in PRIORS:
            scores = np.empty(len(left_out.rows))
            for part, out in left_out.parts():
                scores[out] = with_prior(kind, multiple, work._alpha, part)(X[left_out.rows[out]])
            names.append(f"on-{kind}:{member}")
            inside.append(scores)
            outside.append(with_prior(kind, multiple, work._alpha, data)(T))
    trees = lightgbm_fit(train, draw).predict(test.X)
    np.savez_compressed(
        path, names=names, F=np.column_stack(inside), T=np.column_stack(outside), lightgbm=trees,
        y=train.y[left_out.rows], lists=left_out.lists, folds=left_out.folds, test_y=test.y, test_qid=test.qid,
        metric=left_out.metric,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True, help="folder of scores")
    parser.add_argument("--draws", type=int, nargs=2, help="first draw, and one past the last")
    parser.add_argument("--sizes", nargs="*", default=["5", "10", "20", "40", "all"], help="numbers of judged queries")
    parser.add_argument("--seconds", type=float, default=np.inf, help="processor time after which to stop")
    chosen = parser.parse_args()
    chosen.store.mkdir(exist_ok=True)
    for draw in range(*(chosen.draws or (0, 0))):
        for size in chosen.sizes:
            for name in [*DEVELOPMENT, *JUDGING]:
                path = chosen.store / f"{name.replace(' ', '_')}.{size}.{draw}.npz"
                if time.process_time() > chosen.seconds:
                    return
                if not path.exists():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        store(name, None if size == "all" else int(size), draw, path)


if __name__ == "__main__":
    main()
