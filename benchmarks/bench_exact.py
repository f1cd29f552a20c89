"""
Exact solvers: seconds to the optimum, and how it compares with stochastic steps and with explicit pairs.

Each line of output is one figure as JSON; `ratio` is the alternative's time over corank's, above 1 where corank is
faster. Figures are the medians of repeats after a small warm-up problem; `cpu_seconds` is processor time of all
threads, which other processes disturb less than the clock. The alternatives, in the same run: Ridge and LinearSVC of
scikit-learn on explicitly built differences of a subset (building them is not counted), and stochastic steps of CRR.
On a busy machine the threads of the linear algebra library wait for each other: set OPENBLAS_NUM_THREADS=1 there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from corank import CRR, RankingData
from corank.base.pairs import Moments
from corank.base.solvers import smooth_loss, squared
from corank.base.solvers.penalty import default_alpha

ALPHA, MIX, ROWS_PER_QUERY, COLUMNS = 1e-4, 0.5, 100, 46


def report(**figure: object) -> None:
    print(json.dumps({"bench": "exact", **figure}), flush=True)


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """Median seconds by the clock and of the processor, and the last result."""
    clock, processor = [], []
    for _ in range(repeats):
        began, began_cpu = time.perf_counter(), time.process_time()
        result = work()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - began_cpu)
    return statistics.median(clock), statistics.median(processor), result


def arrays(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows with five grades, ten columns of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, COLUMNS), dtype=np.float32)
    z = X[:, :10].sum(axis=1) / 3 + rng.standard_normal(n)
    return X, np.digitize(z, [-1, 0, 1, 2]).astype(float), np.arange(n) // ROWS_PER_QUERY


def differences(data: RankingData) -> tuple[Any, Any]:
    """Every pair of a small problem as a row, and the differences of its scores."""
    assert data.y is not None
    X, y = [], []
    for q in range(len(data.queries)):
        rows = data.order[data.starts[q] : data.scored_stops[q]]
        a, b = (rows[side] for side in np.triu_indices(len(rows), 1))
        kept = data.y[a] != data.y[b]
        X.append(data.X[b[kept]] - data.X[a[kept]])
        y.append(data.y[b[kept]] - data.y[a[kept]])
    return np.concatenate(X), np.concatenate(y)


def whole_problem(n: int, n_steps: int, repeats: int) -> None:
    X, y, qid = arrays(n)
    seconds, cpu, _ = timed(lambda: Moments.of(RankingData.of(X, y, qid)), repeats)
    report(figure="moments with indexing", rows=n, seconds=seconds, cpu_seconds=cpu)
    data = RankingData.of(X, y, qid)
    seconds, cpu, _ = timed(lambda: default_alpha(data), repeats)
    report(figure="default alpha", rows=n, seconds=seconds, cpu_seconds=cpu)

    def exact() -> Any:
        data = RankingData.of(X, y, qid)
        return squared(data, mix=MIX, alpha=ALPHA, fit_intercept=True)

    seconds, cpu, best = timed(exact, repeats)
    steps, steps_cpu, model = timed(
        lambda: CRR(mix=MIX, alpha=ALPHA, scale=False, solver="sgd", n_steps=n_steps, random_state=0).fit(
            X, y, qid=qid
        ),
        1,
    )
    reached = objective(data, model.coef_, float(model.intercept_))
    report(
        figure="CRR, squared loss, with indexing", rows=n, seconds=seconds, cpu_seconds=cpu, objective=best.objective,
        alternative=f"{n_steps} stochastic steps", ratio=steps / seconds, cpu_ratio=steps_cpu / cpu,
        their_objective=reached, lower=best.objective <= reached,
    )  # fmt: skip
    for alpha in (1e-2, 1e-4, 1e-6):
        seconds, cpu, found = timed(lambda: smooth_loss(data, "squared_hinge", alpha=alpha), 1)  # noqa: B023
        report(
            figure="squared hinge", rows=n, pairs=data.n_pairs, alpha=alpha, seconds=seconds, cpu_seconds=cpu,
            objective=found.objective, newton_steps=found.n_iter,
        )  # fmt: skip


def objective(data: RankingData, w: Any, b: float) -> float:
    """The objective of CRR with squared loss at any weights."""
    sums = Moments.of(data, plain=True)
    assert sums.plain is not None
    pair, row = np.append(w, -1.0), np.append(w, [-1.0, b])
    return float(
        (1 - MIX) * 0.5 * pair @ sums.pair @ pair / sums.pair_weight
        + MIX * 0.5 * row @ sums.plain @ row / sums.plain[-1, -1]
        + ALPHA / 2 * w @ w
    )


def one_large_query(n: int) -> None:
    X, y, _ = arrays(n)
    y = y + np.random.default_rng(1).random(n)
    data = RankingData.of(X, y)
    seconds, cpu, found = timed(lambda: smooth_loss(data, "squared_hinge", alpha=ALPHA), 1)
    report(
        figure="squared hinge, one query, all scores different", rows=n, pairs=data.n_pairs, seconds=seconds,
        cpu_seconds=cpu, newton_steps=found.n_iter,
    )  # fmt: skip


def explicit_pairs(n: int, repeats: int) -> None:
    data = RankingData.of(*arrays(n))
    D, gap = differences(data)
    ours, our_cpu, found = timed(lambda: squared(data, alpha=ALPHA), repeats)
    theirs, their_cpu, ridge = timed(lambda: Ridge(alpha=ALPHA * len(D), fit_intercept=False).fit(D, gap), repeats)
    report(
        figure="squared loss, subset", rows=n, pairs=len(D), seconds=ours, alternative="Ridge on explicit pairs",
        ratio=theirs / ours, cpu_ratio=their_cpu / our_cpu, apart=float(np.abs(ridge.coef_ - found.coef).max()),
    )  # fmt: skip
    side = np.where(np.arange(len(D)) % 2, 1.0, -1.0)
    ours, our_cpu, found = timed(lambda: smooth_loss(data, "squared_hinge", alpha=ALPHA), repeats)
    svm = LinearSVC(C=1 / (ALPHA * 2 * len(D)), fit_intercept=False, dual=False, tol=1e-6)
    theirs, their_cpu, _ = timed(lambda: svm.fit(side[:, None] * D, side), 1)
    report(
        figure="squared hinge, subset", rows=n, pairs=len(D), seconds=ours, alternative="LinearSVC on explicit pairs",
        ratio=theirs / ours, cpu_ratio=their_cpu / our_cpu, apart=float(np.abs(svm.coef_[0] - found.coef).max()),
    )  # fmt: skip
    assert data.y is not None
    unit = RankingData.of(data.X, data.y / data.y[data.order].max(), data.queries.codes)
    seconds, cpu, found = timed(lambda: smooth_loss(unit, "logistic", alpha=ALPHA), 1)
    report(
        figure="logistic loss, subset", rows=n, pairs=len(D), seconds=seconds, cpu_seconds=cpu,
        newton_steps=found.n_iter,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems, seconds in all")
    quick = parser.parse_args().quick
    small = RankingData.of(*arrays(1000))
    squared(small, mix=MIX, alpha=ALPHA, fit_intercept=True)
    smooth_loss(small, "squared_hinge", alpha=ALPHA)
    CRR(solver="sgd", n_steps=100).fit(small)
    whole_problem(20_000 if quick else 1_000_000, 100_000 if quick else 10_000_000, 1 if quick else 3)
    one_large_query(5_000 if quick else 100_000)
    explicit_pairs(2_000 if quick else 20_000, 1 if quick else 3)


if __name__ == "__main__":
    main()
