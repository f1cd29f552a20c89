"""
AutoRanker against the default of every single method, LightGBM and XGBoost with defaults and tuned, and no labels.

    python benchmarks/bench_auto.py --results auto.jsonl                # every setting that the file does not hold yet
    python benchmarks/bench_auto.py --results auto.jsonl --table        # the tables of what the file holds

A setting is a collection, a number of judged queries (5, 20, 100 or all) and a draw of training and test queries. Each
line of the file is one method in one setting: nDCG@10 of every test query and the processor time of ``fit``, on one
thread. Tuning draws 30 settings at random and takes the best mean nDCG@10 over three folds of the training queries.
With --speed, it prints processor seconds of ``fit`` for 1,000 rows, and microseconds of ``predict`` for 100 rows beside
LightGBM's in turn. Several processes may write to one file: ``--part 0/2`` and ``--part 1/2`` share the settings.
``--seconds 240`` stops after so much processor time; the next run continues.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import corank
from auto_collections import DEVELOPMENT, JUDGING, Rows, collection, split
from corank import LambdaRank, QueryKFold, QueryScaler, RankingPursuit, RankRLS, RankSVM
from corank.metrics import evaluate

Floats = NDArray[np.float64]
SIZES: tuple[int | None, ...] = (5, 20, 100, None)
N_TRIALS = 30
METRIC = "nDCG@10"


def ndcg(rows: Rows, scores: Floats) -> Floats:
    """Return nDCG@10 of each query, NaN where no row is relevant."""
    return np.asarray(evaluate(rows.y, scores, rows.qid, METRIC)[METRIC].values, dtype=np.float64)


def grouped(rows: Rows) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64]]:
    order = np.argsort(rows.qid, kind="stable")
    return rows.X[order], rows.y[order], np.unique(rows.qid, return_counts=True)[1], rows.qid[order]


def lightgbm_fit(train: Rows, seed: int, **settings: Any) -> Any:
    import lightgbm

    X, y, sizes, _ = grouped(train)
    model = lightgbm.LGBMRanker(verbose=-1, n_jobs=1, random_state=seed, **settings)
    return model.fit(X, y.astype(int), group=sizes)


def xgboost_fit(train: Rows, seed: int, **settings: Any) -> Any:
    import xgboost

    X, y, _, qid = grouped(train)
    return xgboost.XGBRanker(n_jobs=1, random_state=seed, **settings).fit(X, y, qid=qid)


def lightgbm_draw(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "learning_rate": float(np.exp(rng.uniform(np.log(0.02), np.log(0.3)))),
        "n_estimators": int(rng.choice([30, 60, 100, 200])), "num_leaves": int(rng.choice([3, 5, 8, 16, 31])),
        "min_child_samples": int(rng.choice([1, 5, 20, 50])), "reg_lambda": float(rng.choice([0.0, 1.0, 10.0])),
        "colsample_bytree": float(rng.choice([0.3, 0.6, 1.0])), "subsample": float(rng.choice([0.6, 1.0])),
        "subsample_freq": 1,
    }  # fmt: skip


def xgboost_draw(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "learning_rate": float(np.exp(rng.uniform(np.log(0.02), np.log(0.3)))),
        "n_estimators": int(rng.choice([30, 60, 100, 200])), "max_depth": int(rng.choice([1, 2, 3, 4, 6])),
        "min_child_weight": float(rng.choice([0.1, 1.0, 5.0, 20.0])), "reg_lambda": float(rng.choice([0.0, 1.0, 10.0])),
        "colsample_bytree": float(rng.choice([0.3, 0.6, 1.0])), "subsample": float(rng.choice([0.6, 1.0])),
    }  # fmt: skip


def tuned(fit: Callable[..., Any], draw: Callable[..., dict[str, Any]]) -> Callable[[Rows, int], Any]:
    """Return a fit with the best of `N_TRIALS` random settings."""

    def search(train: Rows, seed: int) -> Any:
        rng, folds = np.random.default_rng(seed), QueryKFold(3, shuffle=True, random_state=seed)
        parts = [(train.qid[a], train.qid[b]) for a, b in folds.split(train.X, qid=train.qid)]
        trials = [draw(rng) for _ in range(N_TRIALS)]
        means = []
        for trial in trials:
            found = []
            for inside, out in parts:
                part = train.queries(np.unique(out))
                found.append(ndcg(part, fit(train.queries(np.unique(inside)), seed, **trial).predict(part.X)))
            means.append(np.nanmean(np.concatenate(found)))
        return fit(train, seed, **trials[int(np.argmax(means))])

    return search


class NoLabels:
    """The mean of the columns known to order rows, or of all columns, scaled inside queries."""

    def __init__(self, columns: tuple[int, ...] | None) -> None:
        self.columns = columns

    def predict_rows(self, rows: Rows) -> Floats:
        X = rows.X if self.columns is None else rows.X[:, self.columns]
        return np.asarray(QueryScaler("zscore").fit_transform(X, qid=rows.qid).mean(axis=1))


class OnKnownOrder:
    """AutoRanker with the scores of `NoLabels` as prior."""

    def __init__(self, train: Rows, seed: int) -> None:
        self.order = NoLabels(train.known)
        self.model = corank.AutoRanker(random_state=seed)
        self.model.fit(train.X, train.y, qid=train.qid, prior=self.order.predict_rows(train))

    def predict_rows(self, rows: Rows) -> Floats:
        return self.model.predict(rows.X, prior=self.order.predict_rows(rows))


class RandomOrder:
    def predict(self, X: Floats) -> Floats:
        return np.zeros(len(X))  # ties count by expectation


def default(make: Callable[[int], Any]) -> Callable[[Rows, int], Any]:
    return lambda train, seed: make(seed).fit(train.X, train.y, qid=train.qid)


METHODS: dict[str, Callable[[Rows, int], Any]] = {
    "random": lambda train, seed: RandomOrder(),
    "no labels": lambda train, seed: NoLabels(train.known),
    "RankRLS": default(lambda seed: RankRLS()),
    "RankRLS gaussian": default(lambda seed: RankRLS(kernel="gaussian", random_state=seed)),
    "SPD": default(lambda seed: corank.SPD(random_state=seed)),
    "CRR": default(lambda seed: corank.CRR()),
    "LCRA": default(lambda seed: corank.LCRA(random_state=seed)),
    "RankSVM": default(lambda seed: RankSVM()),
    "RankingPursuit": default(lambda seed: RankingPursuit(random_state=seed)),
    "LambdaRank": default(lambda seed: LambdaRank(random_state=seed)),
    "LambdaRank trees": default(lambda seed: LambdaRank(scorer="trees", random_state=seed)),
    "LightGBM": lambda train, seed: lightgbm_fit(train, seed),
    "XGBoost": lambda train, seed: xgboost_fit(train, seed),
    "LightGBM tuned": tuned(lightgbm_fit, lightgbm_draw),
    "XGBoost tuned": tuned(xgboost_fit, xgboost_draw),
    "AutoRanker": default(lambda seed: corank.AutoRanker(random_state=seed)),
    "AutoRanker, prior": OnKnownOrder,
}
OURS = ("AutoRanker", "AutoRanker, prior")


def settings(draws: range, names: list[str], sizes: list[str]) -> list[tuple[str, int | None, int]]:
    """Return the settings, draws first, so that a file that is not complete holds whole draws."""
    chosen = [size for size in SIZES if ("all" if size is None else str(size)) in sizes]
    return [(name, size, draw) for draw in draws for size in chosen for name in names]


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["collection"], line["queries"], line["draw"], line["method"]


def read_results(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    if not path.exists():
        return {}
    return {key(line): line for line in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


def measure(name: str, size: int | None, draw: int, method: str) -> dict[str, Any] | None:
    train, test = split(collection(name), size, draw)
    n = len(np.unique(train.qid))
    if size is not None and n < size:
        return None
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[method](train, draw)
        seconds = time.process_time() - began
        scores = model.predict_rows(test) if isinstance(model, NoLabels | OnKnownOrder) else model.predict(test.X)
    values = ndcg(test, np.asarray(scores, dtype=np.float64))
    about = {"summary": model.summary()} if method == "AutoRanker" else {}
    return {
        "collection": name, "queries": "all" if size is None else size, "draw": draw, "method": method,
        "judged": n, "seconds": round(seconds, 3), "mean": round(float(np.nanmean(values)), 5),
        "values": [None if np.isnan(v) else round(float(v), 5) for v in values], **about,
    }  # fmt: skip


def run(
    path: Path, methods: list[str], chosen: list[tuple[str, int | None, int]], part: tuple[int, int], seconds: float
) -> None:
    for name, size, draw in chosen:
        label = "all" if size is None else size
        if int(hashlib.sha256(f"{name} {label} {draw}".encode()).hexdigest(), 16) % part[1] != part[0]:
            continue
        done = read_results(path)
        for method in methods:
            if (name, label, draw, method) in done:
                continue
            if time.process_time() > seconds:
                return
            line = measure(name, size, draw, method)
            if line is None:
                break
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def speed() -> None:
    """Print the times of AutoRanker and of LightGBM, measured in turn."""
    made = corank.make_ranking(50, 20, n_latent=5, features_per_view=23, random_state=0)
    rows = Rows(np.asarray(made.X), made.y, made.qid)
    for attempt in ("first", "second", "third"):
        began = time.process_time()
        model = METHODS["AutoRanker"](rows, 0)
        middle = time.process_time()
        booster = lightgbm_fit(rows, 0)
        ours, theirs = middle - began, time.process_time() - middle
        print(f"{attempt} fit of 1,000 rows x 46: AutoRanker {ours:.2f} s, LightGBM {theirs:.2f} s")
    models = {"AutoRanker": model, "LightGBM": booster}
    seconds: dict[str, list[float]] = defaultdict(list)
    for _ in range(1000):
        for name, item in models.items():
            started = time.perf_counter()
            item.predict(rows.X[:100])
            seconds[name].append(time.perf_counter() - started)
    for name, values in seconds.items():
        print(f"predict of 100 rows, {name}: median {1e6 * np.median(values):.0f} us, least {1e6 * min(values):.0f} us")


def tables(path: Path) -> None:
    """Print means by size, and of every setting AutoRanker's difference to the best other method."""
    lines = read_results(path)
    by_setting: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = defaultdict(dict)
    for line in lines.values():
        by_setting[line["collection"], line["queries"], line["draw"]][line["method"]] = line
    methods = [name for name in METHODS if any(name in found for found in by_setting.values())]
    whole = {at: found for at, found in by_setting.items() if all(name in found for name in methods)}
    print(f"{len(whole)} settings with all of {len(methods)} methods, of {len(by_setting)}")
    for title, names in (("development", DEVELOPMENT), ("judging", JUDGING), ("all", {**DEVELOPMENT, **JUDGING})):
        print(f"\n{title}: mean nDCG@10 by number of judged queries, and processor seconds of fit")
        print("| method | " + " | ".join(map(str, (5, 20, 100, "all", "mean", "seconds"))) + " |")
        for method in methods:
            cells = []
            for size in (5, 20, 100, "all"):
                found = [at for at in whole if at[0] in names and at[1] == size]
                cells.append(f"{mean_of(whole, found, method, 'mean'):.4f}")
            found = [at for at in whole if at[0] in names]
            cells.append(f"{mean_of(whole, found, method, 'mean'):.4f}")
            cells.append(f"{mean_of(whole, found, method, 'seconds'):.2f}")
            print(f"| {method} | " + " | ".join(cells) + " |")
    if "AutoRanker" in methods:
        differences(whole, [name for name in methods if name not in (*OURS, "no labels", "random")])


def mean_of(whole: dict[Any, Any], found: list[Any], method: str, what: str) -> float:
    """Average over draws, then over collections, so that each collection counts once."""
    by_name = defaultdict(list)
    for at in found:
        by_name[at[:2]].append(whole[at][method][what])
    return float(np.mean([np.mean(values) for values in by_name.values()])) if by_name else float("nan")


def differences(whole: dict[Any, Any], others: list[str]) -> None:
    """Print AutoRanker minus the best other mean of each collection and size, with a paired test over queries."""
    print("\n| collection | queries | draws | AutoRanker | best other | mean | difference | 95% | below by .005? |")
    for at in sorted({at[:2] for at in whole}, key=str):
        draws = [one for one in whole if one[:2] == at]
        means = {m: np.mean([whole[one][m]["mean"] for one in draws]) for m in [*others, "AutoRanker"]}
        best = max(others, key=means.__getitem__)
        gaps = np.concatenate([_values(whole[one], "AutoRanker") - _values(whole[one], best) for one in draws])
        gaps = gaps[~np.isnan(gaps)]
        half = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
        flag = "yes" if gaps.mean() + half < 0 and gaps.mean() < -0.005 else ""
        print(f"| {at[0]} | {at[1]} | {len(draws)} | {means['AutoRanker']:.4f} | {best} | {means[best]:.4f} "
              f"| {gaps.mean():+.4f} | ±{half:.4f} | {flag} |")  # fmt: skip


def _values(found: dict[str, Any], method: str) -> Floats:
    return np.array([np.nan if v is None else v for v in found[method]["values"]], dtype=np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("auto.jsonl"), help="file of one line per result")
    parser.add_argument("--speed", action="store_true", help="print times of AutoRanker and stop")
    parser.add_argument("--table", action="store_true", help="print tables of the file and stop")
    parser.add_argument("--draws", type=int, nargs=2, default=(0, 3), help="first draw, and one past the last")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--sets", nargs="*", default=[*DEVELOPMENT, *JUDGING])
    parser.add_argument("--sizes", nargs="*", default=["5", "20", "100", "all"], help="numbers of judged queries")
    parser.add_argument("--part", default="0/1", help="share of the settings, such as 0/2")
    parser.add_argument("--seconds", type=float, default=np.inf, help="processor time after which to stop")
    chosen = parser.parse_args()
    if chosen.speed:
        speed()
        return
    if not chosen.table:
        first, second = map(int, chosen.part.split("/"))
        wanted = settings(range(*chosen.draws), chosen.sets, chosen.sizes)
        run(chosen.results, chosen.methods, wanted, (first, second), chosen.seconds)
    tables(chosen.results)


if __name__ == "__main__":
    main()
