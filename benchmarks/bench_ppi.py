"""
corank's corrected estimates beside ppi-python, on the same queries and grades.

    CORANK_DATA=... python benchmarks/bench_ppi.py [--draws 100]      # needs: pip install ppi-python

19 runs of TREC DL 2019, 43 queries; n of them have human grades, all have the grades of one of four LLM judges. For
each pair of systems, ppi-python estimates the mean difference of nDCG@10 from its labelled and unlabelled queries
with its own tuning of the power λ (PPI++), and corank estimates all systems together. The truth is the human mean
over the 43 queries. Printed are the error of a difference (root mean square over the 171 pairs, mean over draws), the
coverage and the width of 95 % intervals, and the processor time of one draw. ppi-python's intervals are meant for a
larger population of queries, of which the 43 are a sample, so that its coverage of their mean is expected above .95;
`corank, like these` has the same meaning.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data.io.trec import read_qrels, read_run
from corank.metrics.cheap.estimate import corrected
from corank.metrics.cheap.values import GradedRuns
from corank.metrics.conventions import find_convention

Floats = NDArray[np.float64]
SIZES = (8, 15, 25)


def ppi_python(H: Floats, C: Floats, s: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Return ppi-python's estimates and limits of the difference of every pair of systems."""
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    rest = np.setdiff1d(np.arange(H.shape[1]), s)
    rows = []
    for a, b in zip(*np.triu_indices(len(H), 1), strict=True):
        human, cheap, others = H[a, s] - H[b, s], C[a, s] - C[b, s], C[a, rest] - C[b, rest]
        low, high = ppi_mean_ci(human, cheap, others, alpha=0.05)
        rows.append((*ppi_mean_pointestimate(human, cheap, others), *low, *high))
    return tuple(np.array(rows, dtype=float).T)  # type: ignore[return-value]


def corank(H: Floats, C: Floats, s: NDArray[np.int64], *, these: bool) -> tuple[Floats, Floats, Floats]:
    """Return corank's estimates and limits of the difference of every pair of systems."""
    a, b = np.triu_indices(len(H), 1)
    return corrected(H[:, s], C, s, these=these).intervals(a, b)[:3]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=100)
    draws = parser.parse_args().draws
    folder = Path(os.environ["CORANK_DATA"]) / "trec_dl2019"
    paths = sorted((folder / "judges").glob("*.gz"))
    runs = {path.name.split(".")[0]: read_run(path) for path in sorted((folder / "runs").glob("*.gz"))}
    graded = GradedRuns.of(runs, [read_qrels(folder / "qrels.txt.gz"), *map(read_qrels, paths)])
    rules = find_convention("trec_eval")
    H, *judges = (graded.values(grades, ("nDCG@10",), rules)["nDCG@10"] for grades in graded.grades)
    a, b = np.triu_indices(len(H), 1)
    truth = H.mean(axis=1)[a] - H.mean(axis=1)[b]
    methods = {
        "ppi-python": ppi_python,
        "corank, like these": lambda *data: corank(*data, these=False),
        "corank, these": lambda *data: corank(*data, these=True),
    }
    print("| judge | gold queries | method | error | coverage | width | ms of a draw |")
    print("|---|---:|---|---:|---:|---:|---:|")
    means = defaultdict(list)
    for path, C in zip(paths, judges, strict=True):
        for n in SIZES:
            rng, rows = np.random.default_rng(n), defaultdict(list)
            for _ in range(draws):
                s = rng.permutation(H.shape[1])[:n]
                for name, method in methods.items():
                    start = time.process_time()
                    value, low, high = method(H, C, s)
                    seconds = time.process_time() - start
                    rows[name].append((
                        np.sqrt(np.mean((value - truth) ** 2)), np.mean((low <= truth) & (truth <= high)),
                        np.mean(high - low), seconds * 1000,
                    ))  # fmt: skip
            for name, row in rows.items():
                figures = np.mean(row, axis=0)
                means[name].append(figures)
                _print(path.name.split(".")[0][:44], n, name, figures)
    for name, figures in means.items():
        _print("mean", "", name, np.mean(figures, axis=0))


def _print(judge: str, n: object, name: str, figures: Floats) -> None:
    error, coverage, width, milliseconds = figures
    print(f"| {judge} | {n} | {name} | {error:.4f} | {coverage:.3f} | {width:.3f} | {milliseconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
