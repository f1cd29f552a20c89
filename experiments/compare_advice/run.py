"""
How good is the advice of `corank compare` when few queries are judged?

A draw takes 10 to 80 queries of a judged collection, compares methods on them as `corank compare` does (tuning inside,
folds of whole queries), and fits each on all drawn queries. The regret of a rule is the nDCG@10 of the best of these
models on the remaining queries minus that of the chosen one. What the rule assumes about methods was chosen on five
collections; the tables are from five others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.comparison.winner import recommend
from corank.tables import Cell, ReportTable
from experiments.compare_advice.collections import CHOSEN_ON, JUDGED_ON
from experiments.compare_advice.replay import CANDIDATES, METRIC, SIZES, replay
from experiments.compare_advice.rules import RULES, shrunk
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

DRAWS = 4
"""Draws of each size; they have even numbers, odd ones are left for trying other rules."""
PSEUDOS = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0)
"""Candidates for the weight of other collections, in queries."""

LIMIT = 0.05
"""Largest offset: what the mean of columns is worth depends on the columns, so that no prior should exclude it."""

BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.01)
_BOOTSTRAPS = 2000


@dataclass(frozen=True, eq=False)
class Draw:
    """
    One draw of queries.

    inside: values of every drawn query, out of fold.
    outside: mean over the remaining queries.
    """

    collection: str
    n: int
    number: int
    inside: dict[str, Floats]
    outside: dict[str, float]

    def regret(self, method: str) -> float:
        """Return what a choice costs."""
        return max(self.outside.values()) - self.outside[method]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 4 draws by default; quick runs make 1 of 10 and 20 queries.
    Returns: regret of each rule, by number of queries and by collection; what was chosen; whether probabilities hold.
    """
    draws = options.repeats or (1 if options.quick else DRAWS)
    sizes = SIZES[:2] if options.quick else SIZES
    options.expect(draws * len(sizes) * (len(CHOSEN_ON) + len(JUDGED_ON)))
    chosen_on, judged_on = (_draws(options, list(names), sizes, draws) for names in (CHOSEN_ON, JUDGED_ON))
    regrets = {name: np.array([one.regret(rule(one.inside)) for one in judged_on]) for name, rule in RULES.items()}
    return Report(
        "Advice of compare: what does its choice cost?",
        f"{METRIC}, {draws} draws of each size and collection; {len(CANDIDATES)} methods: {', '.join(CANDIDATES)}. "
        "Regret: the best of the fitted methods on the remaining queries minus the chosen one. Intervals (95 %) are "
        "bootstrapped over draws within collections.",
        (
            _regret_table(judged_on, regrets, sizes),
            _collection_table(judged_on, regrets),
            _calibration_table(judged_on),
            _offset_table(chosen_on, sizes),
            _pseudo_table(chosen_on, sizes),
        ),
        _findings(judged_on, regrets, sizes),
    )


def _draws(options: ExperimentOptions, names: Sequence[str], sizes: Sequence[int], draws: int) -> list[Draw]:
    found = []
    for at in range(0, 2 * draws, 2):
        for n in sizes:
            for name in names:
                key = {"collection": name, "queries": n, "draw": at}
                value = options.result(key, partial(replay, name, n, at, options.seed))
                if value is not None:
                    inside = {one: np.array(value[one]["inside"]) for one in CANDIDATES}
                    found.append(Draw(name, n, at, inside, {one: value[one]["outside"] for one in CANDIDATES}))
    return found


def _interval(draws: Sequence[Draw], values: Floats) -> tuple[float, float]:
    """Return the bootstrap interval of the mean of collection means; draws are resampled within collections."""
    rng = np.random.default_rng(0)
    parts = [
        values[[one.collection == name for one in draws]] for name in dict.fromkeys(one.collection for one in draws)
    ]
    means = np.mean(
        [part[rng.integers(len(part), size=(_BOOTSTRAPS, len(part)))].mean(axis=1) for part in parts], axis=0
    )
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _mean(draws: Sequence[Draw], values: Floats) -> float:
    """Return the mean of collection means."""
    names = list(dict.fromkeys(one.collection for one in draws))
    return float(np.mean([values[[one.collection == name for one in draws]].mean() for name in names]))


def _of_size(draws: Sequence[Draw], n: int) -> NDArray[np.bool_]:
    return np.array([one.n == n for one in draws])


def _regret_table(draws: Sequence[Draw], regrets: Mapping[str, Floats], sizes: Sequence[int]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    new = next(iter(regrets.values()))
    for rule, values in regrets.items():
        cells: list[Cell] = [rule]
        for n in sizes:
            kept = _of_size(draws, n)
            some = [one for one, is_kept in zip(draws, kept, strict=True) if is_kept]
            cells.append(_mean(some, values[kept]))
        low, high = _interval(draws, values - new)
        cells += [_mean(draws, values), f"{_mean(draws, values - new):+.4f} ({low:+.4f} to {high:+.4f})"]
        rows.append(tuple(cells))
    columns = ("rule", *(f"{n} queries" for n in sizes), "all", "minus the new rule")
    return ReportTable("Mean regret on collections that chose nothing", columns, tuple(rows))


def _collection_table(draws: Sequence[Draw], regrets: Mapping[str, Floats]) -> ReportTable:
    names = list(dict.fromkeys(one.collection for one in draws))
    rows: list[tuple[Cell, ...]] = [
        (rule, *(float(values[[one.collection == name for one in draws]].mean()) for name in names))
        for rule, values in regrets.items()
    ]
    return ReportTable("Mean regret by collection, all sizes", ("rule", *names), tuple(rows))


def _calibration_table(draws: Sequence[Draw]) -> ReportTable:
    """Compare stated probabilities with the share of rivals that are behind on the remaining queries."""
    stated, held = [], []
    for one in draws:
        winner, _, expected = recommend(one.inside, np.random.default_rng(0))
        for rival in CANDIDATES:
            if rival != winner:
                stated.append(expected.p_above(winner, rival))
                held.append(one.outside[winner] > one.outside[rival])
    p, true = np.array(stated), np.array(held, dtype=np.float64)
    at = np.digitize(p, BINS)
    rows = tuple(
        (f"{'below' if b == 0 else 'from'} {BINS[max(b - 1, 0)]:g}", int((at == b).sum()), float(p[at == b].mean()),
         float(true[at == b].mean()))
        for b in range(len(BINS)) if (at == b).any()
    )  # fmt: skip
    return ReportTable(
        "Stated probability that the recommended method is better than another one",
        ("stated", "pairs", "mean stated", "better on the remaining queries"), rows, digits=3,
    )  # fmt: skip


def _differences(draws: Sequence[Draw], n: int) -> Floats:
    """Return the results on remaining queries minus the median of learnt methods, shape (n_collections, n_methods)."""
    some = [one for one in draws if one.n == n]
    values = np.array([[one.outside[name] for name in CANDIDATES] for one in some])
    values -= np.median(values[:, 1:], axis=1, keepdims=True)
    names = list(dict.fromkeys(one.collection for one in some))
    return np.array([values[[one.collection == name for one in some]].mean(axis=0) for name in names])


def offsets_of(draws: Sequence[Draw], n: int) -> dict[str, float]:
    """Return the median over collections of `_differences`, at most `LIMIT`; an unusual collection counts little."""
    medians = np.clip(np.median(_differences(draws, n), axis=0), -LIMIT, LIMIT)
    return dict(zip(CANDIDATES, medians.tolist(), strict=True))


def variances(draws: Sequence[Draw], n: int) -> tuple[float, float]:
    """Return σ², of a difference of learnt methods between queries, and its variance between collections."""
    learnt, some = CANDIDATES[1:], [one for one in draws if one.n == n]
    within = [np.var(one.inside[a] - one.inside[b], ddof=1) for one in some for a, b in combinations(learnt, 2)]
    V = _differences(draws, n)[:, 1:]
    between = [np.var(V[:, a] - V[:, b], ddof=1) for a, b in combinations(range(len(learnt)), 2)]
    return float(np.mean(within)), float(np.mean(between))


def _offset_table(draws: Sequence[Draw], sizes: Sequence[int]) -> ReportTable:
    found = {n: offsets_of(draws, n) for n in sizes}
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, *(found[n][name] for n in sizes)) for name in CANDIDATES)
    return ReportTable(
        "Result of each method minus the median of the learnt ones, on the collections that the rule was chosen on",
        ("method", *(f"{n} queries" for n in sizes)), rows,
        note="`corank.comparison.winner` holds these figures.", formats=("", *("+.4f" for _ in sizes)),
    )  # fmt: skip


def _pseudo_table(draws: Sequence[Draw], sizes: Sequence[int]) -> ReportTable:
    """Return regrets for each weight of other collections; offsets of a collection come from the other ones."""
    names = list(dict.fromkeys(one.collection for one in draws))
    rows: list[tuple[Cell, ...]] = []
    for pseudo in PSEUDOS:
        regrets = np.empty(len(draws))
        for at, one in enumerate(draws):
            others = [other for other in draws if other.collection != one.collection]
            regrets[at] = one.regret(shrunk(one.inside, offsets_of(others, one.n), pseudo))
        by_size = [_mean([one for one in draws if one.n == n], regrets[_of_size(draws, n)]) for n in sizes]
        rows.append((pseudo, *by_size, _mean(draws, regrets)))
    ratios = [variances(draws, n) for n in sizes]
    note = "Variance of a difference between queries, by its variance between collections: " + ", ".join(
        f"{within:.4f} / {between:.5f} = {within / between:.1f} at {n} queries"
        for n, (within, between) in zip(sizes, ratios, strict=True)
    )
    return ReportTable(
        f"Choice of the weight of other collections ({', '.join(names)}; each with the offsets of the others)",
        ("queries that they count", *(f"{n} queries" for n in sizes), "all"), tuple(rows), note=f"{note}.",
        formats=("g", *(".4f" for _ in (*sizes, "all"))),
    )  # fmt: skip


def _findings(draws: Sequence[Draw], regrets: Mapping[str, Floats], sizes: Sequence[int]) -> tuple[str, ...]:
    new, *others = regrets
    found = []
    for rule in others:
        low, high = _interval(draws, regrets[rule] - regrets[new])
        verdict = "higher" if low > 0 else "lower" if high < 0 else "not significantly different"
        mean = _mean(draws, regrets[rule] - regrets[new])
        found.append(
            f"Regret of '{rule}' minus that of the new rule: {mean:+.4f} ({low:+.4f} to {high:+.4f}), {verdict}."
        )
    return tuple(found)
