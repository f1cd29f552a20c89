"""
LambdaRank: one evaluation of λ, fits of trees, and their predictions, against LightGBM and XGBoost.

LightGBM's objective is isolated as the difference between its iterations under `lambdarank` and under `l2`, with trees
of one split on one column. Every line is one figure; processor times, medians of alternating repeats, except where
threads are compared.
Run: python benchmarks/bench_lambdarank.py [--quick] [--rows 200000]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import lightgbm
import numpy as np
import xgboost
from scipy import sparse

from corank.metrics import ndcg
from corank.models.lambdarank import Lambda, LambdaRank
from corank.models.lambdarank.terms import Lists

GRADES = [0.5, 0.3, 0.15, 0.03, 0.02]
N_FEATURES = 46
N_TREES, RATE, LEAVES = 100, 0.1, 31


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def say(figure: str, ours: float, alternative: str, theirs: float, **more: float) -> None:
    line = {"figure": figure, "corank_s": round(ours, 4), "alternative": alternative, "alternative_s": round(theirs, 4)}
    print(json.dumps({**line, "ratio": round(ours / theirs, 3), **more}), flush=True)


def passes(n_queries: int, n: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    y, s = rng.choice(5, n_queries * n, p=GRADES).astype(float), rng.normal(size=n_queries * n)
    lists = Lists(np.arange(len(y)), np.arange(n_queries + 1) * n, y, np.ones(len(y)))
    data = {"column": rng.normal(size=(len(y), 1)), "group": np.full(n_queries, n)}

    def booster(objective: str, **more: int) -> lightgbm.Booster:
        params = {"objective": objective, "num_leaves": 2, "max_bin": 15, "num_threads": 1, "verbosity": -1, **more}
        found = lightgbm.Booster(params, lightgbm.Dataset(data["column"], y, group=data["group"]))
        found.update()
        return found

    for lambdas, cut in (("ndcg@30", 30), ("ndcg", n)):
        ranking, plain = booster("lambdarank", lambdarank_truncation_level=cut), booster("l2")
        evaluated = Lambda.of(lambdas)
        evaluated.of_lists(lists, s)
        times = np.array(
            [
                [seconds(partial(evaluated.of_lists, lists, s)), seconds(ranking.update), seconds(plain.update)]
                for _ in range(repeats)
            ]
        )
        ours, theirs = np.median(times[:, 0]), np.median(times[:, 1]) - np.median(times[:, 2])
        say(f"pass {lambdas}, {n_queries} x {n}", ours, f"LightGBM lambdarank, truncation {cut}", theirs)
    for length in (50, 100, 200, 400):
        part = Lists(np.arange(len(y)), np.arange(0, len(y) + 1, length), y, np.ones(len(y)))
        evaluated = Lambda.of("ndcg")
        ours = statistics.median(seconds(partial(evaluated.of_lists, part, s)) for _ in range(repeats))
        line = {
            "figure": f"pass ndcg, lists of {length}",
            "ns_per_pair": round(ours / (len(y) * (length - 1) / 2) * 1e9, 3),
        }
        print(json.dumps(line), flush=True)


def made(n_rows: int, n_queries: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng, truth = np.random.default_rng(seed), np.random.default_rng(99)
    X = rng.normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    z = X @ (truth.normal(size=(N_FEATURES, 5)) / np.sqrt(N_FEATURES))
    u = np.sin(2.0 * z[:, 0]) + 1.5 * z[:, 1] * z[:, 2] + np.abs(z[:, 3]) + z[:, 4] + 0.5 * rng.normal(size=n_rows)
    y = np.digitize(u, [0.75, 1.6, 2.5, 3.4]).astype(np.float64)
    return X, y, np.repeat(np.arange(n_queries), n_rows // n_queries)


def threads(n_rows: int) -> None:
    """Fit with one and with two threads, by the clock: small data must not get slower."""
    X, y, qid = made(n_rows, n_rows // 100, 0)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for n_jobs, found in times.items():
            begin = time.perf_counter()
            LambdaRank(scorer="trees", n_steps=50, n_jobs=n_jobs, random_state=0).fit(X, y, qid=qid)
            found.append(time.perf_counter() - begin)
    one, two = (statistics.median(times[n_jobs]) for n_jobs in (1, 2))
    say(f"50 trees, {n_rows} rows, two threads, by the clock", two, "one thread", one)


def trees(n_rows: int, n_queries: int) -> None:
    X, y, qid = made(n_rows, n_queries, 0)
    X_test, y_test, qid_test = made(20_000, 200, 1)
    group = np.bincount(qid)
    params = {"num_leaves": LEAVES, "extra_trees": False}

    def ours(lambdas: str) -> LambdaRank:
        return LambdaRank(lambdas, "trees", n_steps=N_TREES, eta0=RATE, tree_params=params).fit(X, y, qid=qid)

    def theirs(objective: str) -> lightgbm.LGBMRanker:
        model = lightgbm.LGBMRanker(
            objective=objective, n_estimators=N_TREES, learning_rate=RATE, num_leaves=LEAVES, n_jobs=1, verbosity=-1
        )
        return model.fit(X, y, group=group)

    def xgb(objective: str) -> xgboost.XGBRanker:
        model = xgboost.XGBRanker(objective=objective, n_estimators=N_TREES, learning_rate=RATE, n_jobs=1)
        return model.fit(X, y, qid=qid)

    found = {}
    for name, work in {
        "LightGBM lambdarank": lambda: theirs("lambdarank"),
        "LightGBM rank_xendcg": lambda: theirs("rank_xendcg"),
        "XGBoost rank:pairwise": lambda: xgb("rank:pairwise"),
        "XGBoost rank:ndcg": lambda: xgb("rank:ndcg"),
        **{
            f"corank {lambdas}": lambda lambdas=lambdas: ours(lambdas)
            for lambdas in ("ndcg(near=0.01)", "ndcg", "ranknet")
        },
    }.items():
        begin = time.process_time()
        model = work()
        spent = time.process_time() - begin
        quality = ndcg(y_test, np.asarray(model.predict(X_test), dtype=float), qid_test, k=10)
        found[name] = spent
        rival = found["LightGBM lambdarank"]
        say(
            f"{N_TREES} trees, {n_rows} x {N_FEATURES}: {name}",
            spent,
            "LightGBM lambdarank",
            rival,
            ndcg10=round(quality, 4),
        )


def predictions(repeats: int) -> None:
    """Score 1, 100 and 10,000 rows by the same trees; each call gets other rows."""
    X, y, qid = made(20_000, 200, 0)
    params = {"num_leaves": LEAVES, "extra_trees": False}
    model = LambdaRank("ranknet", "trees", n_steps=N_TREES, tree_params=params).fit(X, y, qid=qid)
    booster = lightgbm.Booster(model_str=model.trees_.to_lightgbm())
    rows = made(100_000, 1000, 1)[0].astype(np.float64)
    for kind, convert in (("dense", np.ascontiguousarray), ("CSR", sparse.csr_matrix)):
        for n in (1, 100, 10_000):
            parts = [convert(rows[begin : begin + n]) for begin in range(0, min(len(rows), 200 * n), n)]
            work = {"ours": model.predict, "theirs": partial(booster.predict, num_threads=1)}
            assert (work["ours"](parts[0]) == work["theirs"](parts[0])).all()
            times: dict[str, list[float]] = {name: [] for name in work}
            for _ in range(repeats):
                for name, predict in work.items():
                    times[name].append(seconds(partial(list, map(predict, parts))) / len(parts))
            ours, theirs = (statistics.median(times[name]) * 1e6 for name in work)
            line = {"figure": f"predict {n} rows, {kind}, {N_TREES} trees", "corank_us": round(ours, 1)}
            theirs_us = {"alternative": "LightGBM Booster.predict", "alternative_us": round(theirs, 1)}
            print(json.dumps({**line, **theirs_us, "ratio": round(ours / theirs, 3)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    predictions(5 if options.quick else 15)
    passes(1_000 if options.quick else 10_000, 100, 3 if options.quick else 7)
    rows = min(options.rows, 20_000) if options.quick else options.rows
    threads(10_000)
    if not options.quick:
        threads(200_000)
    trees(rows, rows // 100)


if __name__ == "__main__":
    main()
