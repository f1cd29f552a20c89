"""
How good is the advice of `corank compare` when few queries are judged?

A draw takes 10 to 80 queries of a judged collection, compares methods on them as `corank compare` does (tuning inside,
folds of whole queries), and fits each on all drawn queries. The regret of a rule is the nDCG@10 of the best of these
models on the remaining queries minus that of the chosen one. What the rule assumes about methods is learnt, for each
collection, from the other collections.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from corank.comparison.advice import LIKELY, MARGIN, Prior, recommend
from corank.comparison.report import Report
from corank.data.durable.atomic import atomic_file
from corank.tables import Cell, ReportTable
from experiments.compare_advice.collections import COLLECTIONS
from experiments.compare_advice.replay import CANDIDATES, METRIC, SIZES, replay
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

DRAWS = 2
INFLATIONS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.01)
_BOOTSTRAPS = 2000
NEW, FIXED = "corank compare", "always the method that was best on the other collections"
FEWER = (
    CANDIDATES[:-1], ("columns", "rankrls", "lcra", "lightgbm"), ("columns", "rankrls", "lcra", "auto"),
    ("lightgbm", "lightgbm-tuned", "auto"), ("rankrls", "rankrls-gaussian", "lightgbm-tuned"),
)  # fmt: skip
"""Candidates of users who leave some out."""
RESULTS = "Results on remaining queries: what other collections say"


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of queries: values of every drawn query, out of fold, and means over the remaining queries."""

    collection: str
    n: int
    inside: dict[str, Floats]
    outside: dict[str, float]

    def regret(self, method: str) -> float:
        """Return what a choice costs."""
        return max(self.outside.values()) - self.outside[method]

    def among(self, names: Sequence[str]) -> Draw:
        """Return the draw of fewer candidates."""
        return replace(self, inside={n: self.inside[n] for n in names}, outside={n: self.outside[n] for n in names})


def without(draws: Sequence[Draw], *names: str) -> list[Draw]:
    """Leave collections out."""
    return [draw for draw in draws if draw.collection not in names]


def results(draws: Sequence[Draw]) -> dict[tuple[str, int], Floats]:
    """Return the results of all methods by collection and number of queries, averaged over draws."""
    keys = dict.fromkeys((draw.collection, draw.n) for draw in draws)
    return {
        key: np.mean(
            [[draw.outside[name] for name in CANDIDATES] for draw in draws if (draw.collection, draw.n) == key], axis=0
        )
        for key in keys
    }


def as_prior(draws: Sequence[Draw], inflation: float = 2.0) -> Prior:
    """Return the results of other collections, and the spread of differences of learnt methods between queries."""
    table, pairs = results(draws), list(combinations(CANDIDATES[1:], 2))
    within = np.mean([np.var(d.inside[a] - d.inside[b], ddof=1) for d in draws for a, b in pairs])
    sizes, values = np.array([float(n) for _, n in table]), np.round(list(table.values()), 4)
    return Prior(CANDIDATES, sizes, values, round(float(np.sqrt(within)), 3), inflation)


def learn(draws: Sequence[Draw]) -> Prior:
    """Choose c by the likelihood of stated probabilities, each collection by the results of the others."""
    parts = {name: as_prior(without(draws, name)) for name in dict.fromkeys(draw.collection for draw in draws)}

    def likelihood(inflation: float) -> float:
        priors = {name: replace(prior, inflation=inflation) for name, prior in parts.items()}
        p, held = stated(draws, priors)
        p = np.clip(p, 1e-3, 1.0 - 1e-3)
        return float(np.sum(np.where(held, np.log(p), np.log1p(-p))))

    return as_prior(draws, max(INFLATIONS, key=likelihood))


def stated(draws: Sequence[Draw], priors: Mapping[str, Prior]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the probability that the recommended method is better than each other one, and whether it was."""
    p, held = [], []
    for draw in draws:
        winner, _, expected = recommend(draw.inside, prior=priors[draw.collection])
        for rival in CANDIDATES:
            if rival != winner:
                p.append(expected.p_above(winner, rival))
                held.append(draw.outside[winner] > draw.outside[rival])
    return np.array(p), np.array(held)


def best_mean(draw: Draw) -> str:
    """Return the method with the best mean; the simpler one of equals."""
    return max(draw.inside, key=lambda name: float(draw.inside[name].mean()))


def one_standard_error(draw: Draw) -> str:
    """Return the simplest method whose mean is within one standard error of the best mean."""
    best = draw.inside[best_mean(draw)]
    least = best.mean() - best.std(ddof=1) / np.sqrt(len(best))
    return next(name for name, values in draw.inside.items() if values.mean() >= least)


def cheaper_if_unsure(draw: Draw, prior: Prior) -> str:
    """Return the simplest method that the recommended one is not likely to beat, nor by more than the margin."""
    winner, _, expected = recommend(draw.inside, prior=prior)
    near = (name for name in CANDIDATES if expected.difference(winner, name) < MARGIN)
    return next(name for name in near if name == winner or expected.p_above(winner, name) < LIKELY)


def best_of_others(draw: Draw, draws: Sequence[Draw]) -> str:
    """Return the candidate with the best mean on other collections."""
    others = np.mean(list(results(without(draws, draw.collection)).values()), axis=0)
    return max(draw.outside, key=lambda name: float(others[CANDIDATES.index(name)]))


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 2 draws by default; quick runs make 1 of 10 and 20 queries.
    Returns: regret of each rule, by number of queries and by collection; whether probabilities hold; what is learnt.
    """
    n_draws = options.repeats or (1 if options.quick else DRAWS)
    sizes = SIZES[:2] if options.quick else SIZES
    options.expect(n_draws * len(sizes) * len(COLLECTIONS))
    draws = []
    for number in range(n_draws):
        for name in COLLECTIONS:
            for n in sizes:
                key = {"collection": name, "queries": n, "draw": number}
                value = options.result(key, partial(replay, name, n, number, options.seed))
                if value is not None:
                    inside = {method: np.array(value[method]["inside"]) for method in CANDIDATES}
                    draws.append(Draw(name, n, inside, {method: value[method]["outside"] for method in CANDIDATES}))
    everything = learn(draws)
    with atomic_file(options.folder / "advice.json", overwrite=True) as scratch:
        record = {**vars(everything), "sizes": everything.sizes.tolist(), "results": everything.results.tolist()}
        scratch.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return report(draws, sizes, n_draws, everything)


def report(draws: Sequence[Draw], sizes: Sequence[int], n_draws: int, everything: Prior) -> Report:
    """Return the tables of all draws."""
    names = list(dict.fromkeys(draw.collection for draw in draws))
    priors = {name: learn(without(draws, name)) for name in names}
    fixed = {draw.collection: best_of_others(draw, draws) for draw in draws}
    rules: dict[str, Callable[[Draw], str]] = {
        NEW: lambda draw: recommend(draw.inside, prior=priors[draw.collection])[0],
        f"the simplest within {MARGIN:g}, not beaten with {LIKELY:g}": lambda draw: cheaper_if_unsure(
            draw, priors[draw.collection]
        ),
        "best mean": best_mean,
        "one standard error": one_standard_error,
        FIXED: lambda draw: fixed[draw.collection],
        **{f"always {name}": partial(_named, name) for name in CANDIDATES},
    }
    regrets = {rule: np.array([draw.regret(choose(draw)) for draw in draws]) for rule, choose in rules.items()}
    p, held = stated(draws, priors)
    return Report(
        "Advice of compare: what does its choice cost?",
        f"{METRIC}, {n_draws} draws of each size and collection; {len(CANDIDATES)} methods: {', '.join(CANDIDATES)}. "
        "Regret: the best of the fitted methods on the remaining queries minus the chosen one. What the rule assumes "
        "is learnt from the other collections. Intervals (95 %) are bootstrapped over collections.",
        (
            _regret_table(draws, regrets, sizes),
            _fewer_table(draws, priors),
            _collection_table(draws, regrets, names),
            _calibration_table(p, held),
            _results_table(draws, everything),
        ),
        _findings(draws, regrets),
    )


def _named(name: str, draw: Draw) -> str:
    return name


def _mean(draws: Sequence[Draw], values: Floats) -> float:
    """Return the mean of collection means."""
    names = list(dict.fromkeys(draw.collection for draw in draws))
    return float(np.mean([values[[draw.collection == name for draw in draws]].mean() for name in names]))


def _interval(draws: Sequence[Draw], values: Floats) -> tuple[float, float]:
    """Return the bootstrap interval of the mean of collection means; collections are resampled."""
    rng, names = np.random.default_rng(0), dict.fromkeys(draw.collection for draw in draws)
    means = np.array([values[[draw.collection == name for draw in draws]].mean() for name in names])
    resampled = means[rng.integers(len(means), size=(_BOOTSTRAPS, len(means)))].mean(axis=1)
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)


def _regret_table(draws: Sequence[Draw], regrets: Mapping[str, Floats], sizes: Sequence[int]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for rule, values in regrets.items():
        of_size = [np.array([draw.n == n for draw in draws]) for n in sizes]
        cells = [
            _mean([draw for draw, is_kept in zip(draws, kept, strict=True) if is_kept], values[kept])
            for kept in of_size
        ]
        low, high = _interval(draws, values - regrets[NEW])
        gap = f"{_mean(draws, values - regrets[NEW]):+.4f} ({low:+.4f} to {high:+.4f})"
        rows.append((rule, *cells, _mean(draws, values), gap))
    columns = ("rule", *(f"{n} queries" for n in sizes), "all", f"minus {NEW}")
    return ReportTable("Mean regret, each collection by what the others say", columns, tuple(rows))


def _fewer_table(draws: Sequence[Draw], priors: Mapping[str, Prior]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for names in FEWER:
        some = [draw.among(names) for draw in draws]
        chosen = (
            [recommend(draw.inside, prior=priors[draw.collection])[0] for draw in some],
            [best_mean(draw) for draw in some],
            [best_of_others(draw, draws) for draw in some],
        )
        means = [
            _mean(some, np.array([draw.regret(name) for draw, name in zip(some, choices, strict=True)]))
            for choices in chosen
        ]
        rows.append((", ".join(names), *means))
    return ReportTable("Mean regret with fewer candidates", ("candidates", NEW, "best mean", FIXED), tuple(rows))


def _collection_table(draws: Sequence[Draw], regrets: Mapping[str, Floats], names: Sequence[str]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = [
        (name, *(float(values[[draw.collection == name for draw in draws]].mean()) for values in regrets.values()))
        for name in names
    ]
    return ReportTable("Mean regret by collection, all sizes", ("collection", *regrets), tuple(rows))


def _calibration_table(p: Floats, held: NDArray[np.bool_]) -> ReportTable:
    bins = np.digitize(p, BINS)
    rows = tuple(
        (
            f"{'below' if b == 0 else 'from'} {BINS[max(b - 1, 0)]:g}", int((bins == b).sum()),
            float(p[bins == b].mean()), float(held[bins == b].mean()),
        )
        for b in range(len(BINS))
        if (bins == b).any()
    )  # fmt: skip
    return ReportTable(
        "Stated probability that the recommended method is better than another one",
        ("stated", "pairs", "mean stated", "better on the remaining queries"), rows, digits=3,
    )  # fmt: skip


def _results_table(draws: Sequence[Draw], prior: Prior) -> ReportTable:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, n, *values) for (name, n), values in zip(results(draws), prior.results.tolist(), strict=True)
    )
    note = (
        f"σ = {prior.spread:g}, c = {prior.inflation:g}. These figures are "
        "`src/corank/comparison/advice.json`, which the experiment writes beside its report."
    )
    return ReportTable(RESULTS, ("collection", "queries", *CANDIDATES), rows, note=note)


def _findings(draws: Sequence[Draw], regrets: Mapping[str, Floats]) -> tuple[str, ...]:
    findings = []
    for rule, values in regrets.items():
        if rule != NEW:
            low, high = _interval(draws, values - regrets[NEW])
            verdict = "higher" if low > 0 else "lower" if high < 0 else "not significantly different"
            mean = _mean(draws, values - regrets[NEW])
            findings.append(
                f"Regret of '{rule}' minus that of {NEW}: {mean:+.4f} ({low:+.4f} to {high:+.4f}), {verdict}."
            )
    return tuple(findings)
