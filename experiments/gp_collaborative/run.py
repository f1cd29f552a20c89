"""
Collaborative ordinal regression (Yu, Yu and Tresp, 2005) on MovieLens 1M: tables 1 and 2, and two baselines.

EachMovie is no longer available; the protocol is the paper's. No rating of a test movie by the modelled users is known;
its features are the ratings of all other users.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.comparison.report import Report
from corank.models.gp import CollaborativeGP
from corank.models.gp.shared_prior import initial
from corank.models.gp.users import e_step
from corank.tables import Cell, ReportTable
from experiments.gp_collaborative.methods import CHEAP, METHODS, errors
from experiments.gp_collaborative.problem import KERNELS, N_MOVIES, N_USERS, movies, training_movies
from experiments.options import ExperimentOptions
from experiments.significance import p_text

Floats = NDArray[np.float64]

REPEATS = 5
SIZES = (100, 200, 300, 400)
JUDGED = 100
SCALES = ((200, 50), (400, 50), (400, 100), (800, 100))
PAPER = {
    "absolute": {
        "GPR": (1.1971, 1.1283, 1.1042, 1.0970), "CGPR": (1.1763, 1.1260, 1.1005, 1.0923),
        "GPOR": (1.2366, 1.2126, 1.0907, 1.0454), "CGPOR": (1.2225, 1.1711, 1.0557, 1.0203),
    },
    "wrong": {
        "GPR": (0.7432, 0.7224, 0.7155, 0.7125), "CGPR": (0.7372, 0.7213, 0.7142, 0.7085),
        "GPOR": (0.6239, 0.6087, 0.5862, 0.5760), "CGPOR": (0.6168, 0.5999, 0.5782, 0.5723),
    },
}  # fmt: skip
WORDS = {"absolute": "Mean absolute error", "wrong": "Zero-one error"}


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 5 repeats by default; quick runs make 1, of 100 movies and 5 judged users.
    Returns: both errors for every number of training movies, and the time of an iteration.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    sizes, judged = (SIZES[:1], 5) if options.quick else (SIZES, JUDGED)
    rows = [*((name, "") for name in CHEAP), *((name, kind) for kind in KERNELS for name in METHODS)]
    options.expect(len(rows) * len(sizes) * repeats + len(SCALES))
    cells = {
        (name, kind, n): [_cell(options, name, kind, n, repeat, judged) for repeat in range(repeats)]
        for n in sizes
        for name, kind in rows
    }
    return Report(
        "Collaborative ordinal regression on MovieLens 1M",
        f"The {N_USERS} users with the most ratings, the {N_MOVIES} movies with the most; the ratings of random "
        f"training movies are known, and all others are predicted: {repeats} repeats, errors of {judged} users (the "
        f"individual Gaussian processes are fitted for these alone; the collaborative ones learn from all {N_USERS}). "
        "Every model has default parameters. Features of the movies are the other users' ratings: 'correlation' is "
        "the paper's kernel, 'directions' the features of Collaborative and the movies' means, learnt from the "
        "others. The item mean and Collaborative learn from the others' ratings too. The absolute error is that of "
        "the median grade, the zero-one error that of the most probable grade; scores are rounded. p: Wilcoxon's "
        "test over users, of their means over repeats and sizes, against the individual process.",
        (
            *(_table(measure, rows, cells, sizes) for measure in WORDS),
            _scaling(options, SCALES[:2] if options.quick else SCALES),
        ),
        _findings(cells, sizes),
    )


def _cell(options: ExperimentOptions, name: str, kind: str, n: int, repeat: int, judged: int) -> dict[str, Any]:
    key = {"experiment": "collaborative", "name": name, "kind": kind, "n": n, "repeat": repeat, "judged": judged}

    def compute() -> dict[str, Any]:
        known, train = movies(), training_movies(n, repeat, options.seed)
        if name in CHEAP:
            return errors(known, train, judged, lambda: CHEAP[name](known, train))
        return errors(known, train, judged, lambda: METHODS[name](known, train, kind, judged))

    results: dict[str, Any] = options.result(key, compute)
    return results


def values_of(cells: list[dict[str, Any]], measure: str) -> Floats:
    """Return the errors of all users and repeats, one after the other."""
    return np.concatenate([np.array(cell[measure], dtype=np.float64) for cell in cells])


def user_means(cells: list[dict[str, Any]], measure: str) -> Floats:
    """Return the mean error of each user over repeats and sizes; NaN where a user has no test rating."""
    values = np.array([cell[measure] for cell in cells], dtype=np.float64)
    n = np.isfinite(values).sum(axis=0)
    return np.where(n > 0, np.nansum(values, axis=0) / np.maximum(n, 1), np.nan)


def p_over_users(cells: list[dict[str, Any]], others: list[dict[str, Any]], measure: str) -> str:
    """Return the p-value of Wilcoxon's test over users for a difference of two methods."""
    gaps = user_means(cells, measure) - user_means(others, measure)
    return p_text(gaps[~np.isnan(gaps)], ".1g", "")


def _table(measure: str, rows: list[tuple[str, str]], cells: dict[Any, Any], sizes: tuple[int, ...]) -> ReportTable:
    lines: list[tuple[Cell, ...]] = []
    for name, kind in rows:
        means = [float(np.nanmean(values_of(cells[name, kind, n], measure))) for n in sizes]
        p = ""
        if name.startswith("CGP"):
            of, others = ([entry for n in sizes for entry in cells[which, kind, n]] for which in (name, name[1:]))
            p = p_over_users(of, others, measure)
        lines.append((name, kind, *means, p))
    paper = [(f"{name} (paper, EachMovie)", "correlation", *of, "") for name, of in PAPER[measure].items()]
    if len(sizes) == len(SIZES):
        lines += paper
    columns = ("method", "kernel", *(f"{n} movies" for n in sizes), "p against the individual")
    return ReportTable(f"{WORDS[measure]}, by the number of training movies", columns, tuple(lines))


def _scaling(options: ExperimentOptions, scales: tuple[tuple[int, int], ...]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for n_items, n_users in scales:
        key = {"experiment": "collaborative", "table": "iteration", "items": n_items, "users": n_users}
        results = options.result(key, lambda items=n_items, users=n_users: _seconds(items, users))  # type: ignore[misc]
        rows.append((n_items, n_users, int(results[0]), *results[1:]))
    return ReportTable(
        "Processor seconds of one iteration of expectation maximisation, every rating of the users known",
        ("items", "users", "ratings", "CGPR", "CGPOR"),
        tuple(rows),
        digits=1,
        note="The second iteration, whose sites start from those of the first; one thread.",
    )


def _seconds(n_items: int, n_users: int) -> list[float]:
    Y = movies().Y[:n_users, :n_items]
    seen = ~np.isnan(Y)
    ratings = sparse.csr_array((Y[seen], np.nonzero(seen)), shape=Y.shape)
    results = [float(seen.sum())]
    for likelihood in ("gaussian", "ordinal"):
        gp = CollaborativeGP(likelihood)
        population, model, encoded = initial(gp, ratings, np.unique(ratings.data), np.eye(n_items))
        last, _ = e_step(model, population, encoded, None, None)
        began = time.process_time()
        _, totals = e_step(model, population, encoded, last, None)
        population.m_step(totals, population, 1.0)
        results.append(time.process_time() - began)
    return results


def _findings(cells: dict[Any, Any], sizes: tuple[int, ...]) -> tuple[str, ...]:
    lines = []
    for measure, words in WORDS.items():

        def mean(name: str, kind: str, n: int, of: str = measure) -> float:
            return float(np.nanmean(values_of(cells[name, kind, n], of)))

        for kind in KERNELS:
            ahead = [
                f"{name} at {n}"
                for name in ("CGPR", "CGPOR")
                for n in sizes
                if mean(name, kind, n) >= mean(name[1:], kind, n)
            ]
            lines.append(
                f"{words}, {kind}: collaborative ahead of individual "
                + ("everywhere." if not ahead else f"except {', '.join(ahead)}.")
            )
            behind = [
                f"{name} at {n}"
                for name in ("CGPR", "CGPOR")
                for n in sizes
                if mean(name, kind, n) >= min(mean(bar, "", n) for bar in CHEAP)
            ]
            lines.append(
                f"{words}, {kind}: both pass the item mean and Collaborative "
                + ("everywhere." if not behind else f"except {', '.join(behind)}.")
            )
    return tuple(lines)
