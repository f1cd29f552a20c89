"""
Stochastic pairwise descent: microseconds per step, two threads, scaling, training from a store.

Each line of output is one figure as JSON. The named alternative is scikit-learn's SGDClassifier with the hinge loss on
explicitly built differences of rows, per update, in the same run (building the differences is not counted); `ratio` is
its time over corank's, above 1 where corank is faster. Steps are timed without indexing the problem, on one thread
unless said. Times of one thread are processor time, which other processes on the machine disturb less than the clock;
figures are the medians of repeats.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from corank import SPD, RankingData
from corank.base import PairSampler
from corank.base.pairs.losses import Loss
from corank.core.pairs.losses import HINGE
from corank.core.pairs.steps import PEGASOS, SGDPlan
from corank.core.rows.access import ScaledRows
from corank.data import write_store
from corank.data.columns import column_factors
from corank.data.queries import Queries
from corank.models.linear.descent import DescentProblem, Objective, ParallelDescent, columns_of_views

FIRST_FIT = """
import time
import numpy as np
from corank import SPD
X, y = np.random.default_rng(0).random((100, 5), dtype=np.float32), np.arange(100) % 3
began = time.perf_counter()
SPD("hinge", n_steps=1000).fit(X, y, qid=np.zeros(100))
print(time.perf_counter() - began)
"""

FROM_STORE = """
import re, sys
from corank import SPD
from corank.data import open_store
def memory(kind):
    with open("/proc/self/status") as status:
        return int(re.search(rf"{kind}:\\s+(\\d+) kB", status.read())[1]) / 1024
data = open_store(sys.argv[1]).data
SPD("hinge", 1e-4, scale=False, n_steps=1000).fit(data)
before = memory("RssAnon")
SPD("hinge", 1e-4, scale=False, n_steps=int(sys.argv[2])).fit(data)
print(memory("RssAnon"), memory("RssAnon") - before, memory("RssFile"))
"""


def report(**figure: object) -> None:
    print(json.dumps({"bench": "descent", **figure}), flush=True)


class Descent:
    """Steps of a hinge SPD on a problem that was indexed before."""

    def __init__(self, data: RankingData, alpha: float, n_runs: int = 1) -> None:
        d = data.n_features
        columns = columns_of_views(data.X, [np.arange(d)])
        self.task = DescentProblem.of(data, Objective(Loss.of("hinge"), alpha), columns, np.random.default_rng(0))
        plan = SGDPlan(HINGE, PEGASOS, alpha, 0.0, 1 / alpha, 0.0, 0.0, 1, 1, False, False, False)
        self.runs = ParallelDescent.start(plan, n_runs, np.zeros(d), np.zeros(1), np.random.default_rng(1))
        self.runs.advance(self.task, 1000)

    def seconds(self, n: int, clock: Callable[[], float]) -> float:
        began = clock()
        self.runs.advance(self.task, n)
        return clock() - began

    def microseconds(self, n: int, repeats: int) -> float:
        return statistics.median(self.seconds(n, time.thread_time) for _ in range(repeats)) / n * 1e6

    def updates(self) -> float:
        W, _ = self.runs.weights(self.task.columns)
        return float((self.task.sample.pairs @ W[0] < 1).mean())


def dense(n: int, d: int, rng: np.random.Generator) -> RankingData:
    X = rng.random((n, d), dtype=np.float32)
    y = np.digitize(X @ rng.standard_normal(d) + rng.standard_normal(n), [-1.0, 0.0, 1.0, 2.0]).astype(np.float64)
    return RankingData.of_checked(X, y, Queries.of(np.arange(n) // 100, n))


def csr(n: int, d: int, nnz: int, rng: np.random.Generator) -> RankingData:
    """Unit rows whose words follow a power law, scored by a hidden direction, in one query."""
    words = np.sort((d * rng.random((n, nnz)) ** 3).astype(np.int32), axis=1)
    values = rng.random(n * nnz, dtype=np.float32) * np.float32(np.sqrt(3 / nnz))
    X = sparse.csr_array((values, words.ravel(), np.arange(0, n * nnz + 1, nnz, dtype=np.int32)), shape=(n, d))
    X.sum_duplicates()
    y = np.digitize(X @ rng.standard_normal(d), [0.5]).astype(np.float64)
    return RankingData.of_checked(X, y, Queries.of(None, n))


def scaled(data: RankingData) -> RankingData:
    """The same rows, divided by the deviation of their columns as they are read."""
    return replace(data, X=ScaledRows(data.X, column_factors(data)))


def by_sklearn(data: RankingData, alpha: float, n: int, repeats: int) -> float:
    pairs = PairSampler.of(data).draw(n, np.random.default_rng(0))
    signs = np.where(np.arange(n) % 2, 1.0, -1.0).astype(np.float32)
    D = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
    D = D.multiply(signs[:, None]).tocsr() if sparse.issparse(D) else D * signs[:, None]
    times = []
    for _ in range(repeats):
        model = SGDClassifier(loss="hinge", alpha=alpha, max_iter=1, tol=None, fit_intercept=False, random_state=0)
        began = time.thread_time()
        model.fit(D, signs)
        times.append(time.thread_time() - began)
    return statistics.median(times) / n * 1e6


def steps(name: str, data: RankingData, alpha: float, n: int, warm: int, repeats: int) -> None:
    one = Descent(data, alpha)
    one.runs.advance(one.task, warm)
    ours, theirs = one.microseconds(n, repeats), by_sklearn(data, alpha, min(n, 200_000), repeats)
    report(
        figure=name, microseconds=round(ours, 3), updating_share=one.updates(),
        alternative="SGDClassifier on built differences", alternative_microseconds=round(theirs, 3),
        ratio=round(theirs / ours, 2),
    )  # fmt: skip


def threads(name: str, data: RankingData, alpha: float, n: int, repeats: int) -> None:
    one, two = Descent(data, alpha), Descent(data, alpha, n_runs=2)
    by_clock = [2 * one.seconds(n, time.perf_counter) / two.seconds(2 * n, time.perf_counter) for _ in range(repeats)]
    # what the clock would say if both processors were free: twice the work of one, at the cost of sharing caches
    by_processor = [
        4 * one.seconds(n, time.process_time) / two.seconds(2 * n, time.process_time) for _ in range(repeats)
    ]
    report(
        figure=f"steps per second, {name}", alternative="one thread", ratio=round(statistics.median(by_clock), 2),
        best_ratio=round(max(by_clock), 2), ratio_by_processor_time=round(statistics.median(by_processor), 2),
    )  # fmt: skip


def scaling(quick: bool, n: int, repeats: int) -> None:
    rng = np.random.default_rng(3)
    base = None
    for rows in (10**4, 10**5, 10**6, *(() if quick else (10**7,))):
        time_of = Descent(dense(rows, 8, rng), 1e-4).microseconds(n, repeats)
        base = base or time_of
        report(
            figure=f"{rows} x 8 float32", microseconds=round(time_of, 3), alternative="10000 rows",
            ratio=round(base / time_of, 2),
        )  # fmt: skip
    base = None
    for nnz in (25, 75, 225):
        time_of = Descent(csr(20_000, 47_000, nnz, rng), 10.0).microseconds(n, repeats)
        base = base or time_of / nnz
        report(
            figure=f"csr, {nnz} non-zeros a row", microseconds=round(time_of, 3), per_nonzero=time_of / nnz,
            alternative="25 non-zeros a row, per non-zero", ratio=round(base / (time_of / nnz), 2),
        )  # fmt: skip


def out_of_core(quick: bool) -> None:
    rows, columns, n_steps = (200_000, 100, 200_000) if quick else (1_000_000, 500, 200_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        rng = np.random.default_rng(5)
        mapped = np.lib.format.open_memmap(Path(folder) / "X.npy", "w+", np.float32, (rows, columns))
        for start in range(0, rows, 50_000):
            mapped[start : start + 50_000] = rng.random((50_000, columns), dtype=np.float32)
        y = rng.integers(0, 5, rows).astype(np.float64)
        write_store(path, mapped, y, np.arange(rows) // 100)
        (Path(folder) / "X.npy").unlink()
        out = subprocess.run(
            [sys.executable, "-c", FROM_STORE, str(path), str(n_steps)], check=True, capture_output=True, text=True
        ).stdout.split()
        size = rows * columns * 4 / 2**20
        anonymous, grown, cached = (float(part) for part in out)
        report(
            figure=f"{n_steps} steps from a store of {size:.0f} MB", anonymous_mb=anonymous,
            grown_while_training_mb=grown, page_cache_mapped_mb=cached, alternative="the store in memory",
            ratio=round(size / anonymous, 1),
        )  # fmt: skip


def whole_fit(data: RankingData, n: int) -> None:
    began = time.perf_counter()
    SPD("hinge", alpha=1e-4, n_steps=n, random_state=0).fit(data)
    report(figure=f"fit with {n} steps on {data.n_rows} indexed rows", seconds=round(time.perf_counter() - began, 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller problems and fewer repeats")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    n, repeats = (200_000, 3) if quick else (1_000_000, 7)
    fresh = [sys.executable, "-c", FIRST_FIT]
    first = [float(subprocess.run(fresh, check=True, capture_output=True).stdout) for _ in range(2)]
    report(
        figure="first fit of a process", seconds=round(first[1], 3), alternative="the process before it",
        ratio=round(first[0] / first[1], 2),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    letor = dense(100_000 if quick else 1_000_000, 46, rng)
    steps(f"hinge, {letor.n_rows} x 46 float32", letor, 1e-4, n, 0, repeats)
    steps(f"hinge, {letor.n_rows} x 46 float32, scaled", scaled(letor), 1e-2, n, 0, repeats)
    whole_fit(letor, n)
    threads(f"two runs, {letor.n_rows} x 46 float32", letor, 1e-4, n, repeats)
    text = csr(100_000, 47_000, 75, rng)
    steps("hinge, csr 100000 x 47000, 75 non-zeros, every step updates", text, 10.0, n, 0, repeats)
    steps("hinge, csr 100000 x 47000, 75 non-zeros, near convergence", text, 1e-6, n, 2 * n, repeats)
    steps("hinge, csr 100000 x 47000, 75 non-zeros, every step updates, scaled", scaled(text), 1e4, n, 0, repeats)
    threads("two runs, csr", text, 10.0, n, repeats)
    scaling(quick, n, repeats)
    out_of_core(quick)


if __name__ == "__main__":
    main()
