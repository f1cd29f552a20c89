"""
Stopping rules on 24 reviews of four kinds and on others that differ: how often the target is reached, and the cost.

The reviews are replayed in the order of corank from several starts; rules then see the finds only. The share of
screenings that the default takes to follow no model is chosen on all groups but one and judged on that one. Further
groups are all reviews of a kind as one, reviews with wrong labels, and simulated ones: many relevant records, two
topics of which one comes late, and relevant records that lie anywhere.
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
from corank_lab.records.records import Records, read_records
from corank_lab.screening import make_views
from corank_lab.screening.model import ScreeningModel
from corank_lab.screening.simulate import start_pair
from corank_lab.screening.stopping.rates import RateModel
from corank_lab.screening.stopping.rules import DEFAULT_CONFIDENCE, OTHERS, STOPPING_RULES, stopping_rule
from corank_lab.screening.stopping.urns import p_by_betting
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
TOGETHER, WRONG = "all of a kind as one", "one label in ten wrong"
SIMULATED = ("many relevant records", "two topics", "a twentieth anywhere", "a tenth anywhere")
N_SIMULATED, N_DRAWS = 12, 10
"""Simulated reviews of each kind, and orders drawn of each."""
TARGET = 0.95
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""Shares of screenings that the rule may take to follow no model."""
ERRORS = (0.2, 0.1, 0.05, 0.02)
DEFAULT = round(1 - DEFAULT_CONFIDENCE, 12)
WIDTHS = ((30, 1.0, 0.25), (10, 1.0, 0.1), (30, 1.5, 0.1))
"""Values of enough, misfit and doubt that the intervals may have, from narrow to wide."""
MIN_LOOKS, MAX_BINS = 20, 15
REQUIRED = 0.95
"""Coverage of the intervals, and share of the screenings that are to reach the target in every group of reviews."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Look:
    """What rules know of an order after some records, and the truth."""

    read: float  # share of the records
    p: float  # of the test by betting
    probability: float  # that the target is reached, by the model
    n: int  # number of records
    n_relevant: int
    is_reached: bool
    recall: float
    # one for each of `WIDTHS`, at every tenth look, from the fifth find on
    intervals: list[tuple[float, float]]


Trace = list[Look]
Groups = dict[str, dict[str, list[Trace]]]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: five starts a review by default; quick runs have two starts of six small reviews.
    Returns: tables of all rules, of the nested choice, of confidence against reading, and of intervals.
    """
    reviews = [name for names in KINDS.values() for name in names if not options.quick or name in QUICK]
    starts = options.repeats or (2 if options.quick else 5)
    kinds = {kind: [name for name in names if name in reviews] for kind, names in KINDS.items()}
    kinds = {kind: names for kind, names in kinds.items() if names}
    together = [] if options.quick else list(kinds)
    options.expect(len(reviews) * (starts + 1) + 2 * len(together))
    orders = {(name, seed): _order(options, name, seed) for name in reviews for seed in range(starts)}
    groups: Groups = {
        kind: _traced(options, kind, {key: orders[key] for key in orders if key[0] in names})
        for kind, names in kinds.items()
    }
    if together:
        whole = {(kind, seed): _order(options, kind, seed, every=0.02) for kind in together for seed in (0, 1)}
        groups[TOGETHER] = _traced(options, TOGETHER, whole)
    wrong = {(name, 0): _order(options, name, 0, share=0.1, every=0.01) for name in reviews}
    groups[WRONG] = _traced(options, WRONG, wrong)
    for name in SIMULATED:
        numbers = range(3 if options.quick else N_SIMULATED)
        simulated = {
            (f"{name} {i}", draw): _simulated(name, i, draw, options.seed) for i in numbers for draw in range(N_DRAWS)
        }
        groups[name] = _traced(options, name, simulated)
    stops = {
        rule: {key: _stop_of(options, rule, key, found) for key, found in orders.items()} for rule in STOPPING_RULES
    }
    tables = [
        _rules(orders, stops), _curve(groups, tuple(kinds)), _levels(groups), _choice(groups), _groups(groups),
        _intervals(groups), _bins(groups), _reviews(orders, stops),
    ]  # fmt: skip
    return Report(
        "Stopping rules on 24 reviews",
        f"Target: {TARGET:.0%} of the relevant records. {len(reviews)} reviews of four kinds, {starts} starts each, in "
        "the order of corank, which is fitted again after every record or, later, after half a hundredth of those "
        "read; a start is one relevant and one irrelevant record. Every rule has its default confidence. Reached: "
        "share of the starts in which the recall at the stop is at least the target. Worst review: smallest share of "
        "the starts of a review. Read: share of the records read at the stop. Excess: read beyond the smallest number "
        "of records that reaches the target. Means are over reviews.",
        tuple(tables),
        (),
    )


def place_needed(found: Flags) -> int:
    """Return the number of records after which the target is reached; one more relevant record is known."""
    finds = 1 + np.cumsum(found)
    return int(np.argmax(finds >= TARGET * finds[-1] - 1e-9)) + 1


def _order(options: ExperimentOptions, name: str, seed: int, *, share: float = 0.0, every: float = 0.005) -> Flags:
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
    names = KINDS.get(name, (name,))
    parts = [
        read_records(dataset("synergy" if part in KINDS["SYNERGY"] else "reviews").path(f"{part}.csv"))
        for part in names
    ]
    records = parts[0]
    if len(parts) > 1:  # without references, which would tell the reviews apart
        records = Records(
            [f"{number}-{id}" for number, part in enumerate(parts) for id in part.ids],
            [title for part in parts for title in part.titles], [text for part in parts for text in part.abstracts],
            labels=np.concatenate([part.labels for part in parts]),
        )  # fmt: skip
    return Collection(records, make_views(records), records.labels == 1)


def _stop_of(options: ExperimentOptions, rule: str, key: tuple[str, int], found: Flags) -> tuple[int, int]:
    """Return the numbers of records read and of relevant ones known when a rule stops."""
    read, known = options.result(
        {"experiment": "screening-stopping", "review": key[0], "rule": rule, "start": key[1]},
        lambda: stopping_rule(rule, len(found), TARGET).replay(found, np.random.default_rng(key[1])),
    )
    return read, known


def _simulated(group: str, number: int, draw: int, seed: int) -> Flags:
    """Return an order whose finds follow a power law, in one of four harder cases; a number is one review."""
    rng, drawn = (np.random.default_rng([seed, number, *more, len(group)]) for more in ((), (draw,)))
    curve = (math.exp(rng.uniform(-5.0, -1.0)), rng.uniform(1.5, 5.0))
    if group == "many relevant records":
        n, n_relevant, anywhere = (
            int(rng.integers(3000, 9000)),
            int(rng.integers(200, 900)),
            rng.choice([0, 0.03, 0.05]),
        )
        return _power_law(n, n_relevant, float(anywhere), curve, drawn)
    if group != "two topics":
        n, anywhere = int(rng.integers(500, 3000)), 0.05 if group == "a twentieth anywhere" else 0.1
        return _power_law(n, int(10 * 12 ** rng.random()), anywhere, curve, drawn)
    n, n_first = int(rng.integers(800, 5000)), int(10 * 15 ** rng.random())
    begin, n_second = int(n * rng.uniform(0.1, 0.5)), max(2, int(n_first * rng.uniform(0.1, 0.6)))
    found = _power_law(n, n_first, 0.0, curve, drawn)
    found[begin:] |= _power_law(n - begin, n_second, 0.0, curve, drawn)
    return found


def _power_law(n: int, n_relevant: int, anywhere: float, curve: tuple[float, float], rng: np.random.Generator) -> Flags:
    rate = (np.arange(1, n + 1) / n + curve[0]) ** -curve[1]
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
    models = [RateModel(n, wide=(enough, misfit), doubt=doubt) for enough, misfit, doubt in WIDTHS]
    trace = []
    for number, read in enumerate(stopping_rule("agree", n, TARGET).looks):
        finds = places[places <= read].tolist()
        estimates = [model.estimate(finds, read, 1, TARGET) for model in models if number % 10 == 0]
        trace.append(
            Look(
                read / n, p_by_betting(finds, read, n, 1, TARGET), models[0].probability(finds, read, 1, TARGET),
                n, 1 + len(places), bool(read >= needed), (1 + len(finds)) / (1 + len(places)),
                [(estimate.low, estimate.high) for estimate in estimates if estimate is not None],
            )
        )  # fmt: skip
    return trace


def _stop(trace: Trace, error: float, share: float) -> tuple[float, bool]:
    """Share read when the default stops with an accepted error and a share, and whether the target is reached there."""
    for look in trace:
        if (1 - share) * (1 - look.probability) <= error / 2 and share * look.p <= error / 2:
            return look.read, look.is_reached
    return 1.0, True


def _outcome(reviews: Iterable[list[Trace]], error: float, share: float = OTHERS) -> tuple[float, float, float]:
    """Read and reached, means over reviews, and the smallest share of starts of a review that reach the target."""
    means = np.array([np.mean([_stop(trace, error, share) for trace in traces], axis=0) for traces in reviews])
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
    rows: list[tuple[Cell, ...]] = []
    for error in ERRORS[:3]:
        for group, reviews in groups.items():
            others = [some for name, some in groups.items() if name != group]
            outcomes = {share: [_outcome(some.values(), error, share) for some in others] for share in SHARES}
            right = [share for share, some in outcomes.items() if min(reached for _, reached, _ in some) >= 1 - error]
            chosen = min(right or SHARES[-1:], key=lambda share: np.mean([some[0] for some in outcomes[share]]))
            read, reached, worst = _outcome(reviews.values(), error, chosen)
            rows.append((_odds(error), group, len(reviews), chosen, reached, worst, read))
    columns = ("accepted error", "judged on", "reviews", "share chosen", "reached", "worst review", "read")
    return ReportTable(
        "Chosen on the other groups", columns, tuple(rows), digits=3,
        note="The share of screenings without a model that reads least among those whose stated error holds in each "
        f"other group. The default uses {OTHERS:g}.",
    )  # fmt: skip


def _curve(groups: Groups, kinds: Sequence[str]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    real, more = [traces for kind in kinds for traces in groups[kind].values()], [*groups][len(kinds) :]
    for error in ERRORS:
        read, reached, _ = _outcome(real, error)
        outcomes = {name: _outcome(reviews.values(), error) for name, reviews in groups.items()}
        worst = [min(outcome[place] for outcome in outcomes.values()) for place in (1, 2)]
        rows.append((_odds(error), 1 - error, reached, *(outcomes[name][1] for name in more), *worst, read))
    return ReportTable(
        "Confidence against reading",
        ("accepted error", "confidence", "real reviews", *more, "worst group", "worst review", "read"),
        tuple(rows), digits=3,
        note="The default rule: share of the screenings that reach the target; worst review: of all groups. Read: of "
        "the real reviews.",
    )  # fmt: skip


def _odds(error: float) -> str:
    return f"1 in {round(1 / error)}"


def _levels(groups: Groups) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for group, reviews in groups.items():
        others = [some.values() for name, some in groups.items() if name != group]
        right = (e for e in ERRORS if min(_outcome(some, e)[1] for some in others) >= REQUIRED)
        chosen = next(right, ERRORS[-1])
        read, reached, worst = _outcome(reviews.values(), chosen)
        rows.append((group, _odds(chosen), reached, worst, read))
    return ReportTable(
        "The accepted error chosen on the other groups",
        ("judged on", "chosen", "reached", "worst review", "read"), tuple(rows), digits=3,
        note=f"The largest accepted error with which {REQUIRED:.0%} of the screenings of each other group reach the "
        f"target. The default is {_odds(DEFAULT)}.",
    )  # fmt: skip


def _groups(groups: Groups) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for name, reviews in groups.items():
        outcomes = [_outcome(reviews.values(), error) for error in (DEFAULT, ERRORS[0])]
        rows.append((name, len(reviews), *(value for read, *shares in outcomes for value in (*shares, read))))
    what = ("reached", "worst review", "read")
    columns = ("group", "reviews", *what, *(f"{_odds(ERRORS[0])}, {name}" for name in what))
    return ReportTable("The default by group, and a larger accepted error", columns, tuple(rows), digits=3)


def _covered(look: Look, width: int) -> bool:
    low, high = look.intervals[width]
    return low - 1e-9 <= look.recall <= high + 1e-9


def _looks(groups: Groups) -> list[tuple[str, str, Look]]:
    """Every look with an interval, with its group and its review."""
    return [
        (group, review, look)
        for group, reviews in groups.items()
        for review, traces in reviews.items()
        for trace in traces
        for look in trace
        if look.intervals
    ]


BINS: dict[str, tuple[Callable[[Look], float], tuple[float, ...]]] = {
    "share read": (lambda look: look.read, (0.15, 0.3, 0.5, 0.7)),
    "records": (lambda look: look.n, (800, 2500)),
    "relevant": (lambda look: look.n_relevant, (20, 60, 200)),
    "prevalence": (lambda look: look.n_relevant / look.n, (0.01, 0.03, 0.1)),
}
"""What looks are divided by, and where."""


def _binned(looks: Iterable[tuple[str, str, Look]]) -> dict[tuple[str, str], list[Look]]:
    """Looks by what they are divided by and the bin: every quantity of `BINS`, and the group at each moment."""
    result: dict[tuple[str, str], list[Look]] = {}
    for group, _, look in looks:
        for name, (value, edges) in BINS.items():
            bounds = ("", *(f"{edge:g}" for edge in edges), "")
            place = int(np.searchsorted(edges, value(look), side="right"))
            span = f"{bounds[place] or 'less'} to {bounds[place + 1] or 'more'}"
            result.setdefault((name, span), []).append(look)
            if name == "share read":
                result.setdefault((f"{name} × group", f"{span}, {group}"), []).append(look)
    return result


def _intervals(groups: Groups) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    looks, default = _looks(groups), len(WIDTHS) - 1
    for name in groups:
        mine = [item for item in looks if item[0] == name]
        bins = _binned(item for item in looks if item[0] != name)
        large = [some for some in bins.values() if len(some) >= MIN_LOOKS]
        right = (w for w in range(len(WIDTHS)) if min(_share(some, w) for some in large) >= REQUIRED)
        chosen = next(right, default)
        by_review = [_share([item[2] for item in mine if item[1] == review], default) for review in groups[name]]
        spans = [(look.recall, *look.intervals[default]) for *_, look in mine]
        misses = [recall < low - 1e-9 for recall, low, _ in spans] or [False]
        width = [high - low for _, low, high in spans] or [0.0]
        covered = [_share([look for *_, look in mine], number) for number in (default, chosen)]
        means = covered[0], min(by_review), float(np.mean(misses)), float(np.mean(width))
        rows.append((name, len(mine), *means, _width(chosen), covered[1]))
    columns = (
        "group", "looks", "covered", "worst review", "recall below the interval", "width", "chosen on the others",
        "then covered",
    )  # fmt: skip
    return ReportTable(
        "Intervals of the recall", columns, tuple(rows), digits=3,
        note="Share of the looks, after every tenth of the records from the fifth find on, at which the 95 % interval "
        f"holds the recall. Chosen on the others: the narrowest of three widths that covers {REQUIRED:.0%} in each "
        f"bin of the other groups; the default is {_width(default)}.",
    )  # fmt: skip


def _width(number: int) -> str:
    return " / ".join(f"{value:g}" for value in WIDTHS[number])


def _share(looks: Sequence[Look], width: int) -> float:
    """Share of the looks at which an interval holds the recall; 1 if there is none."""
    return float(np.mean([_covered(look, width) for look in looks] or [True]))


def _bins(groups: Groups) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for (name, span), looks in _binned(_looks(groups)).items():
        if len(looks) >= MIN_LOOKS:
            rows.append((name, span, len(looks), *(_share(looks, width) for width in range(len(WIDTHS)))))
    rows.sort(key=lambda row: (row[-1], row[3]))
    columns = ("bin of", "bin", "looks", *map(_width, range(len(WIDTHS))))
    return ReportTable(
        "Coverage of the intervals in bins, the worst first", columns, tuple(rows[:MAX_BINS]), digits=3,
        note=f"Columns: the three widths (finds that count, misfit, p-value of the bets). Bins of {MIN_LOOKS} looks "
        f"or more; the {MAX_BINS} worst of {len(rows)}.",
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
