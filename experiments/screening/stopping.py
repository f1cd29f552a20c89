"""
Stopping rules on 24 reviews of four kinds and on others that differ: how often the target is reached, and the cost.

The reviews are replayed in the order of corank from several starts; rules then see the finds only. The constants of the
default are chosen on all groups but one and judged on that one. Further groups are reviews with wrong labels, and
simulated ones: many relevant records, two topics of which one comes late, and relevant records that lie anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from corank_lab.records.records import read_records
from corank_lab.screening import make_views
from corank_lab.screening.model import ScreeningModel
from corank_lab.screening.simulate import start_pair
from corank_lab.screening.stopping.rates import RateModel
from corank_lab.screening.stopping.rules import AGREEMENT, STOPPING_RULES, STRICT, stopping_rule
from corank_lab.screening.stopping.urns import p_missed
from experiments.datasets.catalog import dataset
from experiments.options import ExperimentOptions
from experiments.screening.order import CORANK, Collection, flags

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
SMALL = (*QUICK, "Nelson_2002", "CD009135", "CD010023", "Menon_2022")
"""Reviews of less than 1,000 records, of which some labels are made wrong."""
ANYWHERE = "a twentieth anywhere"
"""A group in which no rule with few finds can know what is missing; it does not take part in the choice."""
TARGET = 0.95
MODELS = {"curves alone": (math.inf, 0.0), "allows for misfit": (100, 0.5)}
"""Values of enough and misfit of the model; the second is that of the default."""
LIMITS: dict[str, Callable[[int, float], float]] = {
    "1": lambda finds, alpha: 1.0,
    "1/4": lambda finds, alpha: AGREEMENT,
    "15/r": lambda finds, alpha: max(alpha, min(AGREEMENT, STRICT / max(finds, 1))),
    "alpha": lambda finds, alpha: alpha,
}
"""Largest p-value of the urn test, by the number of finds and the allowed error; the third is that of the default."""
CONFIDENCES = (0.8, 0.9, 0.95, 0.98)
Choice = tuple[str, float, str]
CHOSEN: Choice = ("allows for misfit", 0.95, "15/r")

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Look:
    """What rules know of an order after some records, and the truth."""

    read: float  # share of the records
    finds: int
    p: float  # of the urn test
    probability: dict[str, float]  # that the target is reached, by each model
    is_reached: bool
    recall: float
    interval: tuple[float, float] | None  # at every fifth look, from the fifth find on


Trace = list[Look]
Groups = dict[str, dict[str, list[Trace]]]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: three starts a review by default; quick runs have two starts of six small reviews.
    Returns: tables of all rules, of the nested choice, of confidence against reading, and of intervals.
    """
    reviews = [name for names in KINDS.values() for name in names if not options.quick or name in QUICK]
    starts = options.repeats or (2 if options.quick else 3)
    small = [name for name in SMALL if name in reviews]
    options.expect(len(reviews) * starts + 2 * len(small))
    orders = {(name, seed): _order(options, name, seed) for name in reviews for seed in range(starts)}
    wrong = {(name, seed): _order(options, name, seed, share=0.1) for name in small for seed in (0, 1)}
    n_simulated = 4 if options.quick else 15
    groups: Groups = {}
    for kind, names in KINDS.items():
        if set(names) & set(reviews):
            groups[kind] = _traced(options, kind, {key: orders[key] for key in orders if key[0] in names})
    kinds = tuple(groups)
    groups["one label in ten wrong"] = _traced(options, "one label in ten wrong", wrong)
    for name in ("many relevant records", "two topics", ANYWHERE):
        simulated = {(f"{name} {at}", options.seed): _simulated(name, at, options.seed) for at in range(n_simulated)}
        groups[name] = _traced(options, name, simulated)
    stops = {
        rule: {key: _stop_of(options, rule, key, found) for key, found in orders.items()} for rule in STOPPING_RULES
    }
    tables = [
        _rules(orders, stops), _choice(groups), _curve(groups, kinds), _groups(groups), _intervals(groups),
        _reviews(orders, stops),
    ]  # fmt: skip
    return Report(
        "Stopping rules on 24 reviews",
        f"Target: {TARGET:.0%} of the relevant records at 95 % confidence. {len(reviews)} reviews of four kinds, "
        f"{starts} starts each, in the order of corank, which is fitted again after every record or, later, after half "
        "a hundredth of those read; a start is one relevant and one irrelevant record. Reached: share of the starts in "
        "which the recall at the stop is at least the target. Read: share of the records read at the stop. Excess: "
        "read beyond the smallest number of records that reaches the target.",
        tuple(tables),
        (),
    )


def place_needed(found: Flags) -> int:
    """Return the number of records after which the target is reached; one more relevant record is known."""
    finds = 1 + np.cumsum(found)
    return int(np.argmax(finds >= TARGET * finds[-1] - 1e-9)) + 1


def _order(options: ExperimentOptions, name: str, seed: int, share: float = 0.0) -> Flags:
    every = 0.01 if share else 0.005
    key = {"experiment": "screening-stopping", "review": name, "what": CORANK, "start": seed, "every": every}
    key |= {"wrong": share} if share else {}
    return flags(options.result(key, lambda: replay(_collection(name, share, seed), seed, every)))


def replay(judged: Collection, seed: int, every: float) -> str:
    """
    Replay from one relevant and one irrelevant record, and return whether each record is relevant, as 0 and 1.

    every: the model is fitted again when this share more records are judged, or after every record if that is less.
    """
    read, model = [*start_pair(judged.y, seed)], ScreeningModel(judged.views)
    is_unread = np.ones(len(judged.y), dtype=np.bool_)
    is_unread[read] = False
    while is_unread.any():
        scores = np.where(is_unread, model.scores(read, judged.y[read].tolist()), -np.inf)
        n_next = min(max(1, int(every * len(read))), int(is_unread.sum()))
        read += np.argsort(-scores, kind="stable")[:n_next].tolist()
        is_unread[read[-n_next:]] = False
    return "".join("01"[int(judged.y[number])] for number in read[2:])


@cache
def _collection(name: str, share: float, seed: int) -> Collection:
    """Return a review; a share of the relevant records changes places with records that are not relevant."""
    if share:
        judged = _collection(name, 0.0, 0)
        rng, y = np.random.default_rng([seed, 7]), judged.y.copy()
        n_wrong = max(1, round(share * y.sum()))
        places = [rng.choice(np.flatnonzero(judged.y == label), n_wrong, replace=False) for label in (True, False)]
        y[places[0]], y[places[1]] = False, True
        return replace(judged, y=y)
    kind = "synergy" if name in KINDS["SYNERGY"] else "reviews"
    records = read_records(dataset(kind).path(f"{name}.csv"))
    return Collection(records, make_views(records), records.labels == 1)


def _stop_of(options: ExperimentOptions, rule: str, key: tuple[str, int], found: Flags) -> tuple[int, int]:
    """Return the numbers of records read and of relevant ones known when a rule stops."""
    read, known = options.result(
        {"experiment": "screening-stopping", "review": key[0], "rule": rule, "start": key[1]},
        lambda: stopping_rule(rule, len(found), TARGET).replay(found, np.random.default_rng(key[1])),
    )
    return read, known


def _simulated(group: str, number: int, seed: int) -> Flags:
    """Return an order whose finds follow a power law, in one of three harder cases."""
    rng = np.random.default_rng([seed, number, len(group)])
    if group == "many relevant records":
        return _power_law(int(rng.integers(3000, 6000)), int(rng.integers(200, 900)), float(rng.choice([0, 0.03])), rng)
    if group == ANYWHERE:
        return _power_law(int(rng.integers(500, 3000)), int(10 * 12 ** rng.random()), 0.05, rng)
    n, n_first = int(rng.integers(800, 5000)), int(10 * 15 ** rng.random())
    begin = int(n * rng.uniform(0.1, 0.5))
    found = _power_law(n, n_first, 0.0, rng)
    found[begin:] |= _power_law(n - begin, max(2, int(n_first * rng.uniform(0.1, 0.6))), 0.0, rng)
    return found


def _power_law(n: int, n_relevant: int, anywhere: float, rng: np.random.Generator) -> Flags:
    rate = (np.arange(1, n + 1) / n + math.exp(rng.uniform(-5.0, -1.0))) ** -rng.uniform(1.5, 5.0)
    found = np.zeros(n, dtype=np.bool_)
    found[rng.choice(n, n_relevant, replace=False, p=(1 - anywhere) * rate / rate.sum() + anywhere / n)] = True
    return found


def _traced(options: ExperimentOptions, group: str, orders: dict[tuple[str, int], Flags]) -> dict[str, list[Trace]]:
    traces: dict[str, list[Trace]] = {}
    for (name, seed), found in orders.items():
        key = {"experiment": "screening-stopping", "review": name, "what": "looks", "group": group, "start": seed}
        looks = options.result(key, lambda found=found: [vars(look) for look in _trace(found)])  # type: ignore[misc]
        traces.setdefault(name, []).append([Look(**look) for look in looks])
    return traces


def _trace(found: Flags) -> Trace:
    n, places, needed = len(found), np.flatnonzero(found) + 1, place_needed(found)
    models = {name: RateModel(n, *constants) for name, constants in MODELS.items()}
    trace = []
    for number, read in enumerate(stopping_rule("agree", n, TARGET).looks):
        finds = places[places <= read].tolist()
        estimate = models[CHOSEN[0]].estimate(finds, read, 1, TARGET) if number % 5 == 0 else None
        probability = {name: model.probability(finds, read, 1, TARGET) for name, model in models.items()}
        trace.append(
            Look(
                read / n, len(finds), p_missed(finds, read, n, 1, TARGET), probability, bool(read >= needed),
                (1 + len(finds)) / (1 + len(places)),
                None if estimate is None else (estimate.low, estimate.high),
            )
        )  # fmt: skip
    return trace


def _stop(trace: Trace, choice: Choice) -> tuple[float, bool]:
    """Share read when a variant of the default stops, and whether the target is reached there."""
    model, confidence, limit = choice
    for look in trace:
        if look.probability[model] >= confidence and look.p <= LIMITS[limit](look.finds, 1 - confidence):
            return look.read, look.is_reached
    return 1.0, True


def _outcome(reviews: Iterable[list[Trace]], choice: Choice) -> tuple[float, float, float]:
    """Read and reached, means over reviews, and the smallest share of starts of a review that reach the target."""
    means = np.array([np.mean([_stop(trace, choice) for trace in traces], axis=0) for traces in reviews])
    return float(means[:, 0].mean()), float(means[:, 1].mean()), float(means[:, 1].min())


def _rules(
    orders: dict[tuple[str, int], Flags], stops: dict[str, dict[tuple[str, int], tuple[int, int]]]
) -> ReportTable:
    kinds = {kind: names for kind, names in KINDS.items() if any(name in names for name, _ in orders)}
    rows: list[tuple[Cell, ...]] = []
    for name, rule in STOPPING_RULES.items():
        values: dict[str, list[tuple[float, float, float, float]]] = {}
        for (review, seed), found in orders.items():
            read, known = stops[name][review, seed]
            recall, share = known / (1 + int(found.sum())), read / len(found)
            excess = share - place_needed(found) / len(found)
            values.setdefault(review, []).append((float(recall >= TARGET - 1e-9), recall, share, excess))
        means = {review: np.mean(some, axis=0) for review, some in values.items()}
        reached, recall, share, excess = np.mean([*means.values()], axis=0).tolist()
        worst = min(float(mean[0]) for mean in means.values())
        lowest = min(one[1] for some in values.values() for one in some)
        of_kinds = [
            float(np.mean([means[review][0] for review in names if review in means])) for names in kinds.values()
        ]
        rows.append((name, rule.evidence, *of_kinds, reached, worst, lowest, recall, share, excess))
    columns = ("rule", "evidence", *kinds, "all", "worst review", "least recall", "mean recall", "read", "excess")
    return ReportTable(
        "All rules", columns, tuple(rows), digits=3,
        note="Target reached by kind of review. Means over reviews. Worst review: smallest share of the starts of a "
        "review that reach the target.",
    )  # fmt: skip


def _choice(groups: Groups) -> ReportTable:
    candidates = [(model, c, limit) for model in MODELS for c in (0.9, 0.95) for limit in LIMITS]
    rows: list[tuple[Cell, ...]] = []
    for group, reviews in groups.items():
        others = [some for name, some in groups.items() if name not in (group, ANYWHERE)]
        outcomes = {choice: [_outcome(some.values(), choice) for some in others] for choice in candidates}
        safe = [choice for choice, some in outcomes.items() if min(reached for _, reached, _ in some) >= 0.95 - 1e-9]
        chosen = min(
            safe or [("allows for misfit", 0.95, "alpha")], key=lambda c: np.mean([one[0] for one in outcomes[c]])
        )
        read, reached, worst = _outcome(reviews.values(), chosen)
        rows.append((group, len(reviews), chosen[0], chosen[1], chosen[2], reached, worst, read))
    columns = ("judged on", "reviews", "model", "confidence", "limit of p", "reached", "worst review", "read")
    return ReportTable(
        "Chosen on the other groups", columns, tuple(rows), digits=3,
        note="The variant of 16 that reads least among those that reach the target in 95 % of the starts of each other "
        f"group, except {ANYWHERE!r}. The limit of p is that of the urn test, r the number of finds.",
    )  # fmt: skip


def _curve(groups: Groups, kinds: Sequence[str]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    real = [traces for kind in kinds for traces in groups[kind].values()]
    for confidence in CONFIDENCES:
        choice = (CHOSEN[0], confidence, CHOSEN[2])
        read, reached, _ = _outcome(real, choice)
        hard = {name: _outcome(groups[name].values(), choice)[1] for name in groups if name not in kinds}
        worst = min((_outcome(groups[kind].values(), choice)[1] for kind in kinds), default=1.0)
        rows.append((f"1 in {round(1 / (1 - confidence))}", confidence, reached, worst, *hard.values(), read))
    return ReportTable(
        "Confidence against reading", ("accepted error", "confidence", "reached", "worst kind",
                                       *(name for name in groups if name not in kinds), "read"),
        tuple(rows), digits=3, note="The default rule; reached and read are means over the reviews.",
    )  # fmt: skip


def _groups(groups: Groups) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    before = ("curves alone", 0.95, "1/4")
    for name, reviews in groups.items():
        now, old = _outcome(reviews.values(), CHOSEN), _outcome(reviews.values(), before)
        rows.append((name, len(reviews), now[1], now[0], old[1], old[0]))
    columns = ("group", "reviews", "default, reached", "default, read", "version 0.2, reached", "version 0.2, read")
    return ReportTable("The default by group, and that of version 0.2", columns, tuple(rows), digits=3)


def _intervals(groups: Groups) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for name, reviews in groups.items():
        by_review: list[float] = []
        misses: list[float] = []
        for traces in reviews.values():
            looks = [(look.recall, *look.interval) for trace in traces for look in trace if look.interval is not None]
            by_review.append(
                float(np.mean([low - 1e-9 <= recall <= high + 1e-9 for recall, low, high in looks] or [True]))
            )
            misses.append(float(np.mean([recall < low - 1e-9 for recall, low, _ in looks] or [False])))
        rows.append((name, float(np.mean(by_review)), float(min(by_review)), float(np.mean(misses))))
    columns = ("group", "covered", "worst review", "recall below the interval")
    return ReportTable(
        "Intervals of the recall", columns, tuple(rows), digits=3,
        note="Share of the looks, after every twentieth of the records from the fifth find on, at which the 95 % "
        "interval holds the recall. Means over reviews.",
    )  # fmt: skip


def _reviews(
    orders: dict[tuple[str, int], Flags], stops: dict[str, dict[tuple[str, int], tuple[int, int]]]
) -> ReportTable:
    names = dict.fromkeys(name for name, _ in orders)
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        some = {key: found for key, found in orders.items() if key[0] == name}
        cells: list[float] = []
        for rule in ("agree", "hypergeometric"):
            reads = [(stops[rule][key][0], found) for key, found in some.items()]
            pairs = [(read >= place_needed(found), read / len(found)) for read, found in reads]
            cells += np.mean(pairs, axis=0).tolist()
        first = next(iter(some.values()))
        needed = float(np.mean([place_needed(found) / len(found) for found in some.values()]))
        rows.append((name, len(first) + 2, int(first.sum()) + 1, needed, *cells))
    columns = [f"{rule}, {what}" for rule in ("agree", "hypergeometric") for what in ("reached", "read")]
    return ReportTable("Review by review", ("review", "records", "relevant", "needed", *columns), tuple(rows), digits=3)
