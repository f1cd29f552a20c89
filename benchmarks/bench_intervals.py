"""
How often 95 % intervals of a mean over few queries hold: sign flips, Student's t, and two kinds of bootstrap.

Samples of n queries are drawn from populations with a known mean: differences of a metric between two rankings, and
the metric of one ranking. Each line of output is one figure as JSON: the share of samples whose interval contains the
mean, and the median width. If `CORANK_DATA` names a folder with TREC DL 2019, differences of nDCG@10 and RR between two
runs are resampled, too: as they are, and with random signs, which is what two equally good runs look like.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from corank.metrics import evaluate_run, sign_flip

Floats = np.ndarray
SIZES = (3, 4, 5, 6, 8, 10, 20, 50, 100)


def percentiles(x: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Percentiles of bootstrap means."""
    low, high = np.quantile(x[rng.integers(len(x), size=(1000, len(x)))].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def studentised(x: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Bootstrap of the t statistic; samples of equal values have an infinite one."""
    drawn = x[rng.integers(len(x), size=(1000, len(x)))]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (drawn.mean(axis=1) - x.mean()) / stats.sem(drawn, axis=1)
    below, above = np.quantile(
        np.nan_to_num(t, nan=0.0, posinf=np.inf, neginf=-np.inf), [0.025, 0.975], method="nearest"
    )
    error = stats.sem(x)
    return (x.mean() - above * error, x.mean() - below * error) if error > 0.0 else (x.mean(), x.mean())


def student(x: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Student's t."""
    half = stats.t.ppf(0.975, len(x) - 1) * stats.sem(x)
    return x.mean() - half, x.mean() + half


METHODS: dict[str, Callable[[Floats, np.random.Generator], tuple[float, float]]] = {
    "sign flips": lambda x, rng: sign_flip(x, rng, n_resamples=999)[:2],
    "t": student,
    "studentised bootstrap": studentised,
    "bootstrap percentiles": percentiles,
}
Draw = Callable[[np.random.Generator, int], Floats]


def populations() -> dict[str, tuple[Draw, float]]:
    """Return a function that draws n values, and their mean, by name."""
    found: dict[str, tuple[Draw, float]] = {
        "normal": (lambda rng, n: rng.normal(size=n), 0.0),
        "60 % zeros": (lambda rng, n: rng.laplace(size=n) * (rng.random(n) < 0.4), 0.0),
        "P@1, equally good": (lambda rng, n: rng.integers(0, 2, n) - rng.integers(0, 2, n) + 0.0, 0.0),
        "+1 or -1": (lambda rng, n: rng.choice([-1.0, 1.0], n), 0.0),
        "metric of one ranking, beta(2, 1)": (lambda rng, n: rng.beta(2.0, 1.0, n), 2.0 / 3.0),
        "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
        "60 % zeros, else exponential": (lambda rng, n: rng.exponential(size=n) * (rng.random(n) < 0.4), 0.4),
    }
    folder = Path(os.environ.get("CORANK_DATA", "")) / "trec_dl2019"
    runs = sorted((folder / "runs").iterdir()) if os.environ.get("CORANK_DATA") and folder.is_dir() else []
    for metric in ("nDCG@10", "RR") if len(runs) > 1 else ():
        first, last = (evaluate_run(folder / "qrels.txt.gz", runs[at], metric)[metric].values for at in (0, -1))
        gaps = (last - first)[~np.isnan(last - first)]
        found[f"TREC DL 2019, {metric}"] = (lambda rng, n, gaps=gaps: rng.choice(gaps, n), float(gaps.mean()))
        found[f"TREC DL 2019, {metric}, random signs"] = (
            lambda rng, n, gaps=gaps: rng.choice(gaps, n) * rng.choice([-1.0, 1.0], n),
            0.0,
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--table", action="store_true", help="Print a Markdown table of coverage instead.")
    options = parser.parse_args()
    sizes = options.sizes
    if options.table:
        print("| population | interval |" + "".join(f" {n} |" for n in sizes) + "\n|---|---|" + "---:|" * len(sizes))
    for name, (draw, mean) in populations().items():
        for method, interval in METHODS.items():
            shares = []
            for n in sizes:
                rng = np.random.default_rng([0, n])
                ends = np.array([interval(draw(rng, n), rng) for _ in range(options.draws)])
                # means of equal values may differ from the truth by rounding
                holds = (ends[:, 0] <= mean + 1e-9) & (mean - 1e-9 <= ends[:, 1])
                shares.append(float(holds.mean()))
                if not options.table:
                    width = float(np.median(ends[:, 1] - ends[:, 0]))
                    line = {"bench": "intervals", "population": name, "method": method, "n": n, "coverage": shares[-1]}
                    print(json.dumps({**line, "width": round(width, 4) if np.isfinite(width) else None}), flush=True)
            if options.table:
                print(f"| {name} | {method} |" + "".join(f" {share:.3f} |" for share in shares), flush=True)


if __name__ == "__main__":
    main()
