"""
PreferenceGP: processor time and held-out accuracy against BoTorch's PairwiseGP (Laplace), one answer, all questions.

Data are draws of a Gaussian process over 5 columns, with noisy answers. BoTorch runs in a separate process,
so it may be installed for another Python; its failures are reported. Both sides run on one thread.

The parts "widths" and "real-widths" compare kernels where some columns say nothing ("real-widths" needs CORANK_DATA),
and "sizes" times 1,000 and 5,000 rows.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_gp.py [--botorch PYTHON] [--repeats 3] [--only widths]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from corank.base.kernels import GaussianKernel
from corank.models.gp import PreferenceGP, gains, suggest_pairs

SIZES = ((100, 500), (300, 500), (300, 2000))
GAMMA, SIGMA = 0.1, 0.1

RIVAL = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
data = np.load(sys.argv[1])
X, pairs, test = torch.tensor(data["X"]), torch.tensor(data["pairs"]), data["test"]
for learnt in (False, True):
    times, share = [], None
    try:
        for repeat in range(int(sys.argv[2]) + 1):
            start = time.process_time()
            model = PairwiseGP(X, pairs)
            if learnt:
                fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
            mean = model.eval().posterior(X).mean.detach().numpy().ravel()
            times.append(time.process_time() - start)
        share = float(np.mean(mean[test[:, 0]] > mean[test[:, 1]]))
        print(json.dumps({"learnt": learnt, "seconds": float(np.median(times[1:])), "accuracy": share}))
    except Exception as error:
        print(json.dumps({"learnt": learnt, "broke": type(error).__name__}))
"""


def simulated(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    f = np.linalg.cholesky(GaussianKernel(GAMMA)(X) + 1e-8 * np.eye(n)) @ rng.normal(size=n)

    def answers(count: int, sigma: float) -> np.ndarray:
        pairs = rng.integers(0, n, (count, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        gap = f[pairs[:, 0]] - f[pairs[:, 1]] + np.sqrt(2.0) * sigma * rng.normal(size=len(pairs))
        return np.where(gap[:, None] > 0, pairs, pairs[:, ::-1])

    return X, answers(m, SIGMA), answers(5000, 0.0)


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median processor time, after one run that compiles."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def compare(n: int, m: int, repeats: int, botorch: str | None) -> None:
    X, pairs, test = simulated(n, m, 0)
    models = {
        "fixed": PreferenceGP(GaussianKernel(GAMMA), SIGMA, learn=False, scale=False),
        "learnt": PreferenceGP("gaussian", scale=False),
        "learnt, one width per column": PreferenceGP("ard", scale=False),
    }
    for name, model in models.items():
        took = seconds(lambda model=model: model.fit(X, pairs=pairs), repeats)
        scores = model.predict(X)
        share = float(np.mean(scores[test[:, 0]] > scores[test[:, 1]]))
        tell(bench="gp", of="corank", how=name, items=n, pairs=m, seconds=took, accuracy=share)
    if botorch is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.npz"
        np.savez(file, X=X, pairs=pairs, test=test)
        lines = subprocess.run(
            [botorch, "-c", RIVAL, str(file), str(repeats)], capture_output=True, text=True, check=False, timeout=900
        ).stdout.splitlines()
    for line in lines:
        tell(bench="gp", of="botorch", items=n, pairs=m, **json.loads(line))


def one_answer(repeats: int) -> None:
    """One answer, and the value of all 127,765 questions, among as many items as Boston housing has."""
    X, pairs, _ = simulated(506, 200, 1)
    for k in (None, 3):
        model = PreferenceGP(GaussianKernel(GAMMA), SIGMA, learn=False, scale=False, graph_neighbors=k)
        model.fit(X, pairs=pairs)
        posterior = model.posterior()
        for by in ("entropy", "bald", "uncertainty"):
            took = seconds(lambda posterior=posterior, by=by: gains(posterior, 2.0 * SIGMA**2, by), repeats)
            tell(bench="questions", by=by, pairs=127_765, graph=k, seconds=took)
        times = []
        for _ in range(repeats + 1):
            asked = suggest_pairs(model)
            start = time.process_time()
            model.partial_fit(pairs=asked)
            times.append(time.process_time() - start)
        tell(bench="partial_fit", items=506, answers=200, graph=k, seconds=statistics.median(times[1:]))


def many_items() -> None:
    """20,000 items through 200 basis rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    f = np.sin(X[:, 0]) + 0.5 * X[:, 1]
    pairs = rng.integers(0, len(X), (20_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = np.where((f[pairs[:, 0]] > f[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    model = PreferenceGP("gaussian", n_basis=200, scale=False, random_state=0)
    start = time.process_time()
    model.fit(X, pairs=pairs)
    took = time.process_time() - start
    i, j = rng.integers(0, len(X), (2, 100_000))
    scores = model.predict(X)
    share = float(np.mean((scores[i] > scores[j]) == (f[i] > f[j])))
    tell(bench="gp basis", items=len(X), pairs=len(pairs), basis=200, seconds=took, accuracy=share)


def widths(draws: int) -> None:
    """Accuracy on pairs of new items with one width, one per column, and the average, if some columns say nothing."""
    problems = {
        "one of 8 columns": (8, lambda X: np.sin(1.5 * X[:, 0])),
        "one of 2 columns": (2, lambda X: np.sin(1.5 * X[:, 0])),
        "two of 5 columns": (5, lambda X: np.sin(X[:, 0]) + 0.7 * X[:, 1]),
        "all 3 columns": (3, lambda X: np.sin(X + np.arange(3)).sum(axis=1)),
        "all 6 columns, linear": (6, lambda X: X @ np.random.default_rng(len(X)).normal(size=6)),
        "no column": (4, lambda X: np.random.default_rng(len(X)).normal(size=len(X))),
    }
    for name, (columns, function) in problems.items():
        for m in (15, 40, 120):
            found: dict[str, list[tuple[float, float]]] = {}
            for draw in range(draws):
                rng = np.random.default_rng([draw, m, columns])
                X = rng.normal(size=(120, columns))
                f = function(X)
                learn_from_pairs(X, f / f.std(), m, 0.3, rng, found)
            tell_widths(name, m, found)


def real_widths(draws: int) -> None:
    """The same on real sets: 120 random rows of each, half of them are compared, without noise."""
    from experiments.gp_ordinal.run import read_set

    for name in ("bostonhousing_ord", "abalone", "cement_strength", "winequality-red", "auto_riskness"):
        X, y = read_set(name)
        for m in (15, 40, 120):
            found: dict[str, list[tuple[float, float]]] = {}
            for draw in range(draws):
                rng = np.random.default_rng([draw, m])
                rows = rng.permutation(len(y))[:120]
                learn_from_pairs(X[rows][:, X[rows].std(axis=0) > 0], y[rows], m, 0.0, rng, found)
            tell_widths(name, m, found)


def learn_from_pairs(X: np.ndarray, f: np.ndarray, m: int, sigma: float, rng: np.random.Generator, found: dict) -> None:
    """Compare random pairs of the first half of the items; judge on pairs of the other half."""

    def answers(first: int, last: int, count: int, noise: float) -> np.ndarray:
        pairs = rng.integers(first, last, (20 * count, 2))
        gap = f[pairs[:, 0]] - f[pairs[:, 1]]
        pairs, gap = pairs[gap != 0.0][:count], gap[gap != 0.0][:count]
        gap = gap + np.sqrt(2.0) * noise * rng.normal(size=len(gap))
        return np.where(gap[:, None] > 0, pairs, pairs[:, ::-1])

    half = len(X) // 2
    pairs, test = answers(0, half, m, sigma), answers(half, len(X), 2000, 0.0)
    for kernel in ("gaussian", "ard", "auto"):
        p = PreferenceGP(kernel, random_state=0).fit(X[:half], pairs=pairs).predict_pair(X, test)
        log_loss = float(-np.log(np.clip(p, 1e-6, 1.0)).mean())
        found.setdefault(kernel, []).append((float(np.mean(p > 0.5)), log_loss))


def tell_widths(name: str, m: int, found: dict) -> None:
    for kernel, values in found.items():
        accuracy, log_loss = np.mean(values, axis=0).tolist()
        tell(bench="widths", set=name, answers=m, kernel=kernel, accuracy=accuracy, log_loss=log_loss)


def sizes() -> None:
    """Fits by default of 1,000 and 5,000 rows, and of 1,000 rows without basis rows."""
    from corank.models.gp import OrdinalGP

    for n, n_basis in ((1000, "auto"), (1000, None), (5000, "auto")):
        rng = np.random.default_rng(n)
        X = rng.normal(size=(2 * n, 5))
        f = np.sin(1.5 * X[:, 0]) + 0.7 * X[:, 1] + 0.3 * X[:, 2] ** 2
        pairs, test = rng.integers(0, n, (2 * n, 2)), rng.integers(n, 2 * n, (20_000, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        gap = f[pairs[:, 0]] - f[pairs[:, 1]] + 0.3 * rng.normal(size=len(pairs))
        pairs = np.where(gap[:, None] > 0, pairs, pairs[:, ::-1])
        grades = np.digitize(f[:n] + 0.2 * rng.normal(size=n), np.quantile(f, [0.2, 0.4, 0.6, 0.8]))
        for model, given in (
            (PreferenceGP(n_basis=n_basis, random_state=0), {"pairs": pairs}),
            (OrdinalGP(n_basis=n_basis, random_state=0), {"y": grades}),
        ):
            start = time.process_time()
            model.fit(X[:n], **given)
            took, scores = time.process_time() - start, model.predict(X)
            share = float(np.mean((scores[test[:, 0]] > scores[test[:, 1]]) == (f[test[:, 0]] > f[test[:, 1]])))
            tell(bench="sizes", of=type(model).__name__, rows=n, n_basis=n_basis, seconds=took, accuracy=share)


def tell(**figures: object) -> None:
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in figures.items()}
    print(json.dumps(rounded), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--botorch", help="Python interpreter with BoTorch; by default BoTorch is left out.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["widths", "real-widths", "sizes"], help="One part, without the others.")
    options = parser.parse_args()
    parts = {
        "widths": lambda: widths(options.repeats),
        "real-widths": lambda: real_widths(options.repeats),
        "sizes": sizes,
    }
    if options.only:
        parts[options.only]()
        return
    for n, m in SIZES:
        compare(n, m, options.repeats, options.botorch)
    one_answer(options.repeats)
    many_items()
    for part in parts.values():
        part()


if __name__ == "__main__":
    sys.exit(main())
