"""CGPR and CGPOR as in the paper (Yu, Yu and Tresp, 2005) and with corank's defaults, on MovieLens 1M."""

from __future__ import annotations

from typing import Any

import numpy as np

from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from experiments.gp_collaborative.methods import CHEAP, METHODS, PAPER_FORM, errors
from experiments.gp_collaborative.problem import N_MOVIES, N_USERS, movies, training_movies
from experiments.gp_collaborative.run import PAPER, WORDS, p_over_users, values_of
from experiments.options import ExperimentOptions

REPEATS, SIZES = 5, (100, 200)
# each row with the row it is tested against
ROWS = {
    "Item mean": "", "Collaborative": "", "CGPR": "CGPR, paper's form", "CGPOR": "CGPOR, paper's form",
    "GPR, paper's form": "", "CGPR, paper's form": "GPR, paper's form",
    "GPOR, paper's form": "", "CGPOR, paper's form": "GPOR, paper's form",
}  # fmt: skip


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 5 repeats by default; quick runs make 1, of 100 movies.
    Returns: both errors for every number of training movies.
    """
    repeats, sizes = options.repeats or (1 if options.quick else REPEATS), SIZES[:1] if options.quick else SIZES
    options.expect(len(ROWS) * len(sizes) * repeats)
    cells = {(name, n): [_cell(options, name, n, repeat) for repeat in range(repeats)] for n in sizes for name in ROWS}
    return Report(
        "Collaborative Gaussian processes as in the paper",
        f"The {N_USERS} users with the most ratings, the {N_MOVIES} movies with the most, and the paper's correlation "
        f"kernel; {repeats} draw{'s' if repeats > 1 else ''} of the training movies. Paper's form: maximum likelihood "
        "from mean 0 and the kernel itself, without a prior, without a scale per user, with free thresholds and a "
        "free noise for each user. Its Gaussian ratings are minus each user's mean, since a mean of 0 for ratings "
        "from 1 to 5 gives absolute errors above 2.5; its individual processes learn the noise (GPR) or thresholds "
        "and noise (GPOR). CGPR and CGPOR without this note have corank's defaults. Item mean and Collaborative learn "
        "from the other users' ratings, which are the features of the processes. p: Wilcoxon's test over users, of "
        "their means over draws and sizes, of a paper's form against its individual processes, and of the defaults "
        "against the paper's form.",
        tuple(_table(measure, cells, sizes) for measure in WORDS),
        tuple(_finding(measure, cells, sizes) for measure in WORDS),
    )


def _cell(options: ExperimentOptions, name: str, n: int, repeat: int) -> dict[str, Any]:
    def compute() -> dict[str, Any]:
        known, train = movies(), training_movies(n, repeat, options.seed)
        if name in CHEAP:
            return errors(known, train, N_USERS, lambda: CHEAP[name](known, train))
        method = METHODS[name] if name in METHODS else PAPER_FORM[name]
        return errors(known, train, N_USERS, lambda: method(known, train, "correlation", N_USERS))

    key = {"experiment": "collaborative-paper", "name": name, "n": n, "repeat": repeat}
    results: dict[str, Any] = options.result(key, compute)
    return results


def _p(measure: str, cells: dict[Any, Any], sizes: tuple[int, ...], name: str, other: str) -> str:
    of, others = ([item for n in sizes for item in cells[which, n]] for which in (name, other))
    return p_over_users(of, others, measure)


def _mean(measure: str, cells: list[dict[str, Any]]) -> float:
    return float(np.nanmean(values_of(cells, measure)))


def _table(measure: str, cells: dict[Any, Any], sizes: tuple[int, ...]) -> ReportTable:
    lines: list[tuple[Cell, ...]] = [
        (
            name,
            *(_mean(measure, cells[name, n]) for n in sizes),
            f"{other}: {_p(measure, cells, sizes, name, other)}" if other else "",
        )
        for name, other in ROWS.items()
    ]
    lines += [(f"{name} (paper, EachMovie)", *of[: len(sizes)], "") for name, of in PAPER[measure].items()]
    columns = ("method", *(f"{n} movies" for n in sizes), "p against")
    return ReportTable(f"{WORDS[measure]}, by the number of training movies", columns, tuple(lines))


def _finding(measure: str, cells: dict[Any, Any], sizes: tuple[int, ...]) -> str:
    lower = {
        name: sum(_mean(measure, cells[name, n]) < _mean(measure, cells[other, n]) for n in sizes)
        for name, other in ROWS.items()
        if other
    }
    parts = [f"{name} below {ROWS[name]} at {k} of {len(sizes)} sizes" for name, k in lower.items()]
    return f"{WORDS[measure]}: {', '.join(parts)}."
