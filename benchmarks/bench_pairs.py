"""
Benchmarks of pairs: sampling and a hinge step against numpy, Laplacians against numpy's reduceat.

Every line is one figure; times are medians of repeats that alternate between corank and the alternative.
Run: python benchmarks/bench_pairs.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

from corank.base.pairs import Laplacian
from corank.base.pairs.sampling import PairSampler
from corank.core.jit import jit
from corank.core.random import seed_state
from corank.core.rows.access import add_difference, as_core_rows, dot_difference, prefetch_row
from corank.data.ranking import RankingData

N_GRADES = 5
N_FEATURES = 46
N_COLUMNS = 47_000
NON_ZEROS = 75
AHEAD = np.uint64(6)


def report(figure: str, repeats: int, alternative: str, **works: tuple[Callable[[], object], int]) -> None:
    """Print nanoseconds per unit of `corank` and of the alternative; each work says how many units it does."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work, _ in works.values():
        work()
    for _ in range(repeats):
        for name, (work, units) in works.items():
            begin = time.perf_counter()
            work()
            times[name].append((time.perf_counter() - begin) / units * 1e9)
    ours, theirs = statistics.median(times["corank"]), statistics.median(times["other"])
    line = {
        "figure": figure, "corank_ns": round(ours, 2), "best_ns": round(min(times["corank"]), 2),
        "alternative": alternative, "alternative_ns": round(theirs, 2), "ratio": round(ours / theirs, 4),
    }  # fmt: skip
    print(json.dumps(line), flush=True)


def problem(n_rows: int, n_queries: int) -> RankingData:
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_GRADES, n_rows).astype(float)
    return RankingData.of(np.zeros((n_rows, 1), dtype=np.float32), y, rng.integers(0, n_queries, n_rows))


class NumpyPairs:
    """The same exact laws with numpy alone: a search over cumulated weights for each draw."""

    def __init__(self, data: RankingData, weights: np.ndarray | None = None) -> None:
        self.data, self.rng = data, np.random.default_rng(1)
        query = np.repeat(np.arange(len(data.queries)), np.diff(data.query_grades))
        self.lower, self.start, self.stop = data.starts[query], data.grade_starts, data.grade_stops
        mass = np.append(0, np.cumsum(np.ones(data.n_rows) if weights is None else weights[data.order]))
        self.mass = mass
        below = mass[self.start] - mass[self.lower]
        self.groups = np.cumsum((mass[self.stop] - mass[self.start]) * below)

    def draw(self, n: int) -> np.ndarray:
        g = np.searchsorted(self.groups, self.rng.random(n) * self.groups[-1], side="right")
        lower, start, stop = self.lower[g], self.start[g], self.stop[g]
        winner = start + (self.rng.random(n) * (stop - start)).astype(np.int64)
        loser = lower + (self.rng.random(n) * (start - lower)).astype(np.int64)
        return np.stack([self.data.order[winner], self.data.order[loser]], axis=1)

    def draw_weighted(self, n: int) -> np.ndarray:
        g = np.searchsorted(self.groups, self.rng.random(n) * self.groups[-1], side="right")
        lower, start, stop = self.mass[self.lower[g]], self.mass[self.start[g]], self.mass[self.stop[g]]
        winner = np.searchsorted(self.mass, start + self.rng.random(n) * (stop - start), side="right") - 1
        loser = np.searchsorted(self.mass, lower + self.rng.random(n) * (start - lower), side="right") - 1
        return np.stack([self.data.order[winner], self.data.order[loser]], axis=1)


def bench_drawing(quick: bool, repeats: int) -> None:
    n_rows, n_queries, draws = (10**5, 10**3, 10**6) if quick else (10**6, 10**4, 10**7)
    data = problem(n_rows, n_queries)
    state = seed_state(np.random.default_rng(0))
    plain = NumpyPairs(data)
    few = draws // 10
    for law in (("pairs", "pairs"), ("equal", "pairs"), ("rows", "pairs"), ("pairs", "rows")):
        sampler = PairSampler.of(data, *law)
        name = f"draw a pair, query_weight {law[0]}, draw {law[1]}, {n_rows} rows, {n_queries} queries"
        works = {"corank": (lambda s=sampler: s.draw(draws, state), draws), "other": (lambda: plain.draw(few), few)}
        report(name, repeats, "numpy searchsorted, all pairs alike", **works)
    w = np.random.default_rng(2).random(n_rows)
    weighted, sampler = NumpyPairs(data, w), PairSampler.of(data.weighted(w))
    works = {"corank": (lambda: sampler.draw(few, state), few), "other": (lambda: weighted.draw_weighted(few), few)}
    report(f"draw a pair, weighted rows, {n_rows} rows", repeats, "numpy searchsorted", **works)
    by_difference = PairSampler.of(data, differences=True)
    works["corank"] = (lambda: by_difference.draw(few, state), few)
    report(f"draw a pair, weight |y_a - y_b|, {n_rows} rows", repeats, "numpy searchsorted, row weights", **works)


@jit
def hinge_steps(rows, pairs, w, rate):
    n = np.uint64(len(pairs))
    for i in range(n):
        if i + AHEAD < n:
            prefetch_row(rows, pairs[i + AHEAD, 0])
            prefetch_row(rows, pairs[i + AHEAD, 1])
        a, b = pairs[i, 0], pairs[i, 1]
        if dot_difference(rows, a, b, w) < 1.0:
            add_difference(rows, a, b, rate, w)


def numpy_steps(X: np.ndarray, pairs: np.ndarray, w: np.ndarray, rate: float) -> None:
    for a, b in pairs:
        x = X[a] - X[b]
        if x @ w < 1.0:
            w += rate * x


def numpy_sparse_steps(X: sparse.csr_array, pairs: np.ndarray, w: np.ndarray, rate: float) -> None:
    for a, b in pairs:
        at, bt = slice(X.indptr[a], X.indptr[a + 1]), slice(X.indptr[b], X.indptr[b + 1])
        if X.data[at] @ w[X.indices[at]] - X.data[bt] @ w[X.indices[bt]] < 1.0:
            w[X.indices[at]] += rate * X.data[at]
            w[X.indices[bt]] -= rate * X.data[bt]


def bench_steps(quick: bool, repeats: int) -> None:
    n_rows, n_steps, few = (10**5, 10**5, 2000) if quick else (10**6, 10**6, 5000)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    pairs = rng.integers(0, n_rows, (n_steps, 2)).astype(np.uint64)
    rate = 1e-9  # so small that no margin reaches 1: every step updates
    works = {
        "corank": (lambda: hinge_steps(as_core_rows(X), pairs, np.zeros(N_FEATURES), rate), n_steps),
        "other": (lambda: numpy_steps(X, pairs[:few].astype(np.int64), np.zeros(N_FEATURES), rate), few),
    }
    report(f"hinge step on random pairs, dense float32 {n_rows} x {N_FEATURES}", repeats, "numpy loop", **works)
    n_sparse = n_rows // 4
    columns = np.sort((N_COLUMNS * rng.random((n_sparse, NON_ZEROS)) ** 3).astype(np.int32), axis=1)
    values = rng.random(columns.size, dtype=np.float32)
    S = sparse.csr_array(
        (values, columns.ravel(), np.arange(n_sparse + 1, dtype=np.int64) * NON_ZEROS), shape=(n_sparse, N_COLUMNS)
    )
    some = rng.integers(0, n_sparse, (n_steps // 4, 2)).astype(np.uint64)
    works = {
        "corank": (lambda: hinge_steps(as_core_rows(S), some, np.zeros(N_COLUMNS), rate), len(some)),
        "other": (lambda: numpy_sparse_steps(S, some[:few].astype(np.int64), np.zeros(N_COLUMNS), rate), few),
    }
    report(
        f"hinge step on random pairs, CSR float32 {n_sparse} x {NON_ZEROS} non-zeros", repeats, "numpy loop", **works
    )


def bench_laplacian(quick: bool, repeats: int) -> None:
    n_rows = 10**5 if quick else 10**6
    qid = np.sort(np.random.default_rng(4).integers(0, n_rows // 100, n_rows))
    data = RankingData.of(np.zeros((n_rows, 1)), np.zeros(n_rows), qid)
    L, begins, sizes = Laplacian.per_query(data), data.starts[:-1], data.queries.sizes
    for width in (1, 16):
        V = np.random.default_rng(5).standard_normal((n_rows, width))
        out = np.empty_like(V)

        def with_reduceat(V: np.ndarray = V) -> np.ndarray:
            means = np.add.reduceat(V, begins, axis=0) / sizes[:, None]
            return (V - np.repeat(means, sizes, axis=0)) * np.repeat(sizes, sizes)[:, None]

        works = {"corank": (lambda V=V, out=out: L.apply(V, out=out), V.size), "other": (with_reduceat, V.size)}
        report(f"L @ V per entry, {n_rows} x {width}", repeats, "numpy reduceat", **works)
        U = V[:, 0].copy() if width == 1 else V
        works = {
            "corank": (lambda U=U: L.quad(U), V.size),
            "other": (lambda V=V, f=with_reduceat: V.T @ f(), V.size),
        }
        report(f"V' L V per entry, {n_rows} x {width}", repeats, "numpy reduceat", **works)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems, few repeats")
    quick = parser.parse_args().quick
    repeats = 3 if quick else 7
    bench_drawing(quick, repeats)
    bench_steps(quick, repeats)
    bench_laplacian(quick, repeats)


if __name__ == "__main__":
    main()
