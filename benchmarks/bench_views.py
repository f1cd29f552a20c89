"""
Gain of view weights, presumed negatives and alpha by evidence on real data.

Each line of output is a setting and a model as JSON: the mean of a metric over the draws of judged rows, and its gain
over the first model of the setting, paired, with the standard error over the draws (positive is better). Settings with
`useless` have one view more, the rows of the first view (of all columns, in LETOR sets) shuffled. Where there is an
order that needs no judgement (the mean of the BM25 columns, the mean rating of a movie), it is listed with the models.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from corank import LCRA, CoRankRLS, RankRLS, ViewRankRLS
from corank.base.kernels import LinearKernel, SumKernel
from corank.data import PoolPolicy
from corank.data.io.letor_reader import read_letor
from corank.metrics import evaluate
from experiments.datasets.catalog import dataset
from experiments.datasets.movielens import read_ratings
from experiments.datasets.mq2008 import read_parts
from experiments.datasets.reuters import read_modapte

Problem = dict[str, Any]
PARTS = ("mq2008", "mslr", "reuters", "movielens", "alpha", "presume")
ALPHAS = 10.0 ** np.arange(-3.0, 2.1, 0.5)


def letor(name: str, n_queries: int, useless: bool, seed: int) -> Problem:
    """Columns by the field they are computed on; n_queries judged, as many others unscored."""
    train, test = _letor(name)
    fields = 8 if name == "mq2008" else 25
    views = [[field + 5 * k for k in range(fields)] for field in range(5)]
    views.append(list(range(5 * fields, train.X.shape[1])))
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(np.unique(train.qid))[: 2 * n_queries]
    at, of = (np.flatnonzero(np.isin(train.qid, some)) for some in (drawn, drawn[:n_queries]))
    y = np.where(np.isin(at, of), train.y[at], np.nan)
    X, Z = np.asarray(train.X[at]), np.asarray(test.X)
    if useless:
        views.append(list(range(X.shape[1], 2 * X.shape[1])))
        X, Z = (np.hstack([rows, rng.permutation(rows)]) for rows in (X, Z))
    bm25 = slice(20, 25) if name == "mq2008" else slice(105, 110)
    free, made = np.asarray(test.X)[:, bm25].mean(axis=1), {"X": X, "y": y, "qid": train.qid[at], "views": views}
    return {**made, "test": (Z, test.y, test.qid), "scale": True, "free": free}


@cache
def _letor(name: str) -> tuple[Any, Any]:
    if name == "mq2008":
        return read_parts((1, 2, 3)), read_parts((4, 5))
    folder = dataset("mslr-sample")
    return tuple(read_letor(folder.path(f"msn1.fold1.{part}.5k.txt")) for part in ("train", "test"))  # type: ignore


def reuters(n_positive: int, n_negative: int, useless: bool, seed: int) -> Problem:
    """One topic of middling size a draw; 300 unscored stories."""
    text, stories = _text()
    train, test = np.flatnonzero(~stories.is_test), np.flatnonzero(stories.is_test)
    counts = Counter(topic for i in train for topic in sorted(stories.topics[i]))
    topic, rng = counts.most_common(25)[5 + seed % 20][0], np.random.default_rng(seed)
    about = stories.about(topic)
    judged = [rng.choice(train[about[train] == y], n, replace=False) for y, n in ((1, n_positive), (0, n_negative))]
    rows = np.concatenate([*judged, rng.choice(np.setdiff1d(train, np.concatenate(judged)), 300, replace=False)])
    y = np.where(np.arange(len(rows)) < n_positive + n_negative, about[rows], np.nan)
    X, d = text, text.shape[1]
    views = [list(range(d))]
    if useless:
        X, views = sparse.hstack([text, text[rng.permutation(text.shape[0])]]).tocsr(), [*views, list(range(d, 2 * d))]
    return {"X": X[rows], "y": y, "qid": None, "views": views, "test": (X[test], about[test], None), "scale": False}


@cache
def _text() -> tuple[Any, Any]:
    stories = read_modapte()
    return TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english").fit_transform(stories.texts), stories


def movielens(n_ratings: int, useless: bool, seed: int) -> Problem:
    """Draw one of the last thousand users; movies have 20 spectral features of the other users' ratings."""
    ratings = read_ratings()
    others, rng = ratings[:5000], np.random.default_rng(seed)
    kept = np.flatnonzero((~np.isnan(others)).sum(axis=0) >= 100)
    views_of = _movies()
    user = 5000 + rng.choice(np.flatnonzero((~np.isnan(ratings[5000:][:, kept])).sum(axis=1) >= 60))
    own = ratings[user, kept].astype(np.float64)
    rated = rng.permutation(np.flatnonzero(~np.isnan(own)))
    X, y = np.hstack(views_of), np.full(len(kept), np.nan)
    widths = np.cumsum([0, *(view.shape[1] for view in views_of)])
    views = [list(range(a, b)) for a, b in pairwise(widths.tolist())]
    if useless:
        X, views = np.hstack([X, rng.permutation(views_of[0])]), [*views, list(range(widths[-1], widths[-1] + 20))]
    y[rated[:n_ratings]] = own[rated[:n_ratings]]
    test, mean = rated[n_ratings:], np.nanmean(others[:, kept], axis=0)
    made = {"X": X, "y": y, "qid": None, "views": views, "scale": False}
    return {**made, "test": (X[test], own[test], None), "free": mean[test]}


@cache
def _movies() -> tuple[Any, Any]:
    others = read_ratings()[:5000]
    others = others[:, (~np.isnan(others)).sum(axis=0) >= 100]
    seen = ~np.isnan(others)
    centred = np.where(seen, others - np.nanmean(others, axis=1, keepdims=True), 0.0)
    spectral, who = (np.linalg.svd(A, full_matrices=False) for A in (centred, seen - seen.mean(axis=0)))
    return tuple((of.Vh[:20].T * of.S[:20]) for of in (spectral, who))  # type: ignore


def equal(views: list[list[int]], scale: bool) -> RankRLS:
    """Every view as loud as another: columns of one size, or rows of one length."""
    sizes = tuple(1.0 / len(view) if scale else 1.0 for view in views)
    kernel = SumKernel((LinearKernel(),) * len(views), sizes, tuple(map(tuple, views)))
    return RankRLS(kernel=kernel, scale=scale)


VIEWS: dict[str, Callable[[Any, bool], Any]] = {
    "RankRLS": lambda views, scale: RankRLS(scale=scale),
    "equal": equal,
    "ViewRankRLS": lambda views, scale: ViewRankRLS(views, scale=scale),
    "ViewRankRLS disagreement": lambda views, scale: ViewRankRLS(views, metric="disagreement", scale=scale),
    "ViewRankRLS evidence": lambda views, scale: ViewRankRLS(views, metric="evidence", scale=scale),
    "CoRankRLS": lambda views, scale: CoRankRLS(views, scale=scale, random_state=0),
    "LCRA": lambda views, scale: LCRA(views, n_steps=20_000, scale=scale, random_state=0),
}
ALPHA: dict[str, Callable[[Any, bool], Any]] = {
    "closed rule": lambda views, scale: RankRLS(scale=scale),
    "leave-query-out nDCG@10": lambda views, scale: RankRLS(alphas=ALPHAS, metric="nDCG@10", scale=scale),
    "leave-query-out disagreement": lambda views, scale: RankRLS(alphas=ALPHAS, metric="disagreement", scale=scale),
    "evidence": lambda views, scale: RankRLS(alphas=ALPHAS, metric="evidence", scale=scale),
}


def compare(what: str, models: dict[str, Any], draw: Callable[[int], Problem], n: int, metric: str) -> None:
    """Print what each model is worth over n draws."""
    found: dict[str, list[float]] = {name: [] for name in models}
    for seed in range(n):
        problem = draw(seed)
        X, y, qid = problem["test"]
        for name, make in models.items():
            model = make(problem["views"], problem["scale"]).fit(problem["X"], problem["y"], qid=problem["qid"])
            found[name].append(evaluate(y, model.predict(X), qid, metric)[metric].mean)
        if "free" in problem:
            found.setdefault("no judgement", []).append(evaluate(y, problem["free"], qid, metric)[metric].mean)
    _print(what, metric, found)


def presumed(n_positive: int, n_negative: int, n: int) -> None:
    """Print the gain of presumed negatives for one topic, compared with the mean of the positives."""
    found: dict[str, list[float]] = {}
    for seed in range(n):
        problem = reuters(n_positive, n_negative, False, seed)
        X, y, (Z, truth, _) = problem["X"], problem["y"], problem["test"]
        scores = {"mean of the positives": Z @ np.asarray(X[y == 1].mean(axis=0)).ravel()}
        for weight in (0.02, 0.1, 1.0):
            rows = PoolPolicy("irrelevant", weight=weight, max_rows=100, random_state=seed).apply(y)
            model = RankRLS(scale=False).fit(X, rows.y, sample_weight=rows.weights)
            scores[f"RankRLS, presumed negatives of weight {weight:g}"] = model.predict(Z)
        if n_negative:
            scores["RankRLS"] = RankRLS(scale=False).fit(X, y).predict(Z)
        for name, own in scores.items():
            found.setdefault(name, []).append(evaluate(truth, own, None, "AP")["AP"].mean)
    _print(f"reuters {n_positive} + {n_negative}", "AP", found)


def _print(what: str, metric: str, found: dict[str, list[float]]) -> None:
    first, sign = np.array(next(iter(found.values()))), -1.0 if metric == "disagreement" else 1.0
    for name, values in found.items():
        gain = sign * (np.array(values) - first)
        line = {"set": what, "model": name, metric: round(float(np.mean(values)), 4), "gain": round(gain.mean(), 4)}
        print(json.dumps({**line, "error": round(gain.std(ddof=1) / np.sqrt(len(gain)), 4)}), flush=True)


def main(parts: list[str], n: int) -> None:
    """Run the parts that were asked for."""
    warnings.simplefilter("ignore")
    for part, metric in (("mq2008", "AP"), ("mslr", "nDCG@10")):
        for judged in (10, 20) if part == "mslr" else (10, 50):
            for useless in (False, True) if part in parts else ():
                tag = f"{part} {judged} queries{', useless view' if useless else ''}"
                compare(tag, VIEWS, _drawer(letor, part, judged, useless), n, metric)
        for judged in (10, 20, 40) if "alpha" in parts else ():
            compare(f"{part} {judged} queries", ALPHA, _drawer(letor, part, judged, False), n, metric)
    for useless in (False, True):
        if "reuters" in parts:
            compare(f"reuters 5 + 15, useless view: {useless}", VIEWS, _drawer(reuters, 5, 15, useless), 2 * n, "AP")
        if "movielens" in parts:
            for judged in (10, 30):
                draw = _drawer(movielens, judged, useless)
                compare(f"movielens {judged}, useless view: {useless}", VIEWS, draw, 4 * n, "disagreement")
    for n_negative in (0, 15) if "presume" in parts else ():
        presumed(5, n_negative, 2 * n)


def _drawer(make: Callable[..., Problem], *given: Any) -> Callable[[int], Problem]:
    return lambda seed: make(*given, seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--draws", type=int, default=10)
    arguments = parser.parse_args()
    main(arguments.parts or list(PARTS), arguments.draws)
