"""
Coverage of intervals in 2,000 draws of held-out data, also where the shares of grades are unknown or differ.

A model is fitted to n members of a population; the error is known over the whole population. Ten held-out samples of n
members are drawn for each of 200 models. Good coverage is between 1 − delta and 1 − delta/4.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.metrics.bounds import Bound, kpartite_interval, resampling_interval
from corank.models.rls import RankRLS
from corank.tables import Cell, ReportTable
from experiments.bounds.populations import N_GRADES, house_lists, houses, kpartite_errors, letor
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]
DELTA, N_SAMPLES, BOOTSTRAPS = 0.05, 10, 400
POPULATIONS = {"MQ2008": letor, "Boston, lists of 10": house_lists}
LISTS = [(name, n, power) for name in POPULATIONS for n in (30, 100, 400) for power in (0.0, 1.0)]
ROWS = [
    (shares, n, power)
    for shares in ("observed", "unknown", "given")
    for n, power in ((50, 0.0), (100, 0.0), (100, 1.0))
]
GIVEN: dict[float, float] = {0: 0.4, 1: 0.3, 2: 0.15, 3: 0.1, 4: 0.05}
"""Shares of grades that differ from the equal ones of the population."""
assert len(GIVEN) == N_GRADES
METHODS = ("resampling_interval", "kpartite_interval", "bootstrap")


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 200 models by default; quick runs fit 5.
    Returns: coverage and width of three intervals.
    """
    n_models = options.repeats or (5 if options.quick else 200)
    options.expect(n_models * (len(LISTS) + len(ROWS)))
    rows = [
        _row(options, n_models, f"{name}, queries", n, power, partial(_of_lists, name, n, power))
        for name, n, power in LISTS
    ]
    rows += [
        _row(options, n_models, f"Boston, rows, shares {shares}", n, power, partial(_of_rows, shares, n, power))
        for shares, n, power in ROWS
    ]
    n_draws = n_models * N_SAMPLES
    good = [
        sum(1 - DELTA <= float(str(row[column])) <= 1 - DELTA / 4 for row in rows if row[column] != "")
        for column in (3, 4, 5)
    ]
    listed = ", ".join(f"{method} in {count}" for method, count in zip(METHODS, good, strict=True))
    table = ReportTable(
        f"Coverage in {n_draws:,} draws of held-out data",
        ("population", "n", "power", *METHODS, *(f"width, {method}" for method in METHODS)),
        tuple(rows),
        digits=3,
        note="Shares: the error is meant for the grades of the sample (observed), of the population (unknown), or for "
        "given shares that differ from both. An empty cell: the method does not support this. The bootstrap is "
        "that of percentiles, over queries or rows.",
    )
    finding = (
        f"Coverage between {1 - DELTA:g} and {1 - DELTA / 4:g}, of {len(rows)} settings: {listed}. The standard error "
        f"of a coverage of .95 in {n_draws:,} draws is {(0.95 * 0.05 / n_draws) ** 0.5:.4f}."
    )
    return Report(
        "Narrow intervals: how often do they hold?",
        f"{n_models} models (RankRLS with its defaults, fitted to n members of a population), {N_SAMPLES} held-out "
        f"samples of n members each; delta {DELTA:g}.",
        (table,),
        (finding,),
    )


def _row(
    options: ExperimentOptions, n_models: int, name: str, n: int, power: float, draw: partial[list[list[float]]]
) -> tuple[Cell, ...]:
    results = np.array(
        [
            options.result(
                {"table": "coverage", "set": name, "n": n, "power": power, "resample": index},
                partial(draw, options.seed, index),
            )
            for index in range(n_models)
        ],
        dtype=np.float64,
    ).reshape(-1, len(METHODS), 2)
    means = results.mean(axis=0)
    cells: list[Cell] = ["" if np.isnan(value) else float(value) for value in means.T.ravel()]
    return (name, n, f"{power:g}", *cells)


def _of_lists(name: str, n: int, power: float, seed: int, resample: int) -> list[list[float]]:
    """Return whether each method holds, and its width, for each held-out sample."""
    lists, rng = POPULATIONS[name](), np.random.default_rng([seed, n, resample, 1])
    train = lists.draw(n, rng)
    model = RankRLS().fit(train[0], train[1], qid=train[2])
    true, results = lists.error(model.predict(lists.X), power), []
    for _ in range(N_SAMPLES):
        X, y, qid = lists.draw(n, rng)
        scores = model.predict(X)
        errors = kpartite_errors(y, scores, qid, power)
        errors = errors[~np.isnan(errors)]
        drawn = errors[rng.integers(len(errors), size=(BOOTSTRAPS, len(errors)))].mean(axis=1)
        bounds = [f(scores, y, qid, power=power, delta=DELTA) for f in (resampling_interval, kpartite_interval)]
        results.append(_entries(bounds, drawn, true))
    return results


def _of_rows(shares: str, n: int, power: float, seed: int, resample: int) -> list[list[float]]:
    population, rng = houses(), np.random.default_rng([seed, n, resample, 2])
    X, y = population.draw(n, rng)
    model = RankRLS().fit(X, y, qid=np.zeros(n, dtype=int))
    everywhere, results = model.predict(population.X), []
    for _ in range(N_SAMPLES):
        X, y = population.draw(n, rng)
        while len(np.unique(y)) < N_GRADES:
            X, y = population.draw(n, rng)
        meant = {
            "observed": np.bincount(y) / n,
            "unknown": np.bincount(population.y) / len(population.y),
            "given": np.array(list(GIVEN.values())),
        }[shares]
        scores, true = model.predict(X), population.error(everywhere, power, meant)
        bounds = [
            resampling_interval(scores, y, power=power, delta=DELTA, shares=GIVEN if shares == "given" else shares)
        ]
        drawn = None
        if shares != "given":
            chosen = rng.integers(n, size=(BOOTSTRAPS, n))
            samples = np.repeat(np.arange(BOOTSTRAPS), n)
            drawn = kpartite_errors(y[chosen].ravel(), scores[chosen].ravel(), samples, power)
        if shares == "observed":
            bounds.append(kpartite_interval(scores, y, power=power, delta=DELTA))
        results.append(_entries(bounds, drawn, true))
    return results


def _entries(bounds: list[Bound], drawn: Floats | None, true: float) -> list[float]:
    """Return coverage and width of each method, NaN for one that does not apply."""
    ends = [(bound.low, bound.high) for bound in bounds]
    entries = [(float(low <= true <= high), high - low) for low, high in ends]
    entries += [(np.nan, np.nan)] * (2 - len(bounds))
    if drawn is None:
        return [float(value) for entry in (*entries, (np.nan, np.nan)) for value in entry]
    low, high = np.quantile(drawn, [0.5 * DELTA, 1.0 - 0.5 * DELTA])
    return [float(value) for entry in (*entries, (low <= true <= high, high - low)) for value in entry]
