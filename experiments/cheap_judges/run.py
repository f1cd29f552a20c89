"""
Errors and coverage of corrected estimates: 19 runs of TREC DL 2019, four LLM judges, 8, 15 or 25 queries with human
grades.

The population is the 43 queries: truth is the human mean over all of them, and all have cheap grades. Gold queries
are drawn 500 times. Baselines: human only, cheap only, PPI (λ = 1), and PPI++ with λ by difference and normal
intervals.
"""

from __future__ import annotations

import os
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.data.io.trec import read_qrels, read_run
from corank.errors import InputError
from corank.metrics.cheap.documents import document_weights, estimate_documents, sample_documents
from corank.metrics.cheap.estimate import corrected
from corank.metrics.cheap.values import GradedRuns
from corank.metrics.conventions import find_convention
from corank.tables import Cell, ReportTable
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]
METRICS = ("nDCG@10", "AP", "P@10", "RR")
SIZES = (8, 15, 25)
BLOCK = 50
ESTIMATES = ("human only", "cheap only", "PPI", "PPI++", "corrected")


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 500 draws by default; quick runs make 50.
    Returns: errors, coverage, and the errors of documents instead of queries.
    """
    n_blocks = (options.repeats or (50 if options.quick else 500)) // BLOCK or 1
    judges = _data()[1]
    options.expect(n_blocks * len(judges) * (len(SIZES) * len(METRICS) + 1))
    errors: list[tuple[Cell, ...]] = []
    covered: list[tuple[Cell, ...]] = []
    documents: list[tuple[Cell, ...]] = []
    ratios, below = [], []
    for at, judge in enumerate(judges):
        for n in SIZES:
            found = {
                metric: np.mean(
                    [
                        options.result(
                            {"judge": judge, "metric": metric, "n": n, "draw": block},
                            partial(_draws, at, metric, n, block, options.seed),
                        )
                        for block in range(n_blocks)
                    ],
                    axis=0,
                )
                for metric in METRICS
            }
            error = found["nDCG@10"][:5]
            ratios.append(error[4] / error[:4].min())
            below.append(error)
            errors.append((judge, n, *map(float, error)))
            covered.append((judge, n, *(float(found[metric][column]) for metric in METRICS for column in (5, 6))))
        grades = np.mean(
            [
                options.result(
                    {"judge": judge, "metric": "DCG@10", "n": "documents", "draw": block},
                    partial(_document_draws, at, block, options.seed),
                )
                for block in range(n_blocks)
            ],
            axis=0,
        )
        documents.append((judge, *map(float, grades)))
    means = np.mean(below, axis=0)
    errors.append(("mean", "", *map(float, means)))
    coverage = np.array([row[2:] for row in covered], dtype=float)
    table_errors = ReportTable(
        "Error of a difference of nDCG@10", ("judge", "gold queries", *ESTIMATES), tuple(errors), digits=4,
        note="Root mean square over the 171 pairs of systems, mean over draws.",
    )  # fmt: skip
    columns = tuple(f"{metric}, {what}" for metric in METRICS for what in ("means", "differences"))
    table_coverage = ReportTable(
        "Coverage of 95 % intervals of these queries", ("judge", "gold queries", *columns), tuple(covered), digits=3
    )
    table_documents = ReportTable(
        "Error of a difference of DCG@10 with 100 human grades",
        ("judge", "whole queries", "documents", "documents and judge", "coverage"), tuple(documents), digits=3,
        note="Whole queries: pools of the top 10 of random queries, until 100 grades. Documents: 100 documents drawn "
        "by their weight in differences, with and without the cheap judge; coverage of its 95 % intervals.",
    )  # fmt: skip
    findings = (
        f"The corrected error is at most {max(ratios):.3f} times that of the best baseline of each judge and size, and "
        f"{means[4]:.4f} on average ({means[:4].min():.4f} for the best baseline).",
        f"Coverage is between {coverage.min():.3f} and {coverage.max():.3f}; "
        f"{int(((coverage < 0.93) | (coverage > 0.97)).sum())} of {coverage.size} cells are outside .93 to .97.",
    )
    return Report(
        "Few human grades and LLM judges",
        f"19 runs of TREC DL 2019, 43 queries; convention trec_eval; {n_blocks * BLOCK} draws of gold queries.",
        (table_errors, table_coverage, table_documents),
        findings,
    )


@cache
def _data() -> tuple[GradedRuns, tuple[str, ...]]:
    if "CORANK_DATA" not in os.environ:
        raise InputError("CORANK_DATA is not set; set it to the folder that holds trec_dl2019.")
    base = Path(os.environ["CORANK_DATA"]) / "trec_dl2019"
    judges = sorted((base / "judges").glob("*.gz"))
    runs = {path.name.split(".")[0]: read_run(path) for path in sorted((base / "runs").glob("*.gz"))}
    graded = GradedRuns.of(runs, [read_qrels(base / "qrels.txt.gz"), *map(read_qrels, judges)])
    return graded, tuple(path.name.split(".")[0][:44] for path in judges)


@cache
def _values(judge: int) -> dict[str, Floats]:
    graded = _data()[0]
    order = np.argsort(graded.queries)
    tables = graded.values(graded.grades[judge], METRICS, find_convention("trec_eval"))
    return {name: table[:, order] for name, table in tables.items()}


def _draws(judge: int, metric: str, n: int, block: int, seed: int) -> list[float]:
    """Return errors of five estimates of differences, and coverage of means and differences, means over draws."""

    H, C = _values(0)[metric], _values(judge + 1)[metric]
    S, N = H.shape
    a, b = np.triu_indices(S, 1)
    truth, everywhere = H.mean(axis=1), C.mean(axis=1)
    differences = truth[a] - truth[b]
    rng, found = np.random.default_rng([seed, n, block]), []
    for _ in range(BLOCK):
        s = rng.permutation(N)[:n]
        dh, dc = H[a][:, s] - H[b][:, s], C[a][:, s] - C[b][:, s]
        x, y = (d - d.mean(axis=1, keepdims=True) for d in (dc, dh))
        slope = np.clip((x * y).sum(axis=1) / np.maximum((x * x).sum(axis=1), 1e-12), 0, 1)
        shift = everywhere[a] - everywhere[b] - dc.mean(axis=1)
        ours = corrected(H[:, s], C, s, these=True)
        mean = dh.mean(axis=1)
        cheap, values = everywhere[a] - everywhere[b], ours.values[a] - ours.values[b]
        rows = (mean, cheap, mean + shift, mean + slope * shift, values)
        errors = [float(np.sqrt(np.mean((row - differences) ** 2))) for row in rows]
        means, pairs = ours.intervals(np.arange(S)), ours.intervals(a, b)
        found.append([
            *errors,
            np.mean((means[1] <= truth) & (truth <= means[2])),
            np.mean((pairs[1] <= differences) & (differences <= pairs[2])),
        ])  # fmt: skip
    return np.mean(found, axis=0).tolist()  # type: ignore[no-any-return]


def _document_draws(judge: int, block: int, seed: int) -> list[float]:
    """Return errors of differences of DCG@10: whole queries, documents, documents with the judge; and its coverage."""
    graded, rules = _data()[0], find_convention("trec_eval")
    W = document_weights(graded, "DCG@10", rules)
    h, c = np.maximum(graded.grades[0], 0.0), np.maximum(graded.grades[judge + 1], 0.0)
    a, b = np.triu_indices(len(W), 1)
    totals = W @ h
    truth = totals[a] - totals[b]
    query = graded.documents[0]
    N, pooled = len(graded.queries), (W > 0).any(axis=0)
    rng, found = np.random.default_rng([seed, 9, block]), []
    for _ in range(BLOCK):
        order, n_grades = rng.permutation(N), 0
        chosen: list[int] = []
        while n_grades < 100:
            chosen.append(int(order[len(chosen)]))
            n_grades += int((pooled & (query == chosen[-1])).sum())
        means = (W * np.isin(query, chosen)) @ h * (N / len(chosen))
        rows = [means[a] - means[b]]
        for cheap in (c[:, None][:, :0], c[:, None]):
            sampled = sample_documents(W, cheap, 100, rng)
            estimate = estimate_documents(W, cheap, query, sampled, h[sampled.documents])
            rows.append(estimate.values[a] - estimate.values[b])
        error = [float(np.sqrt(np.mean((row - truth) ** 2))) for row in rows]
        pairs = [estimate.interval(int(i), int(j)) for i, j in zip(a, b, strict=True)]
        hit = np.mean([one.low <= value <= one.high for one, value in zip(pairs, truth, strict=True)])
        found.append([*error, hit])
    return np.mean(found, axis=0).tolist()  # type: ignore[no-any-return]
