"""
Is the gain of a shared prior larger if the kernel is worse? Yu, Yu and Tresp, 2005, state it without figures.

A worse kernel is the paper's correlation kernel computed from fewer other users.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from experiments.gp_collaborative.methods import METHODS, PAPER_FORM, errors
from experiments.gp_collaborative.problem import N_USERS, Movies, movies, training_movies
from experiments.gp_collaborative.run import p_over_users, values_of
from experiments.options import ExperimentOptions

REPEATS, SIZE = 3, 100
USERS = (10, 50, 500)
ALONE, PAPERS_FORM, DEFAULT = "GPR, paper's form", "CGPR, paper's form", "CGPR"


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 3 repeats by default; quick runs make 1.
    Returns: absolute errors for each number of users that the kernel is computed from.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    options.expect(len(USERS) * repeats * 3)
    rows: list[tuple[Cell, ...]] = []
    for n in USERS:
        cells = {
            name: [_cell(options, name, n, repeat) for repeat in range(repeats)]
            for name in (ALONE, PAPERS_FORM, DEFAULT)
        }
        means = {name: float(np.nanmean(values_of(of, "absolute"))) for name, of in cells.items()}
        gains = [
            (means[ALONE] - means[name], p_over_users(cells[name], cells[ALONE], "absolute"))
            for name in (PAPERS_FORM, DEFAULT)
        ]
        rows.append((f"{n}", *means.values(), *gains[0], *gains[1]))
    return Report(
        "A shared prior with better and worse kernels",
        f"MovieLens 1M, {N_USERS} users, {SIZE} training movies, {repeats} draws of them and of the users that the "
        "correlation kernel is computed from. Mean absolute errors; gains over the individual processes, with "
        "Wilcoxon's p over users.",
        (
            ReportTable(
                "Mean absolute error, by the number of users that the kernel is computed from",
                ("users", ALONE, PAPERS_FORM, DEFAULT, "gain, paper's form", "p", "gain, CGPR", "p of that"),
                tuple(rows),
            ),
        ),
    )


def _cell(options: ExperimentOptions, name: str, n: int, repeat: int) -> dict[str, Any]:
    key = {"experiment": "collaborative-kernels", "name": name, "users": n, "repeat": repeat}
    tested: dict[str, Any] = options.result(key, partial(_errors, name, n, repeat, options.seed))
    return tested


def _errors(name: str, n: int, repeat: int, seed: int) -> dict[str, Any]:
    known, train = thinned(movies(), n, repeat, seed), training_movies(SIZE, repeat, seed)
    method = METHODS[name] if name in METHODS else PAPER_FORM[name]
    return errors(known, train, N_USERS, lambda: method(known, train, "correlation", N_USERS))


def thinned(known: Movies, n: int, repeat: int, seed: int) -> Movies:
    """Return the movies with the correlation kernel of n other users."""
    whole = known.features["correlation"]
    chosen = np.random.default_rng([seed, repeat]).permutation(whole.shape[1])[:n]
    return replace(known, features={"correlation": whole[:, np.sort(chosen)]})
