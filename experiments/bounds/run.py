"""
Coverage and width of error bounds.

Rajaram and Agarwal and Usunier et al. have no experiments; this one is ours. A data set is the whole population, so the
true error of a model is known. Training, held-out and unjudged queries are drawn from it with replacement. An interval
holds if it contains the true error of the model that was fitted on this draw.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.data.splits import QueryKFold
from corank.metrics.bounds import Bound, cv_bound, kpartite_interval, linear_class
from corank.metrics.bounds.cross_validation import list_errors
from corank.models.rls import RankRLS
from corank.tables import Cell, ReportTable
from experiments.bounds.populations import Lists, house_lists, houses, kpartite_errors, letor
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]
Resample = dict[str, list[float]]

RESAMPLES, DELTA, FOLDS, BOOTSTRAPS = 200, 0.05, 5, 400
POWERS = (0.0, 1.0)
# prefix of the methods of the second table, and the common method there
UPPER, USUAL = "upper: ", "mean of folds + 1.64 s.e."
PARTS = "parts of cv_bound"
LISTS: dict[str, tuple[Callable[[], Lists], tuple[int, ...]]] = {
    "MQ2008": (letor, (100, 400)), "Boston, lists of 10": (house_lists, (100, 400)),
}  # fmt: skip
ROWS = (100, 400)
# quantiles of the normal distribution, one-sided and two-sided 95 %
_ONE, _TWO = 1.6449, 1.96


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 200 resamples by default; quick runs make 20 of the smaller size.
    Returns: coverage and width of intervals from held-out data and of upper bounds, and the terms of `cv_bound`.
    """
    n_resamples = options.repeats or (20 if options.quick else RESAMPLES)
    problems: list[tuple[str, int, Callable[[int], Resample]]] = []
    for name, (population, sizes) in LISTS.items():
        problems += [(name, n, partial(_of_lists, population, n, options.seed)) for n in sizes]
    problems += [("Boston, rows", n, partial(_of_rows, n, options.seed)) for n in ROWS]
    problems = [problem for problem in problems if problem[1] == 100 or not options.quick]
    options.expect(len(problems) * n_resamples)
    held_out: list[tuple[Cell, ...]] = []
    upper: list[tuple[Cell, ...]] = []
    parts: list[tuple[Cell, ...]] = []
    for name, n, draw in problems:
        key = {"set": name, "n": n}
        results = [
            dict(options.result({**key, "resample": index}, partial(draw, index))) for index in range(n_resamples)
        ]
        if PARTS in results[0]:
            parts.append((name, n, *np.mean([item.pop(PARTS) for item in results], axis=0).tolist()))
        for method in results[0]:
            is_upper, values = method.startswith(UPPER), np.array([item[method] for item in results])
            row = (name, n, method.removeprefix(UPPER), *_summary(values, is_upper))
            (upper if is_upper else held_out).append(row)
    columns = ("population", "n", "method", "observed", "true", "coverage", "width", "vacuous")
    return Report(
        "Bounds: do they hold, and how wide are they?",
        f"{n_resamples} resamples; delta {DELTA:g}. A population is a whole data set. Its members (queries, lists "
        "or rows) are drawn with replacement: n to train RankRLS with its defaults, n held out, and n unscored for "
        "cross-validation. 'True' is the error of the model over the population, averaged over resamples; coverage "
        "is the share of resamples in which the interval contains it; width is that of the interval, or the distance "
        "of an upper bound from the true error.",
        (
            ReportTable(
                "Intervals from held-out data", columns, tuple(held_out),
                note="Power 0 is the disagreement error; power 1 weights a pair by the difference of its grades. The "
                "bootstrap (percentiles, over queries or rows) and the normal interval (of the mean over queries) are "
                "valid for large n only.",
            ),
            ReportTable(
                "Upper bounds from the training data", columns, tuple(upper),
                note="In cross-validation bounds a pair is weighted by the difference of its grades, and a query with "
                "a single grade counts 0. 'Mean of folds + 1.64 s.e.' is the common report: it is about models trained "
                "on fewer queries, and treats dependent errors as independent.",
            ),
            ReportTable(
                "Terms of cv_bound",
                (
                    "population", "n", "error of folds", "its width", "distance to models of folds",
                    "width of the distance",
                ),
                tuple(parts),
            ),
        ),
        _findings(held_out, upper),
    )  # fmt: skip


def _summary(results: Floats, is_upper: bool) -> tuple[Cell, ...]:
    """Return the means of the columns over resamples (observed, low, high, true, worst)."""
    observed, low, high, true, worst = results.T
    inside = (true <= high) & (is_upper | (low <= true))
    vacuous = (high >= worst) & (is_upper | (low <= 0.0))
    return tuple(float(np.mean(item)) for item in (observed, true, inside, high - (true if is_upper else low), vacuous))


def _of_lists(population: Callable[[], Lists], n: int, seed: int, resample: int) -> Resample:
    """Draw training, held-out and unscored lists, and compute all bounds."""
    lists, rng = population(), np.random.default_rng([seed, n, resample])
    train, test, further = (lists.draw(n, rng) for _ in range(3))
    model = RankRLS().fit(train[0], train[1], qid=train[2])
    scores, everywhere = model.predict(test[0]), model.predict(lists.X)
    results: Resample = {}
    for power in POWERS:
        true = lists.error(everywhere, power)
        bound = kpartite_interval(scores, test[1], test[2], power=power, delta=DELTA)
        errors = kpartite_errors(test[1], scores, test[2], power)
        errors = errors[~np.isnan(errors)]
        results[f"kpartite_interval, power {power:g}"] = _entry(bound, true)
        drawn = errors[rng.integers(len(errors), size=(BOOTSTRAPS, len(errors)))].mean(axis=1)
        ends = np.quantile(drawn, [0.5 * DELTA, 1.0 - 0.5 * DELTA])
        results[f"bootstrap, power {power:g}"] = [bound.error, *ends.tolist(), true, bound.worst]
        side = _TWO * float(errors.std(ddof=1)) / np.sqrt(len(errors))
        results[f"normal, power {power:g}"] = [bound.error, bound.error - side, bound.error + side, true, bound.worst]
    true = lists.cv_error(everywhere)
    bound = cv_bound(RankRLS(), *train, (further[0], further[2]), cv=FOLDS, delta=DELTA)
    results[f"{UPPER}cv_bound"] = _entry(bound, true)
    results[PARTS] = [bound.error, *(value for name, value in bound.parts if isinstance(value, float))]
    errors = _cross_validated(*train)
    high = float(errors.mean() + _ONE * errors.std(ddof=1) / np.sqrt(len(errors)))
    results[f"{UPPER}{USUAL}"] = [float(errors.mean()), 0.0, high, true, 1.0]
    return results


def _of_rows(n: int, seed: int, resample: int) -> Resample:
    """Draw training and held-out rows, and compute all bounds; the true error is for the drawn shares of grades."""
    population, rng = houses(), np.random.default_rng([seed, n, resample])
    train, test = (population.draw(n, rng) for _ in range(2))
    model = RankRLS().fit(train[0], train[1], qid=np.zeros(n, dtype=int))
    scores, everywhere = model.predict(test[0]), model.predict(population.X)
    results: Resample = {}
    for power in POWERS:
        true = population.error(everywhere, power, _shares(test[1]))
        bound = kpartite_interval(scores, test[1], power=power, delta=DELTA)
        results[f"kpartite_interval, power {power:g}"] = _entry(bound, true)
        chosen = rng.integers(n, size=(BOOTSTRAPS, n))
        # each bootstrap sample is treated as one query
        samples = np.repeat(np.arange(BOOTSTRAPS), n)
        drawn = kpartite_errors(test[1][chosen].ravel(), scores[chosen].ravel(), samples, power)
        ends = np.quantile(drawn, [0.5 * DELTA, 1.0 - 0.5 * DELTA])
        results[f"bootstrap, power {power:g}"] = [bound.error, *ends.tolist(), true, bound.worst]
    true = population.error(everywhere, 0.0, _shares(train[1]))
    bound = linear_class(model.predict(train[0]), train[1], n_features=train[0].shape[1], delta=DELTA)
    results[f"{UPPER}linear_class"] = _entry(bound, true)
    return results


def _entry(bound: Bound, true: float) -> list[float]:
    return [bound.error, bound.low, bound.high, true, bound.worst]


def _shares(y: NDArray[np.int64]) -> Floats:
    return np.bincount(y, minlength=int(houses().y.max()) + 1) / len(y)


def _cross_validated(X: Floats, y: Floats, qid: NDArray[np.int64]) -> Floats:
    """Return the out-of-fold errors of all queries."""
    errors = []
    for train, test in QueryKFold(FOLDS).split(X, qid=qid):
        scores = RankRLS().fit(X[train], y[train], qid=qid[train]).predict(X[test])
        errors.append(list_errors(scores, y[test], qid[test])[0])
    return np.concatenate(errors)


def _findings(held_out: list[tuple[Cell, ...]], upper: list[tuple[Cell, ...]]) -> tuple[str, ...]:
    def column(rows: list[tuple[Cell, ...]], name: str, index: int) -> Floats:
        return np.array([row[index] for row in rows if str(row[2]).startswith(name)])

    ours, theirs = column(held_out, "kpartite", 6), column(held_out, "bootstrap", 6)
    others = np.concatenate([column(held_out, name, 5) for name in ("bootstrap", "normal")])
    held, above, usual = column(upper, "cv_bound", 5), column(upper, "cv_bound", 6), column(upper, USUAL, 5)
    return (
        f"Intervals by kpartite_interval hold in {_often(column(held_out, 'kpartite', 5))}, and are "
        f"{(ours / theirs).min():.1f} to {(ours / theirs).max():.1f} times as wide as those of the bootstrap.",
        f"Bootstrap and normal intervals, whose nominal level is {1 - DELTA:.0%}, hold in {others.min():.1%} to "
        f"{others.max():.1%}.",
        f"cv_bound holds in {_often(held)}, and lies {above.min():.2f} to {above.max():.2f} above the true "
        f"error; the usual {USUAL} holds in {usual.min():.1%} to {usual.max():.1%}.",
        f"linear_class is vacuous in {_often(column(upper, 'linear_class', 7))}.",
    )


def _often(shares: Floats) -> str:
    return "every resample" if shares.min() == 1.0 else f"at least {shares.min():.1%} of the resamples"
