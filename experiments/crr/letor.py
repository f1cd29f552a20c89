"""
Regression, ranking and both on LETOR 4.0 MQ2008: table 2 of Sculley, Combined Regression and Ranking, KDD 2010.

Squared loss, solved exactly; the five official folds; parameters chosen on each fold's validation part alone. Besides
the protocol's own row the report shows what every other rule of choosing would have given, down to the best point of
the grid on the test parts, an upper bound that no valid rule can choose.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corank.comparison.report import Report
from corank.metrics import Evaluation, compare_runs, evaluate
from corank.tables import ReportTable
from experiments.crr.grid import METRICS, TARGETS, Grid, Point, learn, measure_grid
from experiments.datasets.mq2008 import BASELINES, folds, published, read_parts
from experiments.options import ExperimentOptions

PAPER = {"regression": (0.464, 0.476, 0.144), "ranking": (0.479, 0.490, 0.850), "CRR": (0.479, 0.489, 0.229)}
MIXES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: quick runs try a coarser grid.
    Returns: tables and findings.
    """
    alphas = [round(float(alpha), 8) for alpha in 10.0 ** np.arange(-4, 0.76, 1.0 if options.quick else 0.25)]
    mixes = (0.0, 0.1, 0.5, 1.0) if options.quick else MIXES
    grids = {target: measure_grid(options, target, alphas, mixes) for target in TARGETS}
    main = [_main_table(target, grids[target]) for target in TARGETS]
    about = (
        "LETOR 4.0 MQ2008, five official folds, squared loss solved exactly, convention letor4, MSE over rows. "
        f"Grid: alpha in {alphas[0]:g} ... {alphas[-1]:g} ({len(alphas)} values, evenly in the logarithm), "
        f"mix in {', '.join(f'{mix:g}' for mix in mixes)}, all pairs of equal weight. Each fold takes the point with "
        "the highest MAP on its validation part. The paper's figures are those of its table 2."
    )
    return Report(
        "Combined regression and ranking on MQ2008",
        about,
        (*main, _rules_table(grids["grades"]), _grid_table(grids["grades"], alphas, mixes)),
        (*_tests(grids["grades"], options.seed), *_floors()),
    )


METHODS: dict[str, Callable[[Point], bool]] = {
    "regression": lambda point: point.mix == 1,
    "ranking": lambda point: point.mix == 0,
    "CRR, mix 0.5": lambda point: point.mix == 0.5,
    "CRR, mix tuned": lambda point: 0 < point.mix < 1,
}


RULES: dict[str, Callable[[Point], bool]] = {
    "equal pairs": lambda point: point.query_weight == "pairs",
    "equal pairs, alpha by decades": lambda point: point.query_weight == "pairs" and _is_decade(point.alpha),
    "equal queries": lambda point: point.query_weight == "equal",
    "either": lambda point: True,
}


def _is_decade(alpha: float) -> bool:
    return bool(np.isclose(np.log10(alpha) % 1.0, (0.0, 1.0), atol=1e-6).any())


def _own(grid: Grid, keep: Callable[[Point], bool]) -> Grid:
    """Points of a method under the paper's objective, the mean over all pairs."""
    return grid.of(lambda point: keep(point) and point.query_weight == "pairs")


def _main_table(target: str, grid: Grid) -> ReportTable:
    rows: list[tuple[str | float | None, ...]] = []
    for name, keep in METHODS.items():
        ours = _own(grid, keep)
        rows.append((name, *map(float, ours.test(ours.tuned())), *PAPER[name.split(",")[0]]))
    for name in BASELINES:
        official = published(name)
        rows.append((f"{name} (official table)", None, None, None, official["MAP"], official["MeanNDCG"], None))
    words = "grades 0, 1, 2" if target == "grades" else "0 or 1: not relevant, relevant"
    return ReportTable(
        f"Learning from {words}",
        ("method", "MAP", "MeanNDCG", "MSE", "published MAP", "published MeanNDCG", "published MSE"),
        tuple(rows),
    )


def _rules_table(grid: Grid) -> ReportTable:
    """Return the results of all other selection rules."""
    rows: list[tuple[str | float, ...]] = []
    for name, keep in METHODS.items():
        for rule, allowed in RULES.items():
            part = grid.of(lambda point, keep=keep, allowed=allowed: keep(point) and allowed(point))  # type: ignore[misc]
            by_map, by_ndcg = part.test(part.tuned(0)), part.test(part.tuned(1))
            best = part.values[:, :, 1].mean(axis=1).max(axis=0)
            rows.append((name, rule, *map(float, (*by_map[:2], *by_ndcg[:2], *best[:2]))))
    return ReportTable(
        "Test MAP / MeanNDCG by the rule that chooses, learning from grades",
        (
            "method", "grid", "MAP (validation MAP)", "MeanNDCG (validation MAP)", "MAP (validation MeanNDCG)",
            "MeanNDCG (validation MeanNDCG)", "best point MAP", "best point MeanNDCG",
        ),
        tuple(rows),
        note="All these rules were tried on the same test parts. The first table uses the first of them, the paper's "
        "own objective; to quote the highest instead would be to choose on the test parts. The best point is the "
        "highest mean over the test parts of one point of the grid: a bound, not a result.",
    )  # fmt: skip


def _grid_table(grid: Grid, alphas: list[float], mixes: tuple[float, ...]) -> ReportTable:
    where = {point: at for at, point in enumerate(grid.points)}
    means = grid.values[:, :, 1].mean(axis=1)

    def cell(mix: float, alpha: float) -> str:
        mean = means[where[Point("pairs", mix, alpha)]]
        return f"{mean[0]:.4f} / {mean[1]:.4f} / {mean[2]:.3f}"

    return ReportTable(
        "The grid: mean test MAP / MeanNDCG / MSE, learning from grades, pairs of equal weight",
        ("alpha", *(f"mix {mix:g}" for mix in mixes)),
        tuple((f"{alpha:.2g}", *(cell(mix, alpha) for mix in mixes)) for alpha in alphas),
    )


def _tests(grid: Grid, seed: int) -> list[str]:
    """Paired over all 784 queries: each is in the test part of exactly one fold."""
    found = {name: _out_of_fold(_own(grid, keep)) for name, keep in METHODS.items()}
    rng = np.random.default_rng(seed)
    lines = []
    for base, other in (
        ("ranking", "CRR, mix 0.5"), ("ranking", "CRR, mix tuned"), ("regression", "CRR, mix 0.5"),
        ("regression", "ranking"),
    ):  # fmt: skip
        (test,) = compare_runs({name: found[name] for name in (base, other)}, "AP", random_state=rng)
        lines.append(
            f"MAP of {other} minus {base}: {test.difference:+.4f}, 95 % interval {test.low:+.4f} to {test.high:+.4f}, "
            f"sign-flip p = {test.p_value:.2g} over {test.n_queries} queries."
        )
    ranking = found["ranking"]["AP"].values
    spread = float(ranking.std(ddof=1) / np.sqrt(len(ranking)))
    lines.append(f"The standard error of a MAP over these queries is {spread:.4f}: third digits are noise.")
    return lines


def _out_of_fold(grid: Grid) -> Evaluation:
    rows = [read_parts((fold.test,)) for fold in folds()]
    learnt = [learn("grades", grid.points[at], fold.train) for at, fold in zip(grid.tuned(), folds(), strict=True)]
    scores = [part.X @ w + b for (w, b), part in zip(learnt, rows, strict=True)]
    y, qid = (np.concatenate([getattr(part, name) for part in rows]) for name in ("y", "qid"))
    return evaluate(y, np.concatenate(scores), qid, METRICS, convention="letor4")


def _floors() -> list[str]:
    """No linear scorer has a lower mean squared error than least squares fitted to the very rows it is tested on."""
    floors = {target: float(np.mean([_floor(target, fold.test) for fold in folds()])) for target in TARGETS}
    return [
        f"Least squares fitted to each test part itself has MSE {floors['grades']:.3f} on grades 0, 1, 2 and "
        f"{floors['relevance']:.3f} on relevance 0 or 1. The paper's {PAPER['regression'][2]} and {PAPER['CRR'][2]} "
        "lie below the first, so no linear scorer reaches them on the grades: the paper must measure on another scale, "
        "and relevance 0 or 1 is the nearest that we know."
    ]


def _floor(target: str, part: int) -> float:
    rows = read_parts((part,))
    Z, t = np.column_stack([rows.X, np.ones(len(rows.y))]), TARGETS[target](rows.y)
    return float(np.mean((t - Z @ np.linalg.lstsq(Z, t, rcond=None)[0]) ** 2))
