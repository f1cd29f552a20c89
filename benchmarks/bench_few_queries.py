"""
Default rankers after 5, 10, 20, 50 and all judged queries, on the collections of `experiments.datasets.rankings`.

A draw puts half of the queries (at most 150) into the test part and learns from the first n of the other half (at most
200); sets with fewer queries skip the size. Every line of `--results` is one method on one draw: the means of nDCG@10,
AP and the disagreement error over the test queries, and processor seconds. A run continues where the file ends, so that
baselines are computed once. Without `--run`, the script prints tables from the file: means, and differences from a
baseline with 95 % intervals over draws (t) and over collections.

    python benchmarks/bench_few_queries.py --run --sets development --results few.jsonl
    python benchmarks/bench_few_queries.py --results few.jsonl --against XGBoost
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from scipy import stats

from corank import SPD, LambdaRank, QueryKFold, RankSVM
from corank.metrics import evaluate
from experiments.datasets.rankings import DEVELOPMENT, JUDGING, Rankings, read_rankings

SIZES = (5, 10, 20, 50, 0)
"""Numbers of judged queries; 0 means all."""
METRICS = ("nDCG@10", "AP", "disagreement")
MOST_TEST, MOST_TRAIN = 150, 200
N_TRIALS, N_FOLDS = 30, 3


def drawn(name: str, n: int, draw: int) -> tuple[Rankings, Rankings] | None:
    """Return training and test rows; None if the set has fewer queries."""
    rows = read_rankings(name)
    queries = np.random.default_rng([draw, 29]).permutation(np.unique(rows.qid))
    half = len(queries) // 2
    pool = queries[half:][:MOST_TRAIN]
    if n > 0.8 * len(pool):
        return None
    return rows.some(pool[: n or len(pool)]), rows.some(queries[:half][:MOST_TEST])


class Constant:
    """No judgement at all: all scores are equal."""

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


def boosted(rows: Rankings, seed: int, **settings: Any) -> Any:
    """Fit LightGBM's ranker; defaults unless given."""
    order = np.argsort(rows.qid, kind="stable")
    sizes = np.unique(rows.qid, return_counts=True)[1]
    how = {"random_state": seed, "verbose": -1, "n_jobs": 1, **settings}
    return lightgbm.LGBMRanker(**how).fit(rows.X[order], rows.y[order].astype(int), group=sizes)


def tuned(rows: Rankings, seed: int) -> Any:
    """Fit LightGBM with the best of 30 random settings by nDCG@10 in three folds of whole queries."""
    rng = np.random.default_rng(seed)
    trials = [
        {
            "num_leaves": int(rng.integers(3, 64)),
            "learning_rate": float(10 ** rng.uniform(-2, -0.5)),
            "n_estimators": int(rng.integers(30, 301)),
            "min_child_samples": round(10 ** rng.uniform(0.3, 2)),
            "colsample_bytree": float(rng.uniform(0.3, 1)),
            "subsample": float(rng.uniform(0.5, 1)),
            "subsample_freq": 1,
            "reg_lambda": float(10 ** rng.uniform(-2, 1.5)),
            "lambdarank_truncation_level": int(rng.choice([10, 30, 60])),
        }
        for _ in range(N_TRIALS)
    ]
    totals = np.zeros(len(trials))
    for fit, held in QueryKFold(N_FOLDS, shuffle=True, random_state=seed).split(rows.X, qid=rows.qid):
        train, test = (Rankings(rows.X[part], rows.y[part], rows.qid[part]) for part in (fit, held))
        for i, trial in enumerate(trials):
            scores = boosted(train, seed, **trial).predict(test.X)
            totals[i] += evaluate(test.y, scores, test.qid, "nDCG@10")["nDCG@10"].mean
    return boosted(rows, seed, **trials[int(np.argmax(totals))])


def own(make: Callable[..., Any], **settings: Any) -> Callable[[Rankings, int], Any]:
    """Fit one of corank's rankers."""
    return lambda rows, seed: make(random_state=seed, **settings).fit(rows.X, rows.y, qid=rows.qid)


def times_alpha(factor: float) -> Callable[[Rankings, int], Any]:
    """Fit SPD with a multiple of its own choice of alpha."""

    def fit(rows: Rankings, seed: int) -> Any:
        chosen = SPD().fit(rows.X, rows.y, qid=rows.qid).alpha_
        return SPD(alpha=factor * chosen).fit(rows.X, rows.y, qid=rows.qid)

    return fit


def before(rows: Rankings, seed: int) -> Any:
    """Fit trees with the defaults of version 0.1: the smallest leaf was 20, at most 5 % of the rows."""
    smallest = min(20.0, 0.05 * len(rows.y))
    params = {"min_sum_hessian_in_leaf": smallest, "lambda_l2": 1.0, "feature_fraction": 0.5, "extra_trees": False}
    return own(LambdaRank, scorer="trees", tree_params=params)(rows, seed)


METHODS: dict[str, Callable[[Rankings, int], Any]] = {
    "no labels": lambda rows, seed: Constant(),
    "XGBoost": lambda rows, seed: xgboost.XGBRanker(n_jobs=1, random_state=seed).fit(
        rows.X, rows.y.astype(int), qid=rows.qid
    ),
    "LightGBM": boosted,
    "LightGBM tuned": tuned,
    "trees": own(LambdaRank, scorer="trees"),
    "trees before": before,
    "SPD": own(SPD),
    "SPD squared hinge": own(SPD, loss="squared_hinge"),
    "SPD logistic": own(SPD, loss="logistic"),
    "SPD squared": own(SPD, loss="squared"),
    "SPD alpha / 3": times_alpha(1 / 3),
    "SPD alpha x 3": times_alpha(3.0),
    "RankSVM": own(RankSVM),
    "LambdaRank linear": own(LambdaRank),
}


def measure(method: Callable[[Rankings, int], Any], train: Rankings, test: Rankings, draw: int) -> dict[str, float]:
    """Fit and evaluate."""
    begin = time.process_time()
    model = method(train, draw)
    spent = time.process_time() - begin
    found = evaluate(test.y, np.asarray(model.predict(test.X), dtype=float), test.qid, METRICS)
    return {**{name: round(float(found[name].mean), 5) for name in METRICS}, "seconds": round(spent, 3)}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(
    path: Path, sets: list[str], methods: dict[str, Callable[[Rankings, int], Any]], sizes: Any, draws: int
) -> None:
    """Append what the file lacks."""
    done = {(line["set"], line["n"], line["draw"], line["method"]) for line in lines(path)}
    with path.open("a") as file:
        for draw in range(draws):
            for name in sets:
                for n in sizes:
                    todo = [method for method in methods if (name, n, draw, method) not in done]
                    parts = drawn(name, n, draw) if todo else None
                    for method in todo if parts else ():
                        found = measure(methods[method], *parts, draw)
                        key = {"set": name, "n": n, "draw": draw, "method": method}
                        file.write(json.dumps({**key, **found}) + "\n")
                        file.flush()


def interval(values: Any) -> float:
    """Half the width of the 95 % interval of a mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def table(found: list[dict[str, Any]], methods: list[str], against: str, metric: str) -> None:
    """Print a row for every set and size: means, and differences from the baseline."""
    values = {(line["set"], line["n"], line["draw"], line["method"]): line[metric] for line in found}
    print(f"\n{metric}; differences from {against}\n")
    print("| set | judged queries | draws | " + " | ".join(methods) + " |")
    print("|---|---:|---:|" + "---:|" * len(methods))
    names = [name for name in (*DEVELOPMENT, *JUDGING) if any(key[0] == name for key in values)]
    gaps: dict[tuple[str, int], list[float]] = {}
    for name in names:
        for n in SIZES:
            draws = [d for d in range(50) if all((name, n, d, m) in values for m in methods)]
            if len(draws) < 2:
                continue
            base = np.array([values[name, n, d, against] for d in draws])
            cells = []
            for method in methods:
                here = np.array([values[name, n, d, method] for d in draws])
                gap = here - base
                gaps.setdefault((method, n), []).append(float(gap.mean()))
                cells.append(
                    f"{here.mean():.3f}" + ("" if method == against else f" ({gap.mean():+.3f} ± {interval(gap):.3f})")
                )
            print(f"| {name} | {n or 'all'} | {len(draws)} | " + " | ".join(cells) + " |")
    for n in (*SIZES, None):
        cells = []
        for method in methods:
            here = [g for (m, size), each in gaps.items() if m == method and n in (size, None) for g in each]
            cells.append(f"{np.mean(here):+.4f} ± {interval(here):.4f}" if len(here) > 1 else "")
        label = "every size" if n is None else f"{n or 'all'}"
        print(f"| **mean of sets** | {label} | | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="compute what the file lacks")
    parser.add_argument("--results", type=Path, default=Path("few_queries.jsonl"))
    parser.add_argument("--sets", nargs="*", default=["development", "judging"])
    parser.add_argument("--methods", nargs="*", default=[name for name in METHODS if name != "LightGBM tuned"])
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--against", default="XGBoost")
    parser.add_argument("--metric", choices=METRICS, default="nDCG@10")
    chosen = parser.parse_args()
    groups = {"development": list(DEVELOPMENT), "judging": list(JUDGING)}
    sets = [name for given in chosen.sets for name in groups.get(given, [given])]
    if chosen.run:
        run(chosen.results, sets, {name: METHODS[name] for name in chosen.methods}, chosen.sizes, chosen.draws)
    found = [line for line in lines(chosen.results) if line["set"] in sets]
    table(found, list(dict.fromkeys((chosen.against, *chosen.methods))), chosen.against, chosen.metric)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
