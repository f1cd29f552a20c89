"""
Gaussian processes for ordinal regression (Chu and Ghahramani, 2005) on small data sets, against common methods.

The paper's splits are not available; the splits here are random.
"""

from __future__ import annotations

import io
import time
import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from corank.comparison.report import Report
from corank.data.durable.text import open_text
from corank.tables import Cell, ReportTable
from experiments.datasets.catalog import dataset
from experiments.gp_ordinal.methods import METHODS
from experiments.options import ExperimentOptions
from experiments.significance import p_text

Floats = NDArray[np.float64]

REPEATS = 5
SETS = (
    "affairs", "auto_riskness", "bostonhousing", "bostonhousing_ord", "cement_strength", "glass", "winequality-red",
    "wisconsin_breast_ord",
)  # fmt: skip
MAX_ROWS = 200
WORDS = {"absolute": "Mean absolute error", "wrong": "Zero-one error"}


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 5 repeats by default; quick runs make 1, of two sets.
    Returns: both errors for every set, and the mean rank of every method.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    sets = SETS[:2] if options.quick else SETS
    options.expect(len(sets) * len(METHODS) * repeats)
    cells = {
        (name, method): [_cell(options, name, method, repeat) for repeat in range(repeats)]
        for name in sets
        for method in METHODS
    }
    return Report(
        "Ordinal regression on small sets",
        f"Two thirds of the rows to train on, {MAX_ROWS} at most, all others to test on; {repeats} draws. Columns "
        "have mean 0 and standard deviation 1 on the training rows. The absolute error is that of the median grade, "
        "the zero-one error that of the most probable grade. Penalties of ridge and logistic regression by "
        "leave-one-out or fivefold cross-validation on the training rows; Gaussian processes learn all "
        "hyper-parameters by the evidence. 'Ridge, rounded' and 'logistic, all thresholds' are mord's OrdinalRidge "
        "and LogisticAT, written with scikit-learn.",
        (*(_table(measure, sets, cells) for measure in WORDS), _time_table(sets, cells)),
        _findings(sets, cells),
    )


@cache
def read_set(name: str) -> tuple[Floats, Floats]:
    """Rows and grades of a set."""
    text = open_text(dataset("ordinal").path(f"chu_gagolews/{name}.csv")).read().tobytes()
    table = np.loadtxt(io.BytesIO(text), delimiter=",", skiprows=1, quotechar='"')
    return table[:, 1:], table[:, 0]


def _cell(options: ExperimentOptions, name: str, method: str, repeat: int) -> dict[str, float]:
    key = {"experiment": "ordinal", "set": name, "method": method, "repeat": repeat, "most": MAX_ROWS}
    results: dict[str, float] = options.result(key, lambda: _trial(options, name, method, repeat))
    return results


def _trial(options: ExperimentOptions, name: str, method: str, repeat: int) -> dict[str, float]:
    X, y = read_set(name)
    order = np.random.default_rng([options.seed, repeat]).permutation(len(y))
    train, test = np.split(order, [min(2 * len(y) // 3, MAX_ROWS)])
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(deviation > 0.0, deviation, 1.0)
    began = time.process_time()
    with warnings.catch_warnings():
        # folds that lack a grade, and solvers that stop early
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        middle, likeliest = METHODS[method](X[train], y[train], X[test])
    seconds = time.process_time() - began
    return {
        "absolute": float(np.abs(middle - y[test]).mean()),
        "wrong": float((likeliest != y[test]).mean()),
        "seconds": seconds,
    }


def _means(cells: dict[Any, Any], sets: tuple[str, ...], measure: str) -> Floats:
    """Sets × methods."""
    return np.array([[np.mean([cell[measure] for cell in cells[name, m]]) for m in METHODS] for name in sets])


def _table(measure: str, sets: tuple[str, ...], cells: dict[Any, Any]) -> ReportTable:
    means = _means(cells, sets, measure)
    rows: list[tuple[Cell, ...]] = [(name, *map(float, of)) for name, of in zip(sets, means, strict=True)]
    ranks = (means[:, :, None] > means[:, None]).sum(axis=2) + 0.5 * (means[:, :, None] == means[:, None]).sum(axis=2)
    rows.append(("mean rank", *map(float, (ranks + 0.5).mean(axis=0))))
    return ReportTable(WORDS[measure], ("set", *METHODS), tuple(rows), digits=3)


def _time_table(sets: tuple[str, ...], cells: dict[Any, Any]) -> ReportTable:
    means = _means(cells, sets, "seconds")
    return ReportTable(
        "Processor seconds to learn and grade, medians over the sets",
        tuple(METHODS),
        (tuple(map(float, np.median(means, axis=0))),),
        digits=2,
    )


def _findings(sets: tuple[str, ...], cells: dict[Any, Any]) -> tuple[str, ...]:
    lines = []
    for measure, words in WORDS.items():
        of = {m: np.array([cell[measure] for name in sets for cell in cells[name, m]]) for m in METHODS}
        for rival in ("ridge, rounded", "logistic, all thresholds", "logistic, classes", "random forest", "GPR"):
            gap = of["GPOR"] - of[rival]
            lines.append(f"{words}: GPOR against {rival} {gap.mean():+.3f} ({p_text(gap, '.1g', 'p=')}).")
    return tuple(lines)
