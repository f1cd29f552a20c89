"""
Errors and coverage of corrected estimates: 19 runs of TREC DL 2019, four LLM judges, 8, 15 or 25 queries with human
grades.

The population is the 43 queries: truth is the human mean over all of them, and all have cheap grades. Gold queries
are drawn 500 times. Baselines: human only, cheap only, PPI (λ = 1), and PPI++ with λ by difference and normal
intervals. The second part checks what chose no setting: random sets of 2, 6 and all systems, the runs of TREC DL 2021,
and judges that are made of human grades.
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
from corank.metrics.cheap.estimate import Estimate, corrected, human_only
from corank.metrics.cheap.values import GradedRuns
from corank.metrics.conventions import find_convention
from corank.tables import Cell, ReportTable
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]
METRICS = ("nDCG@10", "AP", "P@10", "RR")
SIZES = (8, 15, 25)
BLOCK = 50
ESTIMATES = ("human only", "cheap only", "PPI", "PPI++", "corrected")
YEARS, KINDS, SYSTEMS = (2019, 2021), ("confused", "family", "random", "constant", "reversed"), (2, 6, 0)
"""Data and made judges of the second part, and numbers of systems; 0 for all."""


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 500 draws by default; quick runs make 50.
    Returns: errors, coverage, and the errors of documents instead of queries.
    """
    n_blocks = (options.repeats or (50 if options.quick else 500)) // BLOCK or 1
    judges = _data()[1]
    checks = [(year, kind) for year in YEARS for kind in ((*KINDS, "LLM") if year == YEARS[0] else KINDS)]
    n_checks = max(1, n_blocks // 5)
    cells = len(SIZES) * len(METRICS)
    options.expect(n_blocks * len(judges) * (cells + 1) + len(checks) * len(SYSTEMS) * cells * n_checks)
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
    held_out: list[tuple[Cell, ...]] = []
    for year, kind in checks:
        for n_systems in SYSTEMS:
            found_cells = np.array([
                np.mean([
                    options.result(
                        {"check": year, "judge": kind, "systems": n_systems, "metric": metric, "n": n, "draw": block},
                        partial(_checks, year, kind, n_systems, metric, n, block, options.seed),
                    ) for block in range(n_checks)
                ], axis=0) for metric in METRICS for n in SIZES
            ])  # fmt: skip
            ratio = found_cells[:, 4] / found_cells[:, :4].min(axis=1)
            level, pairs, width, human = found_cells[:, 5:].T
            held_out.append((
                f"DL {year}", kind, n_systems or "all", float(ratio.max()), float(level.min()), float(level.mean()),
                float(pairs.min()), float(pairs.mean()), float(human.mean()), float(width.mean()),
            ))  # fmt: skip
    columns = (
        "runs", "judge", "systems", "error, worst", "means, lowest", "means, average", "differences, lowest",
        "differences, average", "human only", "width",
    )  # fmt: skip
    table_checks = ReportTable(
        "Runs, sets of systems and judges that chose nothing", columns, tuple(held_out), digits=3,
        note="Over nDCG@10, AP, P@10 and RR with 8, 15 and 25 gold queries: largest root mean square error of "
        "differences relative to the best baseline of the cell; coverage of 95 % intervals of means and of "
        "differences; coverage of differences by human grades only; mean width of a difference relative to human only. "
        "LLM: the first of the four. confused: grades drawn from the mean confusion of the four judges; family: the "
        "same, and one grade more for documents that a quarter of the systems return.",
    )  # fmt: skip
    figures = np.array([row[1:] for row in documents], dtype=float)
    worst = (figures[:, 1:3] / figures[:, :1]).max(axis=0)
    last = np.array([row[3:] for row in held_out], dtype=float)
    lowest, widest = last[:, [2, 4]].min(axis=0), last[:, 6].max()
    findings = (
        f"The corrected error is at most {max(ratios):.3f} times that of the best baseline of each judge and size, and "
        f"{means[4]:.4f} on average ({means[:4].min():.4f} for the best baseline).",
        f"Coverage is between {coverage.min():.3f} and {coverage.max():.3f}; "
        f"{int(((coverage < 0.93) | (coverage > 0.97)).sum())} of {coverage.size} cells are outside .93 to .97.",
        f"100 human grades of drawn documents have an error of {worst[1]:.2f} times that of whole queries for the "
        f"worst judge ({worst[0]:.2f} without a judge).",
        f"What chose nothing: differences are covered with {lowest[1]:.3f} on average over metrics and sizes in the "
        f"worst row, means with {lowest[0]:.3f}; intervals of differences are {widest:.2f} times as wide as human only "
        "with the most useless judge, on average over metrics and sizes.",
    )
    return Report(
        "Few human grades and LLM judges",
        f"19 runs of TREC DL 2019, 43 queries; convention trec_eval; {n_blocks * BLOCK} draws of gold queries.",
        (table_errors, table_coverage, table_documents, table_checks),
        findings,
    )


@cache
def _data(year: int = YEARS[0]) -> tuple[GradedRuns, tuple[str, ...]]:
    if "CORANK_DATA" not in os.environ:
        raise InputError("CORANK_DATA is not set; set it to the folder that holds trec_dl2019 and trec_dl2021.")
    base = Path(os.environ["CORANK_DATA"]) / f"trec_dl{year}"
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
    truth = H.mean(axis=1)
    differences = truth[a] - truth[b]
    rng, found = np.random.default_rng([seed, n, block]), []
    for _ in range(BLOCK):
        s = rng.permutation(N)[:n]
        errors, ours = _compared(H, C, s)
        means, pairs = ours.intervals(np.arange(S)), ours.intervals(a, b)
        found.append([
            *errors,
            np.mean((means[1] <= truth) & (truth <= means[2])),
            np.mean((pairs[1] <= differences) & (differences <= pairs[2])),
        ])  # fmt: skip
    return np.mean(found, axis=0).tolist()  # type: ignore[no-any-return]


@cache
def _made(year: int, kind: str) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the values of queries by human grades and by a judge that is made of them."""
    graded, rng = _data(year)[0], np.random.default_rng([year, 7])
    human = graded.grades[0]
    h = np.nan_to_num(human).astype(np.int64).clip(0, 3)
    if kind == "LLM":
        c = graded.grades[1]
    elif kind in ("confused", "family"):
        M = np.zeros((4, 4))
        gold, *judges = _data()[0].grades
        for judge in judges:
            both = ~np.isnan(gold) & ~np.isnan(judge)
            np.add.at(M, (gold[both].astype(int), judge[both].astype(int)), 1.0)
        M = np.cumsum(M / M.sum(axis=1, keepdims=True), axis=1)
        c = (rng.random(len(h))[:, None] > M[h]).sum(axis=1).clip(0, 3).astype(float)
        if kind == "family":
            W = document_weights(graded, "DCG@10", find_convention("trec_eval"))
            c = np.minimum(c + (W[: len(W) // 4] > 0).any(axis=0), 3.0)
    else:
        c = {"random": rng.integers(0, 4, len(h)), "constant": np.ones(len(h)), "reversed": 3 - h}[kind].astype(float)
    rules = find_convention("trec_eval")
    tables = [graded.values(one, METRICS, rules) for one in (human, np.where(np.isnan(human), np.nan, c))]
    known = {name: ~(np.isnan(tables[0][name]) | np.isnan(tables[1][name])).any(axis=0) for name in METRICS}
    first, second = ({name: table[name][:, known[name]] for name in METRICS} for table in tables)
    return first, second


def _checks(year: int, kind: str, n_systems: int, metric: str, n: int, block: int, seed: int) -> list[float]:
    """Return errors of five estimates, coverage of means and differences, their width, coverage of human only."""
    made = _made(year, kind)
    every_h, every_c = made[0][metric], made[1][metric]
    rng, found = np.random.default_rng([seed, year, n_systems, n, block]), []
    for _ in range(BLOCK):
        rows = rng.permutation(len(every_h))[: n_systems or None]
        H, C = every_h[rows], every_c[rows]
        s = rng.permutation(H.shape[1])[:n]
        errors, ours = _compared(H, C, s)
        a, b = np.triu_indices(len(H), 1)
        truth = H.mean(axis=1)
        differences = truth[a] - truth[b]
        means, pairs = ours.intervals(np.arange(len(H))), ours.intervals(a, b)
        human = human_only(H[:, s], H.shape[1], these=True).intervals(a, b)
        found.append([
            *np.square(errors),
            np.mean((means[1] <= truth) & (truth <= means[2])),
            np.mean((pairs[1] <= differences) & (differences <= pairs[2])),
            np.mean(pairs[2] - pairs[1]), np.mean((human[1] <= differences) & (differences <= human[2])),
            np.mean(human[2] - human[1]),
        ])  # fmt: skip
    *squares, means, pairs, width, human_covered, human_width = np.mean(found, axis=0).tolist()
    return [*np.sqrt(squares), means, pairs, width / human_width, human_covered]


def _compared(H: Floats, C: Floats, s: NDArray[np.int64]) -> tuple[list[float], Estimate]:
    """Return the errors of five estimates of differences, and the corrected one."""
    a, b = np.triu_indices(len(H), 1)
    truth, everywhere = H.mean(axis=1), C.mean(axis=1)
    dh, dc = H[a][:, s] - H[b][:, s], C[a][:, s] - C[b][:, s]
    x, y = (d - d.mean(axis=1, keepdims=True) for d in (dc, dh))
    slope = np.clip((x * y).sum(axis=1) / np.maximum((x * x).sum(axis=1), 1e-12), 0, 1)
    shift = everywhere[a] - everywhere[b] - dc.mean(axis=1)
    ours = corrected(H[:, s], C, s, these=True)
    mean, cheap, values = dh.mean(axis=1), everywhere[a] - everywhere[b], ours.values[a] - ours.values[b]
    rows = (mean, cheap, mean + shift, mean + slope * shift, values)
    return [float(np.sqrt(np.mean((row - truth[a] + truth[b]) ** 2))) for row in rows], ours


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
