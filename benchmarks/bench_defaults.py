"""
Quality of default parameters: every estimator with its defaults, against the same estimator with a tuned alpha.

Each line of output is one setting as JSON: a data set, the share of its training queries (or rows, if there is one
query) that are judged, and an estimator. `default` is the estimator with default parameters (except its seed) on the
original columns. `tuned` divides the columns by their standard deviation within queries (except text), disables the
estimator's own scaling, and uses the alpha with the best mean over folds of whole training queries (of rows, if there
is one query). `tuned_minmax` does the same after `QueryScaler`; `default_minmax` is the default after it.
RankingPursuit has no alpha; its number of terms is tuned. While alphas are compared, stochastic descent takes a fifth
of its steps and Newton's method ten; the measured fit takes all. The test part is not used for choices.

Each setting has two baselines: no labels, and LightGBM with default parameters.

Figures are means over repeats with different seeds. `tuned_gain` is the improvement of `tuned` over `default` in the
first metric, with its standard error over the repeats.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import KFold

from corank import LCRA, SPD, QueryKFold, QueryScaler, RankingPursuit, RankRLS, RankSVM, make_ranking
from corank.data.durable.text import open_text
from corank.data.io.letor_reader import read_letor
from corank.errors import InputError
from corank.metrics import evaluate
from experiments.datasets.catalog import dataset
from experiments.datasets.jester import read_ratings
from experiments.datasets.mq2008 import folds, read_parts
from experiments.datasets.reuters import read_modapte

Floats = NDArray[np.float64]

GRADED = ("AP", "nDCG@10", "disagreement")
PAIRS = ("disagreement",)
# multiples of the mean squared pair difference per column
GRID = tuple(10.0 ** np.arange(-3, 2.1))
TERMS = (5, 10, 20, 50, 100)
N_FOLDS = 3
# judged rows at most: a Gaussian kernel, refitted for every fold and alpha, is cubic in them
MOST_ROWS = 500
# steps of stochastic descent and of Newton's method while alphas are compared
STEPS = {"n_steps": 20_000, "max_iter": 10}


@dataclass(frozen=True, eq=False)
class Draw:
    """One repeat: rows to learn from, NaN where not judged, rows to test on, and what is measured, first what tunes."""

    X: Any
    y: Floats
    qid: NDArray[Any]
    X_test: Any
    y_test: Floats
    qid_test: NDArray[Any]
    metrics: tuple[str, ...]

    @property
    def is_judged(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.y)

    def judged(self) -> Draw:
        kept = self.is_judged
        return replace(self, X=self.X[kept], y=self.y[kept], qid=self.qid[kept])


def judge(y: Floats, qid: NDArray[Any], share: float, rng: np.random.Generator) -> Floats:
    """Hide all but a share of the queries, two with a pair at least; of the rows, eight at least, of one query."""
    ids = np.unique(qid)
    if len(ids) == 1:
        kept = rng.permutation(len(y))[: max(8, round(share * len(y)))]
        return np.where(np.isin(np.arange(len(y)), kept), y, np.nan)
    ids = rng.permutation(ids)
    has_pair = np.array([np.ptp(y[qid == q]) > 0 for q in ids])
    n = max(round(share * len(ids)), int(np.flatnonzero(has_pair)[1]) + 1)
    return np.where(np.isin(qid, ids[:n]), y, np.nan)


def mq2008(share: float, seed: int, rng: np.random.Generator) -> Draw:
    fold = folds()[seed % 5]
    train, test = read_parts(fold.train), read_parts((fold.test,))
    return Draw(train.X, judge(train.y, train.qid, share, rng), train.qid, test.X, test.y, test.qid, GRADED)


def mq2008_rows(share: float, seed: int, rng: np.random.Generator) -> Draw:
    draw = mq2008(1.0, seed, rng)
    return replace(draw, y=np.where(rng.random(len(draw.y)) < share, draw.y, np.nan))


def mslr(share: float, seed: int, rng: np.random.Generator) -> Draw:
    entry = dataset("mslr-sample")
    rows = read_letor(
        [entry.path(f"msn1.fold1.{part}.5k.txt") for part in ("train", "test")], dtype=np.float64, layout="dense"
    )
    return halves(rows.X, rows.y, rows.qid, share, rng, GRADED)


def made(share: float, seed: int, rng: np.random.Generator) -> Draw:
    problem = make_ranking(200, (10, 30), random_state=seed)
    return halves(problem.X, problem.y, problem.qid, share, rng, GRADED)


def wide(share: float, seed: int, rng: np.random.Generator) -> Draw:
    problem = make_ranking(200, (10, 30), features_per_view=60, random_state=seed)
    return halves(problem.X, problem.y, problem.qid, share, rng, GRADED)


def jester(share: float, seed: int, rng: np.random.Generator) -> Draw:
    ratings = read_ratings()
    user, *others = rng.choice(np.flatnonzero(~np.isnan(ratings).any(axis=1)), 101, replace=False)
    X, y = ratings[others].T.astype(np.float64), ratings[user].astype(np.float64)
    return halves(X, y, np.zeros(len(y), dtype=np.int64), share, rng, PAIRS)


def boston(share: float, seed: int, rng: np.random.Generator) -> Draw:
    return one_query(table("boston", "boston_housing.csv", 0), -1, share, rng)


def cement(share: float, seed: int, rng: np.random.Generator) -> Draw:
    return one_query(table("ordinal", "chu_gagolews/cement_strength.csv", 1), 0, share, rng)


def reuters(share: float, seed: int, rng: np.random.Generator) -> Draw:

    stories = read_modapte()
    at = rng.permutation(np.flatnonzero(~stories.is_test))[:3000]
    test = rng.permutation(np.flatnonzero(stories.is_test))[:1500]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english", token_pattern=r"[A-Za-z]{2,}")
    X, Z = words.fit_transform([stories.texts[i] for i in at]), words.transform([stories.texts[i] for i in test])
    about = stories.about(("crude", "grain", "trade", "ship", "interest")[seed % 5])
    y = judge(about[at], np.zeros(len(at)), share, rng)
    y[np.flatnonzero(about[at])[:4]] = 1.0
    one, other = np.zeros(len(at), dtype=np.int64), np.zeros(len(test), dtype=np.int64)
    return Draw(X.tocsr(), y, one, Z.tocsr(), about[test], other, ("AP", "disagreement"))


def table(name: str, file: str, header: int) -> Floats:
    text = open_text(dataset(name).path(file)).read().tobytes().decode().replace('"', "")
    return np.loadtxt(text.splitlines()[header:], delimiter=",")


def one_query(values: Floats, label: int, share: float, rng: np.random.Generator) -> Draw:
    X, y = np.delete(values, label, axis=1), values[:, label]
    return halves(X, y, np.zeros(len(y), dtype=np.int64), share, rng, PAIRS)


def halves(
    X: Any, y: Floats, qid: NDArray[Any], share: float, rng: np.random.Generator, metrics: tuple[str, ...]
) -> Draw:
    """Half of the queries, or rows where there is one query, to learn from and half to test on."""
    ids = np.unique(qid)
    if len(ids) > 1:
        train = np.isin(qid, rng.permutation(ids)[: len(ids) // 2])
    else:
        train = rng.permutation(len(y)) < len(y) // 2
    return Draw(
        X[train], judge(y[train], qid[train], share, rng), qid[train], X[~train], y[~train], qid[~train], metrics
    )


SETS: dict[str, tuple[Callable[[float, int, np.random.Generator], Draw], tuple[float, ...], int]] = {
    "MQ2008": (mq2008, (0.02, 0.05, 0.2, 1.0), 5),
    "MQ2008, rows": (mq2008_rows, (0.05,), 5),
    "MSLR raw": (mslr, (0.05, 0.2, 1.0), 4),
    "Jester": (jester, (0.3, 1.0), 8),
    "Reuters": (reuters, (0.05,), 5),
    "Boston": (boston, (0.1, 1.0), 5),
    "cement": (cement, (0.1, 1.0), 5),
    "made": (made, (0.05,), 4),
    "made, wide": (wide, (0.05,), 4),
}


@cache
def drawn(name: str, share: float, seed: int) -> Draw:
    return SETS[name][0](share, seed, np.random.default_rng(seed))


@dataclass(frozen=True)
class Candidate:
    """An estimator with default parameters: class, parameters of the variant, and the rows it supports."""

    make: type
    given: dict[str, Any]
    learns_from_unjudged: bool = False
    takes_many_rows: bool = True
    takes_text: bool = True


ESTIMATORS = {
    "SPD": Candidate(SPD, {}),
    "SPD squared": Candidate(SPD, {"loss": "squared"}),
    "RankRLS": Candidate(RankRLS, {}),
    "RankRLS gaussian": Candidate(RankRLS, {"kernel": "gaussian"}, takes_many_rows=False),
    "RankSVM": Candidate(RankSVM, {}, takes_text=False),
    "LCRA": Candidate(LCRA, {}, learns_from_unjudged=True),
    "RankingPursuit": Candidate(RankingPursuit, {}, takes_many_rows=False, takes_text=False),
}


def parameters(make: type) -> dict[str, Any]:
    return {name: entry.default for name, entry in inspect.signature(make).parameters.items()}


def fitted(candidate: Candidate, draw: Draw, seed: int, **settings: Any) -> Any:
    known = parameters(candidate.make)
    settings = {name: value for name, value in settings.items() if name in known}
    rows = draw if candidate.learns_from_unjudged else draw.judged()
    return candidate.make(**candidate.given, random_state=seed, **settings).fit(rows.X, rows.y, qid=rows.qid)


def figures(model: Any, draw: Draw) -> list[float]:
    found = evaluate(draw.y_test, model.predict(draw.X_test), draw.qid_test, draw.metrics)
    return [found[name].mean for name in draw.metrics]


def knob(candidate: Candidate, draw: Draw) -> tuple[str, list[Any]]:
    """What is tuned, and the values tried: multiples of trace(A)/d, A the mean of (a − b)(a − b)ᵀ over the pairs."""
    known = parameters(candidate.make)
    if "alpha" not in known:
        return "n_basis", list(TERMS)
    rows = draw.judged()
    k = mean_square(rows) if candidate.given.get("kernel") != "gaussian" else 0.02
    if candidate.make is RankRLS and known["alpha"] is not None:
        # the sum over all pairs takes the place of the mean where alpha has a number as its default
        sizes = np.unique(rows.qid, return_counts=True)[1]
        k *= float(np.sum(sizes * (sizes - 1)) / 2)
    return "alpha", [k * multiple for multiple in GRID]


def mean_square(rows: Draw) -> float:
    """Mean over the compared pairs of ‖a − b‖², per column: all pairs of a query less those inside its grades."""
    squared = rows.X.multiply(rows.X) if sparse.issparse(rows.X) else rows.X**2
    squares = np.asarray(squared.sum(axis=1)).ravel()
    total = n_pairs = 0.0
    for q in np.unique(rows.qid):
        here = rows.qid == q
        parts = [(1.0, here), *((-1.0, here & (rows.y == grade)) for grade in np.unique(rows.y[here]))]
        for sign, part in parts:
            n, middle = int(part.sum()), np.asarray(rows.X[part].sum(axis=0)).ravel()
            total += sign * float(n * squares[part].sum() - middle @ middle)
            n_pairs += sign * n * (n - 1) / 2
    return total / n_pairs / int(rows.X.shape[1])


def splits(rows: Draw, seed: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    n_queries = len(np.unique(rows.qid))
    if n_queries > 1:
        folds_of_queries = QueryKFold(min(N_FOLDS, n_queries), shuffle=True, random_state=seed)
        yield from folds_of_queries.split(rows.X, qid=rows.qid)
    else:
        yield from KFold(N_FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(rows.y)))


def tuned(candidate: Candidate, draw: Draw, seed: int) -> tuple[Any, float]:
    """Fit with the value whose mean of the first metric over the folds is best, the larger of two equal ones."""
    rows, at = draw.judged(), np.flatnonzero(draw.is_judged)
    sign = -1.0 if draw.metrics[0] == "disagreement" else 1.0
    name, values = knob(candidate, draw)
    totals = np.zeros((len(values), 2))
    for fit, held in splits(rows, seed):
        if not (varies(rows, fit) and varies(rows, held)):
            continue
        kept = np.setdiff1d(np.arange(len(draw.y)), at[held])
        part = Draw(
            draw.X[kept], draw.y[kept], draw.qid[kept], rows.X[held], rows.y[held], rows.qid[held], draw.metrics[:1]
        )
        for total, value in zip(totals, values, strict=True):
            model = fitted(candidate, part, seed, scale=False, **STEPS, **{name: value})
            (score,) = figures(model, part)
            total += (0.0, 0.0) if np.isnan(score) else (sign * score, 1.0)
    means = totals[:, 0] / np.maximum(totals[:, 1], 1.0)
    value = values[int(np.flatnonzero(means == means.max())[-1])]
    return fitted(candidate, draw, seed, scale=False, **{name: value}), float(value)


def varies(rows: Draw, part: NDArray[np.int64]) -> bool:
    y, qid = rows.y[part], rows.qid[part]
    return any(np.ptp(y[qid == q]) > 0 for q in np.unique(qid))


def divided(draw: Draw) -> Draw:
    """Columns over their deviation inside queries; text as it is."""
    if sparse.issparse(draw.X):
        return draw
    rows = draw.judged()
    squares = sum(len(X) * X.var(axis=0) for X in (rows.X[rows.qid == q] for q in np.unique(rows.qid)))
    deviation = np.sqrt(squares / len(rows.y))
    deviation[deviation <= 1e-7 * np.abs(rows.X).max(axis=0)] = 1.0
    return replace(draw, X=draw.X / deviation, X_test=draw.X_test / deviation)


def minmax(draw: Draw) -> Draw:
    return replace(
        draw,
        X=QueryScaler().fit_transform(draw.X, qid=draw.qid),
        X_test=QueryScaler().fit_transform(draw.X_test, qid=draw.qid_test),
    )


def capped(draw: Draw, rng: np.random.Generator) -> Draw:
    """Hide judgements of whole queries, or of rows, until a kernel over the judged rows is quick."""
    if draw.is_judged.sum() <= MOST_ROWS:
        return draw
    ids, sizes = np.unique(draw.qid[draw.is_judged], return_counts=True)
    if len(ids) == 1:
        kept = rng.permutation(np.flatnonzero(draw.is_judged))[:MOST_ROWS]
        return replace(draw, y=np.where(np.isin(np.arange(len(draw.y)), kept), draw.y, np.nan))
    order = rng.permutation(len(ids))
    kept = ids[order[np.cumsum(sizes[order]) <= MOST_ROWS]]
    return replace(draw, y=np.where(np.isin(draw.qid, kept), draw.y, np.nan))


def measure(name: str, share: float, estimator: str, repeats: int) -> dict[str, Any]:
    candidate = ESTIMATORS[estimator]
    found: dict[str, list[list[float]]] = {}
    knobs, began = [], time.perf_counter()
    for seed in range(repeats):
        draw = drawn(name, share, seed)
        if not candidate.takes_many_rows:
            draw = capped(draw, np.random.default_rng(seed))
        found.setdefault("default", []).append(figures(fitted(candidate, draw, seed), draw))
        model, value = tuned(candidate, divided(draw), seed)
        knobs.append(value)
        found.setdefault("tuned", []).append(figures(model, divided(draw)))
        if name == "MSLR raw":
            scaled = minmax(draw)
            found.setdefault("default_minmax", []).append(figures(fitted(candidate, scaled, seed), scaled))
            found.setdefault("tuned_minmax", []).append(figures(tuned(candidate, scaled, seed)[0], scaled))
    sign = -1.0 if draw.metrics[0] == "disagreement" else 1.0
    gain = sign * (np.array(found["tuned"]) - np.array(found["default"]))[:, 0]
    return {
        "set": name, "labels": share, "estimator": estimator, "tuned_by": draw.metrics[0],
        **{
            kind: dict(zip(draw.metrics, np.mean(rows, axis=0).round(4).tolist(), strict=True))
            for kind, rows in found.items()
        },
        "tuned_gain": [round(float(gain.mean()), 4), round(float(gain.std(ddof=1) / np.sqrt(len(gain))), 4)],
        "tuned_values": [float(f"{value:.3g}") for value in knobs], "judged_rows": int(draw.is_judged.sum()),
        "seeds": list(range(repeats)), "repeats": repeats, "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


class Nothing:
    """No labels at all: every row scores alike, and ties count by expectation."""

    def predict(self, X: Any) -> Floats:
        return np.zeros(X.shape[0])


def boosted(draw: Draw, seed: int) -> Any:
    """Fit the baseline LightGBM with default parameters, as a ranker of grades or a regressor on other scores."""
    import lightgbm

    rows = draw.judged()
    order = np.argsort(rows.qid, kind="stable")
    y, sizes = rows.y[order], np.unique(rows.qid, return_counts=True)[1]
    how = {"random_state": seed, "verbose": -1, "n_jobs": 1}
    if (y == np.round(y)).all() and y.min() >= 0 and y.max() <= 30 and sizes.max() <= 10_000:
        return lightgbm.LGBMRanker(**how).fit(rows.X[order], y, group=sizes)
    return lightgbm.LGBMRegressor(**how).fit(rows.X[order], y)


def baselines(name: str, share: float, repeats: int) -> Iterator[dict[str, Any]]:
    draws = [drawn(name, share, seed) for seed in range(repeats)]
    models = {
        "no labels": [Nothing() for _ in draws],
        "LightGBM": [boosted(draw, seed) for seed, draw in enumerate(draws)],
    }
    for what, fits in models.items():
        found = np.mean([figures(model, draw) for model, draw in zip(fits, draws, strict=True)], axis=0).round(4)
        figure = dict(zip(draws[0].metrics, found.tolist(), strict=True))
        yield {"set": name, "labels": share, "baseline": what, "default": figure, "repeats": repeats}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two repeats of the smallest settings: the shape only")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--estimators", nargs="*", choices=list(ESTIMATORS), default=list(ESTIMATORS))
    chosen = parser.parse_args()
    for name in chosen.sets:
        _, shares, repeats = SETS[name]
        for share in shares[:1] if chosen.quick else shares:
            for figure in baselines(name, share, 2 if chosen.quick else repeats):
                print(json.dumps({"bench": "defaults", **figure}), flush=True)
            for estimator in chosen.estimators:
                if name == "Reuters" and not ESTIMATORS[estimator].takes_text:
                    continue
                try:
                    figure = measure(name, share, estimator, 2 if chosen.quick else repeats)
                except InputError as fault:
                    print(f"{name}, {share:g}, {estimator}: {fault}", file=sys.stderr)
                    continue
                print(json.dumps({"bench": "defaults", **figure}), flush=True)


if __name__ == "__main__":
    main()
