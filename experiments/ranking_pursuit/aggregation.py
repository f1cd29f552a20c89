"""
Aggregate several sparse solutions, the future work of Tsivtsivadze and Heskes, Semi-supervised ranking pursuit, 2013.

The users, features and kernel are those of `experiments.ranking_pursuit.run`; all training ratings are known. The
width, the number of solutions and the number of terms of each method are chosen by the mean disagreement error over
held-out users, and its error and sparsity are measured on other users.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.metrics import holm, wilcoxon
from corank.tables import Cell, ReportTable
from experiments.options import ExperimentOptions
from experiments.ranking_pursuit.aggregates import AGGREGATES, FEW, FEW_SINGLE, SINGLE
from experiments.ranking_pursuit.run import DATA, try_methods
from experiments.ranking_pursuit.tables import MethodResults
from experiments.ranking_pursuit.users import GROUPS, draw_users
from experiments.significance import LEVEL, is_testable

WIDTHS = tuple(2.0**power for power in range(2, 15, 2))
REPEATS = 3
USERS = 50
QUICK_USERS = 20
PLAIN_MEAN = "Disjoint, mean"

Cells = dict[tuple[str, tuple[int, int]], list[MethodResults]]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 3 repeats of 50 users by default; quick runs make 1 of 20.
    Returns: errors, sparsity, and paired tests against the single solution and the plain mean.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    n_users = QUICK_USERS if options.quick else USERS
    wanted = [(name, group) for name in DATA for group in GROUPS]
    options.expect(repeats * len(wanted))
    cells: Cells = {of: [] for of in wanted}
    for repeat in range(repeats):
        for name, group in wanted:
            cells[name, group].append(_cell(options, name, group, repeat, n_users))
    tests, findings = _tests(cells)
    return Report(
        "Aggregating several sparse solutions",
        f"Repeats: {repeats}, each with {n_users} test users and {n_users} other users to choose parameters on; "
        f"Gaussian kernel, {len(WIDTHS)} widths from 2² to 2¹⁴. Disjoint: 2, 3 or 5 solutions of 1 to 16 terms that "
        "share no item (`n_solutions`). Resampled: 10 solutions of 1 to 32 terms, each from a bootstrap sample of the "
        "user's ratings. Vote: mean rank over the solutions. Stacking: weights by least squares on the users to choose "
        "parameters on. Frequency of terms: a pursuit over the 2 to 32 items that most resampled solutions chose. "
        f'Rows with "{FEW} terms": all solutions together have at most {FEW} terms. RankRLS uses all items; the item '
        "mean uses other users' ratings and none of the user.",
        (
            _table(cells, "Disagreement error", "errors", 3),
            _table(cells, "Share of the training items in use", "share", 2),
            tests,
        ),
        findings,
    )


def _cell(options: ExperimentOptions, name: str, group: tuple[int, int], repeat: int, n_users: int) -> MethodResults:
    key = {
        "experiment": "pursuit-aggregation", "data": name, "group": list(group), "repeat": repeat, "users": n_users
    }  # fmt: skip

    def compute() -> MethodResults:
        rng = np.random.default_rng([options.seed, repeat, group[0]])
        drawn = draw_users(DATA[name](), group, n_users, n_users, 1.0, rng)
        return try_methods(drawn, tuple(AGGREGATES), WIDTHS, AGGREGATES)

    results: MethodResults = options.result(key, compute)
    return results


def _table(cells: Cells, title: str, what: str, digits: int) -> ReportTable:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (method, *(float(np.nanmean(_values(repeats, method, what))) for repeats in cells.values()))
        for method in AGGREGATES
    )
    columns = ("method", *(f"{name} {low}-{high}" for name, (low, high) in cells))
    return ReportTable(title, columns, rows, digits=digits)


def _tests(cells: Cells) -> tuple[ReportTable, tuple[str, ...]]:
    """Compare each aggregate with the single solution and with the plain mean of as many terms."""
    few = f", {FEW} terms"
    aggregates = [name for name in AGGREGATES if name.startswith(("Disjoint", "Resampled"))]
    pairs = [(name, FEW_SINGLE if name.endswith(few) else SINGLE) for name in aggregates]
    plain = [(name, PLAIN_MEAN + few if name.endswith(few) else PLAIN_MEAN) for name in aggregates]
    pairs += [(name, base) for name, base in plain if name != base]
    gaps = [_gaps(cells, name, base, data) for name, base in pairs for data in DATA]
    testable = all(is_testable(gap) for gap in gaps)
    p = np.reshape(holm([wilcoxon(gap) for gap in gaps]) if testable else np.ones(len(gaps)), (len(pairs), len(DATA)))
    means = np.reshape([gap.mean() for gap in gaps], p.shape)
    rows = tuple(
        (f"{name} against {base}", *(f"{mean:+.4f} (p={entry:.2g})" for mean, entry in zip(*row, strict=True)))
        for (name, base), row in zip(pairs, zip(means, p, strict=True), strict=True)
    )
    lower, higher = (p < LEVEL) & (means < 0.0), (p < LEVEL) & (means > 0.0)
    findings = tuple(
        f"{name} against {base}: mean difference of the error {means[index].mean():+.4f}, "
        f"{_words(lower[index], higher[index])}, "
        f"with {_mean_share(cells, name) / _mean_share(cells, base):.1f} times the items."
        for index, (name, base) in enumerate(pairs)
    )
    note = (
        "Mean difference of the disagreement error over the users of all three groups; p of Wilcoxon's test over "
        f"users, by Holm's method for all {p.size} comparisons."
    )
    return ReportTable("Paired tests", ("comparison", *DATA), rows, note=note), findings


def _gaps(cells: Cells, name: str, base: str, data: str) -> NDArray[np.float64]:
    """Differences of the errors of all users of one data set."""
    gaps = np.concatenate(
        [_values(cells[data, group], name, "errors") - _values(cells[data, group], base, "errors") for group in GROUPS]
    )
    return np.asarray(gaps[~np.isnan(gaps)])


def _words(lower: NDArray[np.bool_], higher: NDArray[np.bool_]) -> str:
    if not (lower.any() or higher.any()):
        return "not significant on either data set"
    return f"significantly lower on {lower.sum()} and higher on {higher.sum()} of {len(lower)} data sets"


def _mean_share(cells: Cells, method: str) -> float:
    return float(np.mean([cell[method]["share"] for repeats in cells.values() for cell in repeats]))


def _values(repeats: list[MethodResults], method: str, what: str) -> NDArray[np.float64]:
    """One number for each user of each repeat (the share: for each repeat), NaN where there is none."""
    return np.concatenate([np.atleast_1d(np.array(cell[method][what], dtype=np.float64)) for cell in repeats])
