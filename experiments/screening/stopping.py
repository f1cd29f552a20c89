"""
Stopping rules on 24 reviews of four kinds: how often the target is reached, and what that costs.

The reviews are replayed in the order of corank from ten starts each; every rule then sees the finds only. Constants of
the default are chosen on three kinds of review and judged on the fourth. Rules are also replayed on random, shuffled
and thinned orders, on the order of a linear SVM, and on simulated reviews.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from corank_lab.records.records import read_records
from corank_lab.screening import make_views
from corank_lab.screening.stopping.rules import DEFAULT_RULE, STOPPING_RULES, AgreeRule, stopping_rule
from corank_lab.screening.stopping.urns import p_missed
from experiments.datasets.catalog import dataset
from experiments.options import ExperimentOptions
from experiments.screening.order import CORANK, SVM, Collection, flags, read_in_order

KINDS = {
    "SYNERGY": ("Donners_2021", "Meijboom_2021", "Menon_2022", "Nelson_2002", "Oud_2018", "Sep_2021"),
    "Cohen": (
        "ACEInhibitors", "Antihistamines", "BetaBlockers", "Opiods", "ProtonPumpInhibitors", "UrinaryIncontinence",
    ),
    "software": ("Kitchenham_2010", "Nagtegaal_2019"),
    "CLEF": (
        "CD007427", "CD008691", "CD008760", "CD009135", "CD009372", "CD009786", "CD010023", "CD010438", "CD010542",
        "CD010633",
    ),
}  # fmt: skip
"""Reviews of each kind."""
QUICK = ("Donners_2021", "Sep_2021", "Antihistamines", "UrinaryIncontinence", "CD008760", "CD010542")
SMALL = (*QUICK, "Nelson_2002", "CD009135", "CD010023")
"""Reviews of less than 1,000 records, for the linear SVM, which is refitted after every answer."""
TARGET = 0.95
CONFIDENCES, LIMITS = (0.8, 0.9, 0.95, 0.975), (1.0, 0.5, 0.37, 0.25, 0.2)
"""Probability that the model demands, and largest p-value of the test: the constants of the default that were tried."""

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Orders = dict[tuple[str, int], Flags]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: ten starts a review by default; quick runs have two starts of six small reviews.
    Returns: tables of all rules, of the default by review, of the nested choice, and of other orders.
    """
    reviews = [name for names in KINDS.values() for name in names if not options.quick or name in QUICK]
    starts = options.repeats or (2 if options.quick else 10)
    options.expect(len(reviews) * starts)
    orders = {(name, seed): _order(options, name, seed, CORANK) for name in reviews for seed in range(starts)}
    outcomes = {rule: Outcomes(orders, rule) for rule in STOPPING_RULES}
    tables = [_rules(outcomes, starts), _costs(outcomes), _by_review(outcomes), _nested(orders)]
    tables.append(_elsewhere(options, orders, [name for name in SMALL if name in reviews]))
    worst = outcomes[DEFAULT_RULE].worst
    return Report(
        "Stopping rules on 24 reviews",
        f"Target: {TARGET:.0%} of the relevant records at 95 % confidence. {len(reviews)} reviews of four kinds, "
        f"{starts} starts each, in the order of corank; a start is one relevant and one irrelevant record. Reached: "
        "share of the starts in which the recall at the stop is at least the target. Read: share of the records read "
        "at the stop. Excess: read beyond the smallest number of records that reaches the target.",
        tuple(tables),
        (
            f"The default, {DEFAULT_RULE!r}, reaches the target in {outcomes[DEFAULT_RULE].reached().mean():.1%} of "
            f"the starts, and in at least {worst:.0%} of the starts of every review, after reading "
            f"{outcomes[DEFAULT_RULE].read().mean():.3f} of the records.",
        ),
    )


class Outcomes:
    """
    What one rule does on some orders.

    orders: whether each record is relevant, in the order of reading, by review and start.
    rule: its name.
    """

    def __init__(self, orders: Orders, rule: str) -> None:
        self.orders = orders
        self._stops = {
            key: stopping_rule(rule, len(found), TARGET).replay(found, np.random.default_rng(key[1]))
            for key, found in orders.items()
        }

    def _values(self, value: Callable[[tuple[str, int]], float], names: tuple[str, ...] | None) -> Floats:
        """One mean per review."""
        reviews = dict.fromkeys(name for name, _ in self.orders if names is None or name in names)
        return np.array([np.mean([value(key) for key in self.orders if key[0] == name]) for name in reviews])

    def reached(self, names: tuple[str, ...] | None = None) -> Floats:
        """Return the share of starts of each review that reach the target."""
        return self._values(lambda key: self.recall(key) >= TARGET - 1e-9, names)

    def recalls(self, names: tuple[str, ...] | None = None) -> Floats:
        """Return the mean recall at the stop of each review."""
        return self._values(self.recall, names)

    def read(self, names: tuple[str, ...] | None = None) -> Floats:
        """Return the mean share of records read at the stop of each review."""
        return self._values(lambda key: self._stops[key][0] / len(self.orders[key]), names)

    def needed(self, names: tuple[str, ...] | None = None) -> Floats:
        """Return the mean share of records that the target needs."""
        return self._values(lambda key: place_needed(self.orders[key]) / len(self.orders[key]), names)

    def recall(self, key: tuple[str, int]) -> float:
        """Return the recall at the stop of one replay."""
        return self._stops[key][1] / (1 + int(self.orders[key].sum()))

    @cached_property
    def worst(self) -> float:
        """The smallest share of starts of a review that reach the target."""
        return float(self.reached().min())

    @cached_property
    def lowest(self) -> float:
        """The lowest recall at a stop."""
        return min(self.recall(key) for key in self.orders)


def place_needed(found: Flags) -> int:
    """Return the number of records after which the target is reached; one more relevant record is known."""
    finds = 1 + np.cumsum(found)
    return int(np.argmax(finds >= TARGET * finds[-1] - 1e-9)) + 1


def _order(options: ExperimentOptions, name: str, seed: int, way: str) -> Flags:
    key = {"experiment": "screening-stopping", "review": name, "what": way, "start": seed}
    return flags(options.result(key, lambda: read_in_order(way, _collection(name), seed)["found"]))


@cache
def _collection(name: str) -> Collection:
    kind = "synergy" if name in KINDS["SYNERGY"] else "reviews"
    records = read_records(dataset(kind).path(f"{name}.csv"))
    return Collection(records, make_views(records), records.labels == 1)


def _kinds(outcomes: Outcomes) -> dict[str, tuple[str, ...]]:
    present = {name for name, _ in outcomes.orders}
    return {kind: names for kind, names in KINDS.items() if present & set(names)}


def _rules(outcomes: dict[str, Outcomes], starts: int) -> ReportTable:
    kinds = _kinds(outcomes[DEFAULT_RULE])
    rows: list[tuple[Cell, ...]] = [
        (
            rule, STOPPING_RULES[rule].evidence, *(float(found.reached(names).mean()) for names in kinds.values()),
            float(found.reached().mean()), int((found.reached() < 0.9 - 1e-9).sum()), found.lowest,
            float(found.recalls().mean()), float(found.read().mean()), float((found.read() - found.needed()).mean()),
        )
        for rule, found in outcomes.items()
    ]  # fmt: skip
    return ReportTable(
        f"All rules: target reached by kind of review, {starts} starts each",
        ("rule", "evidence", *kinds, "all", "reviews failed", "least recall", "mean recall", "read", "excess"),
        tuple(rows),
        digits=3,
        note="Means over reviews. Reviews failed: number of reviews in which more than one of ten starts ends below "
        "the target.",
    )


def _costs(outcomes: dict[str, Outcomes]) -> ReportTable:
    kinds = _kinds(outcomes[DEFAULT_RULE])
    first = outcomes[DEFAULT_RULE]
    rows: list[tuple[Cell, ...]] = [("needed", *(float(first.needed(names).mean()) for names in kinds.values()))]
    rows += [(rule, *(float(one.read(names).mean()) for names in kinds.values())) for rule, one in outcomes.items()]
    return ReportTable("Share of the records read at the stop", ("rule", *kinds), tuple(rows), digits=3)


def _by_review(outcomes: dict[str, Outcomes]) -> ReportTable:
    shown = (DEFAULT_RULE, "decline", "hypergeometric")
    first = outcomes[DEFAULT_RULE]
    reviews = dict.fromkeys(name for name, _ in first.orders)
    rows: list[tuple[Cell, ...]] = []
    for name in reviews:
        found = next(found for (review, _), found in first.orders.items() if review == name)
        cells = [
            float(value)
            for rule in shown
            for value in (*outcomes[rule].reached((name,)), *outcomes[rule].read((name,)))
        ]
        rows.append((name, len(found) + 2, int(found.sum()) + 1, float(first.needed((name,))[0]), *cells))
    columns = [f"{rule}, {what}" for rule in shown for what in ("reached", "read")]
    return ReportTable("Review by review", ("review", "records", "relevant", "needed", *columns), tuple(rows), digits=3)


def _nested(orders: Orders) -> ReportTable:
    """Choose the constants of the default on the other kinds, where no start may fail; judge them on each kind."""
    traces = {key: _trace(found) for key, found in orders.items()}
    rows: list[tuple[Cell, ...]] = []
    for free in ("both constants", "the limit of the test, at a confidence of .95"):
        grid = [(c, p) for c in CONFIDENCES for p in LIMITS if free == "both constants" or c == 0.95]
        for kind, names in KINDS.items():
            inside = [key for key in orders if key[0] in names]
            outside = [key for key in orders if key[0] not in names]
            if not inside or not outside:
                continue
            safe = [one for one in grid if all(_stop(traces[key], *one)[1] for key in outside)] or [(0.975, 0.2)]
            chosen = min(safe, key=lambda one: np.mean([_stop(traces[key], *one)[0] for key in outside]))
            reached = [_stop(traces[key], *chosen)[1] for key in inside]
            read = float(np.mean([_stop(traces[key], *chosen)[0] for key in inside]))
            rows.append((free, kind, f"{chosen[0]:g}", f"{chosen[1]:g}", float(np.mean(reached)), read))
    return ReportTable(
        "Nested choice: constants chosen on the other kinds, judged on this one",
        ("chosen", "kind", "confidence of the model", "limit of p", "reached", "read"),
        tuple(rows),
        digits=3,
        note="The cheapest constants with which every start of the other kinds reaches the target. Means over starts.",
    )


Trace = tuple[list[float], list[float], list[float], list[bool]]


def _trace(found: Flags) -> Trace:
    """Share read, probability of the model, p-value, and whether the target is reached, at every look."""
    rule, needed = AgreeRule(len(found), TARGET), place_needed(found)
    finds = (np.flatnonzero(found) + 1).tolist()
    trace: Trace = ([], [], [], [])
    for look in rule.looks:
        seen = [place for place in finds if place <= look]
        trace[0].append(look / len(found))
        trace[1].append(rule.rates.probability(seen, look, 1, TARGET))
        trace[2].append(p_missed(seen, look, rule.n, 1, TARGET))
        trace[3].append(look >= needed)
    return trace


def _stop(trace: Trace, confidence: float, limit: float) -> tuple[float, bool]:
    """Share read at the stop, and whether the target is reached there."""
    for share, probability, p, reached in zip(*trace, strict=True):
        if probability >= confidence and p <= limit:
            return share, reached
    return 1.0, True


def _elsewhere(options: ExperimentOptions, orders: Orders, small: list[str]) -> ReportTable:
    rng = np.random.default_rng([options.seed, 7])
    starts = {key: found for key, found in orders.items() if key[1] < 3}
    others: dict[str, Orders] = {
        "random order": {key: rng.permutation(found) for key, found in starts.items()},
        "positions shifted by up to a tenth": {key: _shifted(found, rng) for key, found in starts.items()},
        "half of the relevant records removed": {key: _thinned(found, rng) for key, found in starts.items()},
        "linear SVM, small reviews": {
            (name, seed): _order(options, name, seed, SVM) for name in small for seed in (0, 1)
        },
        "simulated, power laws": _simulated(rng, 0.0, 20 if options.quick else 200),
        "simulated, a twentieth anywhere": _simulated(rng, 0.05, 20 if options.quick else 200),
    }
    rows: list[tuple[Cell, ...]] = []
    for what, some in others.items():
        for rule in (DEFAULT_RULE, "decline", "hypergeometric"):
            found = Outcomes(some, rule)
            reached = np.mean([found.recall(key) >= TARGET - 1e-9 for key in some])
            rows.append(
                (what, rule, len(some), float(reached), float(found.read().mean()), float(found.needed().mean()))
            )
    return ReportTable(
        "Other orders", ("order", "rule", "replays", "reached", "read", "needed"), tuple(rows), digits=3,
        note="Three starts of each review; two of each small one for the linear SVM. Simulated reviews have 300 to "
        "3,000 records, 10 to 150 of them relevant.",
    )  # fmt: skip


def _shifted(found: Flags, rng: np.random.Generator) -> Flags:
    n = len(found)
    return found[np.argsort(np.arange(n) + rng.uniform(-0.1 * n, 0.1 * n, n))]


def _thinned(found: Flags, rng: np.random.Generator) -> Flags:
    thin = found[~found | (rng.random(len(found)) < 0.5)]
    return thin if thin.any() else found


def _simulated(rng: np.random.Generator, anywhere: float, n_reviews: int) -> Orders:
    """Reviews whose finds follow a power law, with a share of the relevant records anywhere."""
    orders: Orders = {}
    for at in range(n_reviews):
        n = int(rng.integers(300, 3000))
        n_relevant = round(10 * 15 ** rng.random())
        rate = (np.arange(1, n + 1) / n + math.exp(rng.uniform(-5.0, -1.0))) ** -rng.uniform(1.5, 5.0)
        rate = (1 - anywhere) * rate / rate.sum() + anywhere / n
        found = np.zeros(n, dtype=bool)
        found[rng.choice(n, n_relevant, replace=False, p=rate)] = True
        orders[f"simulated {at}", at] = found
    return orders
