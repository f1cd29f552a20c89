"""
Collaborative filtering: disagreement errors of the item means, RankRLS, ranking pursuit and Collaborative, and times.

3, 5 or 10 ratings of each test user are known and the others are to be ranked; means and kernel come from all other
users. The features of an item in RankRLS and pursuits (`fit_many`) are its ratings by 300 of those users; their
parameters are chosen on as many held-out users as are tested, as in docs/experiments/ranking-pursuit.md. Collaborative
chooses its parameters itself, on users that are not tested.

Run: CORANK_DATA=... python benchmarks/bench_collaborative.py [--quick] [--data movielens-1m] [--seeds 3] [--users 300]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

from corank.data.durable.text import open_text
from corank.metrics import wilcoxon
from corank.models.ratings import Collaborative, ItemMean
from experiments.datasets import jester, movielens
from experiments.datasets.catalog import dataset
from experiments.ranking_pursuit.methods import errors_of
from experiments.ranking_pursuit.run import try_methods
from experiments.ranking_pursuit.users import Users, UsersRepeat, sparse_ratings, squared_distances, starts_of

KNOWN = (3, 5, 10)
WIDTHS = tuple(2.0**power for power in range(-2, 9))
N_REFERENCE = 300


def movielens_100k() -> sparse.csr_array:
    text = open_text(dataset("movielens-100k").path("ml-100k.inter")).read().tobytes().decode()
    events = np.array([line.split("\t")[:3] for line in text.splitlines()[1:]], dtype=np.float64)
    user, item = events[:, :2].astype(np.int64).T - 1
    return sparse.csr_array((events[:, 2], (user, item)))


DATA: dict[str, Callable[[], sparse.csr_array]] = {
    "movielens-100k": movielens_100k,
    "movielens-1m": lambda: sparse_ratings(movielens.read_ratings()),
    "jester": lambda: sparse_ratings(jester.read_ratings()),
}


def problems(ratings: sparse.csr_array, users: np.ndarray, k: int, rng: np.random.Generator) -> Users:
    train, test, y, y_test = [], [], [], []
    for user in users:
        own = slice(ratings.indptr[user], ratings.indptr[user + 1])
        items, values = ratings.indices[own].astype(np.int64), ratings.data[own]
        order = rng.permutation(len(items))
        train.append(items[order[:k]])
        test.append(items[order[k:]])
        y.append(values[order[:k]])
        y_test.append(values[order[k:]])
    side = np.zeros(k * len(users), dtype=np.int64)
    return Users(
        np.concatenate(train), starts_of(train), np.concatenate(y), side, np.concatenate(test), starts_of(test),
        np.concatenate(y_test),
    )  # fmt: skip


def reference_distances(ratings: sparse.csr_array, users: np.ndarray) -> np.ndarray:
    """Squared distances of items by the ratings of these users, with their median for missing ratings."""
    table = np.full((len(users), ratings.shape[1]), np.nan)
    for row, user in zip(table, users, strict=True):
        own = slice(ratings.indptr[user], ratings.indptr[user + 1])
        row[ratings.indices[own]] = ratings.data[own]
    return squared_distances(np.where(np.isnan(table), np.nanmedian(table, axis=1)[:, None], table).T)


def plain_means(ratings: sparse.csr_array, users: Users) -> np.ndarray:
    """Item means in one step: Σ (r − the user's mean)/(n + 2)."""
    n = np.diff(ratings.indptr)
    gaps = ratings.data - np.repeat(np.add.reduceat(ratings.data, ratings.indptr[:-1]) / n, n)
    counts = np.bincount(ratings.indices, minlength=ratings.shape[1])
    return (np.bincount(ratings.indices, gaps, ratings.shape[1]) / (counts + 2.0))[users.test]


def trial(ratings: sparse.csr_array, k: int, n_users: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([seed, k])
    n = np.diff(ratings.indptr)
    drawn = rng.permutation(np.flatnonzero((n >= 30) & (n <= 300)))
    tested, held = problems(ratings, drawn[:n_users], k, rng), problems(ratings, drawn[n_users : 2 * n_users], k, rng)
    rest = np.setdiff1d(np.flatnonzero(n), drawn[:n_users])
    dense = np.setdiff1d(rest[n[rest] >= 60], drawn[: 2 * n_users])
    distances = reference_distances(ratings, rng.choice(dense, min(N_REFERENCE, len(dense)), replace=False))
    repeat = UsersRepeat(distances, (distances, distances), held, tested, ratings[rest])
    found = try_methods(repeat, ("RankRLS", "Ranking pursuit", "Item mean", "Collaborative"), WIDTHS)
    errors = {name: np.array(one["errors"], dtype=np.float64) for name, one in found.items()}
    errors["Item mean, one sweep"] = errors_of(plain_means(ratings[rest], tested)[:, None], tested)[0][:, 0]
    chosen = repeat.collaborative
    print(json.dumps({"known": k, "seed": seed, "alpha": chosen.alpha_, "power": chosen.power_}), flush=True)
    return errors


def bench_quality(name: str, n_users: int, seeds: int) -> None:
    ratings = DATA[name]()
    order = ("RankRLS", "Ranking pursuit", "Item mean, one sweep", "Item mean", "Collaborative")
    cells: dict[tuple[str, int], np.ndarray] = {}
    for k in KNOWN:
        trials = [trial(ratings, k, n_users, seed) for seed in range(seeds)]
        for method in order:
            cells[method, k] = np.concatenate([one[method] for one in trials])
    print(
        f"\n| {name}, {seeds} × {n_users} users | {' | '.join(f'{k} known' for k in KNOWN)} |\n|---|"
        + "---:|" * len(KNOWN)
    )
    for method in order:
        print(f"| {method} | " + " | ".join(f"{np.nanmean(cells[method, k]):.4f}" for k in KNOWN) + " |")
    for base in order[:-1]:
        texts = []
        for k in KNOWN:
            gaps = cells["Collaborative", k] - cells[base, k]
            gaps = gaps[~np.isnan(gaps)]
            texts.append(f"{gaps.mean():+.4f} (p={wilcoxon(gaps):.0e})")
        print(f"| Collaborative against {base} | " + " | ".join(texts) + " |")
    print(flush=True)


def bench_times(name: str, repeats: int) -> None:
    ratings = DATA[name]()
    fits, means, news = [], [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        model = Collaborative(random_state=0).fit(ratings)
        fits.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        ItemMean().fit(ratings)
        means.append(time.perf_counter() - begin)
        items = np.arange(10)
        model.predict_user(items, np.arange(10.0))
        begin = time.perf_counter()
        for _ in range(100):
            model.predict_user(items, np.arange(10.0))
        news.append((time.perf_counter() - begin) / 100)
    begin = time.perf_counter()
    for first in range(0, ratings.shape[0], 512):
        model.predict_users(ratings[first : first + 512])
    every = time.perf_counter() - begin
    figures = {
        "fit_seconds": statistics.median(fits), "item_mean_fit_seconds": statistics.median(means),
        "new_user_of_10_ratings_ms": 1e3 * statistics.median(news), "all_users_ms_each": 1e3 * every / ratings.shape[0],
    }  # fmt: skip
    for figure, value in figures.items():
        print(json.dumps({"data": name, "figure": figure, "value": round(value, 4)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", choices=list(DATA), default=None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--times-only", action="store_true")
    options = parser.parse_args()
    for name in [options.data] if options.data else ["movielens-100k"] if options.quick else list(DATA):
        if not options.times_only:
            bench_quality(name, *((50, 1) if options.quick else (options.users, options.seeds)))
        bench_times(name, 1 if options.quick else 3)


if __name__ == "__main__":
    main()
