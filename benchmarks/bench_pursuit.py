"""
Pursuits: a step against one product over the dictionary, pre-fitting against basic, and the memory
that many rows take.

Every line is one figure; times are medians of repeats that alternate between corank and the alternative.
Run: python benchmarks/bench_pursuit.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from corank.base.kernels import GaussianKernel
from corank.base.pairs import Laplacian
from corank.models.pursuit import RankingPursuit
from corank.models.pursuit.coupled import CoupledViews
from corank.models.pursuit.dictionary import Dictionary, InnerProduct, Target
from corank.models.pursuit.path import Path, steps

N_STEPS = 30


def alternate(repeats: int, *works: Callable[[], object]) -> list[float]:
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, spent in zip(works, times, strict=True):
            begin = time.perf_counter()
            work()
            spent.append(time.perf_counter() - begin)
    return [statistics.median(spent) for spent in times]


def report(figure: str, value: float, **more: object) -> None:
    print(json.dumps({"figure": figure, "value": round(value, 4), **more}), flush=True)


def bench_steps(n: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    K, s = rng.normal(size=(n, n)), rng.normal(size=n)
    inner = InnerProduct(Laplacian.one_query(n), 0.0, np.ones(n))
    target = Target(np.arange(n), inner, inner.apply(s), float(inner.squares(s[:, None])[0]))
    dictionary = Dictionary(K)
    squares = dictionary.squares(inner)

    def walk(fitting: str) -> Callable[[], object]:
        return lambda: Path.follow(steps(dictionary, target, squares, fitting), N_STEPS, 0.0, lambda i, c: False)

    products, basic, back, pre = alternate(
        repeats, lambda: [K.T @ s for _ in range(N_STEPS)], walk("basic"), walk("back"), walk("pre")
    )
    for fitting, spent in (("basic", basic), ("back", back), ("pre", pre)):
        report(f"{fitting} step / K.T @ v", spent / products, n=n, N=n, want="<= 1.5" if fitting == "basic" else "<= 6")
    report("pre-fitting / basic", pre / basic, n=n, N=n, want="<= 4")


def bench_joint(N: int, repeats: int) -> None:
    rng = np.random.default_rng(1)
    scored = [Dictionary(rng.normal(size=(N, N))) for _ in range(2)]
    unscored = [Dictionary(rng.normal(size=(N, N))) for _ in range(2)]
    L = Laplacian.one_query(N)
    coupled = CoupledViews(scored, unscored, InnerProduct(L, 0.0, np.ones(N)), L, 0.1)
    v = [rng.normal(size=N)] * 2
    coupled.search(coupled.correlate(v), "joint")
    times = []
    for _ in range(5 * repeats):
        begin = time.perf_counter()
        coupled.search(coupled.correlate(v), "joint")
        times.append(1000 * (time.perf_counter() - begin))
    products, grid = alternate(
        repeats,
        lambda: [one.correlate(v[0]) for one in scored],
        lambda: np.max(np.outer(v[0], v[0]) / (1.0 - coupled._cross**2)),
    )
    report(
        "joint step of two views, ms",
        statistics.median(times),
        best=round(min(times), 2),
        N=N,
        want="<= 25, two threads",
    )
    report(
        "joint step / its products + one numpy evaluation of the grid",
        statistics.median(times) / 1000 / (products + grid),
        N=N,
    )


def bench_large(n: int, N: int) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 20)).astype(np.float32)
    y, qid = X[:, 0] + rng.normal(size=n), np.repeat(np.arange(n // 100), 100)
    model = RankingPursuit(20, GaussianKernel(0.02), fitting="pre", dictionary=N, random_state=0)
    begin = time.perf_counter()
    model.fit(X, y, qid=qid)
    spent = time.perf_counter() - begin
    tracemalloc.start()
    model.fit(X, y, qid=qid)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    report("20 pre-fitted terms, s", spent, n=n, N=N)
    report("peak memory / n x N float32", peak / (4 * n * N), n=n, N=N, GB=round(peak / 1e9, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller problems, fewer repeats")
    quick = parser.parse_args().quick
    repeats = 3 if quick else 7
    bench_steps(1500 if quick else 4000, repeats)
    bench_joint(1000 if quick else 2000, repeats)
    bench_large(10_000 if quick else 100_000, 2000)


if __name__ == "__main__":
    main()
