"""
PreferenceGP: processor time and held-out accuracy against BoTorch's PairwiseGP (Laplace), one answer, all questions.

Data are draws of a Gaussian process over 5 columns, with noisy answers. BoTorch runs in a separate process,
so it may be installed for another Python; its failures are reported. Both sides run on one thread.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_gp.py [--botorch PYTHON] [--repeats 3]
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

from corank.gp import PreferenceGP, gains, suggest_pairs
from corank.kernels import GaussianKernel

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
        "learnt": PreferenceGP(scale=False),
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
    model = PreferenceGP(n_basis=200, scale=False, random_state=0)
    start = time.process_time()
    model.fit(X, pairs=pairs)
    took = time.process_time() - start
    i, j = rng.integers(0, len(X), (2, 100_000))
    scores = model.predict(X)
    share = float(np.mean((scores[i] > scores[j]) == (f[i] > f[j])))
    tell(bench="gp basis", items=len(X), pairs=len(pairs), basis=200, seconds=took, accuracy=share)


def tell(**figures: object) -> None:
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in figures.items()}
    print(json.dumps(rounded), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--botorch", help="Python interpreter with BoTorch; by default BoTorch is left out.")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for n, m in SIZES:
        compare(n, m, options.repeats, options.botorch)
    one_answer(options.repeats)
    many_items()


if __name__ == "__main__":
    sys.exit(main())
