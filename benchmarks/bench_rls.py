"""
Least-squares ranking: what a path, a leave-query-out, a basis and a million rows cost.

Each line of output is one figure as JSON, medians of repeats after a warm-up; `ratio` is the alternative's time over
corank's unless its name says otherwise. `cpu_seconds` is processor time of all threads, which other processes disturb
less than the clock; on a busy machine set OPENBLAS_NUM_THREADS=1. The alternatives, in the same run: one
scipy.linalg.eigh, scikit-learn's KernelRidge and Ridge (which learn no order), and fitting again for every query.

RLScore, the only other RankRLS, no longer installs from its package index. Built by hand it needed, for query-wise
RankRLS on two cores: Gaussian kernel 2.8 s at n = 2,000, 40 s and 4.5 GB (22 n × n arrays) at n = 5,000; 0.15 s with
200 basis rows; 0.02 to 0.04 s linear.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from corank import CoRankRLS, RankingData, RankRLS
from corank.base.kernels import GaussianKernel

GAMMA, ROWS_PER_QUERY = 0.05, 40
KERNEL = GaussianKernel(GAMMA)
ALPHAS = np.logspace(-8, 2, 30)


def report(**figure: object) -> None:
    print(json.dumps({"bench": "rls", **figure}), flush=True)


def timed(work: Callable[[], Any], repeats: int = 1) -> tuple[float, float, Any]:
    """Median seconds by the clock and of the processor, and the last result."""
    clock, processor = [], []
    for _ in range(repeats):
        began, began_cpu = time.perf_counter(), time.process_time()
        result = work()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - began_cpu)
    return statistics.median(clock), statistics.median(processor), result


def peak_bytes(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def problem(n: int, columns: int = 20, scored: float = 1.0, seed: int = 0) -> RankingData:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns))
    y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]) + rng.standard_normal(n), [0, 1, 2]).astype(float)
    y[rng.random(n) >= scored] = np.nan
    return RankingData.of(X, y, np.arange(n) // ROWS_PER_QUERY)


def path_and_leave_out(n: int, repeats: int) -> None:
    data = problem(n)
    gram = np.asfortranarray(KERNEL(data.X))
    eigh, eigh_cpu, _ = timed(lambda: linalg.eigh(gram), repeats)
    model = RankRLS(kernel=KERNEL, alphas=ALPHAS, metric="nDCG@10")
    seconds, cpu, _ = timed(lambda: model.fit(data), repeats)
    report(
        figure="30 alphas, leave-query-out nDCG of each", rows=n, seconds=seconds, cpu_seconds=cpu,
        times_one_eigh=seconds / eigh, cpu_times_one_eigh=cpu / eigh_cpu, alternative="scipy.linalg.eigh",
        arrays_of_n_by_n=peak_bytes(lambda: model.fit(data)) / (8 * n * n),
    )  # fmt: skip


def brute_force(n: int, n_alphas: int) -> None:
    data = problem(n)
    X, y, qid = data.X, np.asarray(data.y), data.queries.codes
    alphas = ALPHAS[:: len(ALPHAS) // n_alphas][:n_alphas]

    def refit() -> None:
        for alpha in alphas:
            for q in range(len(data.queries)):
                kept = qid != q
                RankRLS(alpha, KERNEL, scale=False).fit(X[kept], y[kept], qid=qid[kept]).predict(X[~kept])

    seconds, cpu, _ = timed(lambda: RankRLS(kernel=KERNEL, alphas=alphas, scale=False).fit(data))
    slow, slow_cpu, _ = timed(refit)
    report(
        figure="leave-query-out of a path", rows=n, alphas=len(alphas), seconds=seconds, ratio=slow / seconds,
        cpu_ratio=slow_cpu / cpu, alternative="fit again for every query and alpha",
    )  # fmt: skip


def dense(n: int, repeats: int) -> None:
    data = problem(n)
    ridge, ridge_cpu, _ = timed(lambda: KernelRidge(alpha=1.0, kernel="rbf", gamma=GAMMA).fit(data.X, data.y), repeats)
    model = RankRLS(1e-3, KERNEL)
    seconds, cpu, _ = timed(lambda: model.fit(data), repeats)
    report(
        figure="dense, one alpha", rows=n, seconds=seconds, cpu_seconds=cpu, ratio=ridge / seconds,
        cpu_ratio=ridge_cpu / cpu, alternative="sklearn KernelRidge",
        arrays_of_n_by_n=peak_bytes(lambda: model.fit(data)) / (8 * n * n),
    )  # fmt: skip


def sparse(sizes: list[int], r: int, unscored: bool) -> None:
    clock, processor = [], []
    for n in sizes:
        data = problem(n, scored=0.01 if unscored else 1.0)
        if unscored:
            model: Any = CoRankRLS([KERNEL, KERNEL], n_basis=r // 2, coupling=0.1, random_state=0)
        else:
            model = RankRLS(1e-3, KERNEL, n_basis=r, random_state=0)
        seconds, cpu, _ = timed(lambda model=model, data=data: model.fit(data))
        clock.append(seconds)
        processor.append(cpu)
        report(
            figure="co-regularised, 99 % unscored" if unscored else "sparse", rows=n, basis_rows=r, seconds=seconds,
            cpu_seconds=cpu, arrays_of_n_by_r=peak_bytes(lambda m=model, d=data: m.fit(d)) / (8 * n * r),
        )  # fmt: skip
    slope, cpu_slope = (float(np.polyfit(np.log(sizes), np.log(times), 1)[0]) for times in (clock, processor))
    report(figure="log-log slope of time over rows", unscored=unscored, slope=slope, cpu_slope=cpu_slope)


def primal(n: int, repeats: int) -> None:
    data = problem(n, columns=46)
    seconds, cpu, _ = timed(lambda: RankRLS(1e-3).fit(data), repeats)
    ridge, ridge_cpu, _ = timed(lambda: Ridge(1.0, solver="cholesky", copy_X=False).fit(data.X, data.y), repeats)
    report(
        figure="primal", rows=n, columns=46, seconds=seconds, cpu_seconds=cpu, ratio=ridge / seconds,
        cpu_ratio=ridge_cpu / cpu, alternative="sklearn Ridge",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes: the shape, not the figures")
    quick = parser.parse_args().quick
    RankRLS(kernel=KERNEL, alphas=[0.1, 1.0], metric="nDCG@10").fit(problem(200))
    RankRLS(kernel=KERNEL, n_basis=20).fit(problem(200))
    path_and_leave_out(1000 if quick else 4000, 3 if quick else 1)
    brute_force(400, 2 if quick else 5)
    for n in (1000,) if quick else (2000, 5000):
        dense(n, 3)
    primal(100_000 if quick else 1_000_000, 5)
    sizes = [2_000, 20_000] if quick else [10_000, 100_000, 1_000_000]
    sparse(sizes, 100 if quick else 500, unscored=False)
    sparse(sizes, 100 if quick else 500, unscored=True)


if __name__ == "__main__":
    main()
