"""
Rankings of labels: Algorithm 1 against a NumPy loop, batch learning against a classifier on the expansion.

Every line is one figure; times are processor times, medians of repeats that alternate between corank and the
alternative. Run: python benchmarks/bench_label_ranking.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression

from corank.models.labels import CalibratedLabelRanker, LabelPreferences, OnlineLabelRanker, expand_constraints

N_LABELS, N_FEATURES = 20, 100


def report(figure: str, repeats: int, alternative: str, **works: tuple[Callable[[], object], float]) -> None:
    """Print seconds a unit of `corank` and of the alternative; each work says how many units it does."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work, _ in works.values():
        work()
    for _ in range(repeats):
        for name, (work, units) in works.items():
            begin = time.process_time()
            work()
            times[name].append((time.process_time() - begin) / units)
    ours, theirs = statistics.median(times["corank"]), statistics.median(times["other"])
    line = {
        "figure": figure, "corank_s": float(f"{ours:.3g}"), "per_s": float(f"{1 / ours:.3g}"),
        "alternative": alternative, "alternative_s": float(f"{theirs:.3g}"), "times_faster": round(theirs / ours, 1),
    }  # fmt: skip
    print(json.dumps(line), flush=True)


def stream(n: int, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    U = X @ rng.normal(size=(N_FEATURES, N_LABELS)) / np.sqrt(N_FEATURES) + noise * rng.normal(size=(n, N_LABELS))
    return X, np.where(U > 0, np.argsort(np.argsort(-U, axis=1), axis=1) + 1, 0)


def numpy_algorithm_1(X: np.ndarray, examples: list[np.ndarray]) -> np.ndarray:
    """Algorithm 1 with the share of violated constraints as its loss; all constraints of an example at once."""
    W = np.zeros((N_LABELS + 1, X.shape[1]))
    for x, pairs in zip(X, examples, strict=True):
        u = W @ x
        violated = pairs[u[pairs[:, 0]] <= u[pairs[:, 1]]]
        if len(violated):
            beta = np.zeros(N_LABELS + 1)
            np.add.at(beta, violated[:, 0], 1.0)
            np.subtract.at(beta, violated[:, 1], 1.0)
            beta[N_LABELS] = 0.0
            W += np.outer(beta / len(pairs), x)
    return W


def python_algorithm_1(X: np.ndarray, examples: list[list[tuple[int, int]]]) -> np.ndarray:
    """The same, as the paper prints it: a loop over constraints."""
    W = np.zeros((N_LABELS + 1, X.shape[1]))
    for x, pairs in zip(X, examples, strict=True):
        u = W @ x
        beta = np.zeros(N_LABELS + 1)
        for r, s in pairs:
            if u[r] <= u[s]:
                beta[r] += 1.0
                beta[s] -= 1.0
        beta[N_LABELS] = 0.0
        W += np.outer(beta / len(pairs), x)
    return W


def bench_online(quick: bool, repeats: int) -> None:
    n, few = (5000, 300) if quick else (50_000, 1000)
    X, top = stream(n)
    preferences = LabelPreferences.from_top(top)
    checks = int(preferences.counts().sum())
    examples, winners, losers = preferences[np.arange(few)].constraints()
    arrays = [np.column_stack([winners[examples == i], losers[examples == i]]) for i in range(few)]
    lists = [[(r, s) for r, s in pairs.tolist()] for pairs in arrays]
    some = sum(map(len, arrays))

    def ours(rows: int = n) -> np.ndarray:
        model = OnlineLabelRanker(fit_intercept=False, average=False)
        return model.partial_fit(X[:rows], preferences[np.arange(rows)] if rows < n else preferences).coef_

    np.testing.assert_allclose(ours(few), numpy_algorithm_1(X[:few], arrays)[:-1], atol=1e-9)
    np.testing.assert_allclose(ours(few), python_algorithm_1(X[:few], lists)[:-1], atol=1e-9)
    name = f"a constraint checked by Algorithm 1, top lists of {N_LABELS} labels, {N_FEATURES} features"
    works = {"corank": (ours, float(checks)), "other": (lambda: numpy_algorithm_1(X[:few], arrays), float(some))}
    report(name, repeats, "NumPy, all constraints of an example at once", **works)
    works["other"] = (lambda: python_algorithm_1(X[:few], lists), float(some))
    report(name, repeats, "NumPy dot products, a Python loop over constraints", **works)


def bench_batch(quick: bool, repeats: int) -> None:
    n = 200 if quick else 1000
    X, top = stream(n)
    preferences = LabelPreferences.from_top(top)
    m = int(preferences.counts().sum())
    alpha = 0.01

    def ours() -> np.ndarray:
        return CalibratedLabelRanker(alpha=alpha, scale=False, fit_intercept=False, tol=1e-6).fit(X, preferences).coef_

    def theirs() -> np.ndarray:
        Z, t, _ = expand_constraints(X, preferences)
        return LogisticRegression(C=1 / (alpha * m), fit_intercept=False, max_iter=1000).fit(Z, t).coef_

    works = {"corank": (ours, 1.0), "other": (theirs, 1.0)}
    report(f"logistic optimum, {n} examples, {m} constraints", repeats, "LogisticRegression on the expansion", **works)
    peaks = []
    for work in (ours, theirs):
        tracemalloc.start()
        work()
        peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
    line = {"figure": "peak memory of the same, MB", "corank": round(peaks[0], 1), "alternative": round(peaks[1], 1)}
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems, few repeats")
    quick = parser.parse_args().quick
    repeats = 3 if quick else 5
    bench_online(quick, repeats)
    bench_batch(quick, repeats)


if __name__ == "__main__":
    main()
