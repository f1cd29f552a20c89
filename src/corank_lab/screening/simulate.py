"""Replays of judged records: how fast the relevant ones are found, and where a stopping rule stops."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data import atomic_file
from corank.errors import InputError, import_extra
from corank_lab.records.records import Records
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.prior import Prior
from corank_lab.screening.project import ScreeningPlan
from corank_lab.screening.screening import Screening
from corank_lab.screening.stopping import DEFAULT_CONFIDENCE, DEFAULT_RULE, StoppingRule, stopping_rule
from corank_lab.screening.stopping.rules import TRADE, accepted_error
from corank_lab.screening.views import Views, make_views


@dataclass(frozen=True, eq=False)
class ScreeningReplay:
    """One replay, which starts from one relevant and one irrelevant record; all shares leave these two out."""

    start: int  # seed that chose the two records
    order: NDArray[np.intp]  # numbers of the records, in the order of reading
    found: NDArray[np.bool_]  # which of them are relevant
    seconds: float
    stop: int  # number of records read when the stopping rule stopped
    stop_recall: float  # recall at that point, including the record of the start

    @property
    def curve(self) -> NDArray[np.float64]:
        return np.asarray(np.cumsum(self.found) / self.found.sum())

    @property
    def atd(self) -> float:
        """Average time to discovery: mean position of the relevant records, as a share of the records."""
        return float((np.flatnonzero(self.found) + 1).mean() / len(self.found))

    @property
    def wss95(self) -> float:
        """Work saved over sampling: share of unread records when 95 % are found, minus 5 %."""
        return 1 - self.at(0.95) / len(self.found) - 0.05

    @property
    def recall10(self) -> float:
        return float(self.curve[int(np.ceil(0.1 * len(self.found))) - 1])

    @property
    def loss(self) -> float:
        """
        Area between the perfect recall curve and this one, as a share of the area between the perfect and the worst.

        This is ASReview's ``loss``: the share of pairs of a relevant and an irrelevant record that were read in the
        wrong order, from 0 (perfect) to 1; random reading has .5. It is NaN if no irrelevant record was read.
        """
        relevant = int(self.found.sum())
        others = len(self.found) - relevant
        if not others:
            return float("nan")
        wrong = np.cumsum(~self.found)[self.found].sum()
        return float(wrong / (relevant * others))

    def at(self, recall: float) -> int:
        return int(np.argmax(self.curve >= recall - 1e-12)) + 1


def simulate(
    records: Records,
    starts: int | Iterable[int] = 10,
    *,
    rule: str = DEFAULT_RULE,
    target: float = 0.95,
    confidence: float = DEFAULT_CONFIDENCE,
    views: Views | None = None,
    topic: str = "",
    prior: Prior | None = None,
) -> list[ScreeningReplay]:
    """
    Replay a fully judged collection from several starts.

    topic, prior: Prior knowledge, as in `corank_lab.screening.Screening`.

    A start is one relevant and one irrelevant record; ``numpy.random.default_rng(seed)`` draws the relevant one first.
    """
    unjudged = int(np.isnan(records.labels).sum())
    if unjudged:
        raise InputError(
            f"{unjudged} of {len(records)} records are not judged; a replay needs 1 or 0 for each record, in a column "
            "such as included."
        )
    y = records.labels == 1
    if y.sum() < 2 or y.all():
        raise InputError(
            f"{int(y.sum())} of {len(records)} records are relevant; a replay needs two relevant records and one "
            "irrelevant record."
        )
    seeds = list(range(starts)) if isinstance(starts, int) else list(starts)
    stopping = stopping_rule(rule, len(records) - 2, target, confidence)
    made = make_views(UniqueRecords(records).linked()) if views is None else views
    return [_replay(records, y, seed, stopping, made, topic, prior) for seed in seeds]


def _replay(
    records: Records, y: NDArray[np.bool_], seed: int, rule: StoppingRule, views: Views, topic: str, prior: Prior | None
) -> ScreeningReplay:
    began = time.perf_counter()
    known, rejected = (records.ids[number] for number in start_pair(y, seed))
    screening = Screening(records, known=[known], rejected=[rejected], views=views, topic=topic, prior=prior)
    order = []
    while (record := screening.next()) is not None:
        screening.answer(record, bool(y[record]))
        order.append(record)
    seconds = time.perf_counter() - began
    result = y[order]
    stop, n_known = rule.replay(result, np.random.default_rng(seed))
    return ScreeningReplay(seed, np.array(order), result, seconds, stop, n_known / int(y.sum()))


def read_by_accepted_error(replays: Sequence[ScreeningReplay], plan: ScreeningPlan) -> dict[str, float]:
    """Return the mean share that the rule of a plan reads with each accepted error; empty if all are equal."""
    shares = {}
    for confidence in sorted({*(level.confidence for level in TRADE), plan.confidence}):
        rule = stopping_rule(plan.rule, len(replays[0].found), plan.target, confidence)
        read = [rule.replay(item.found, np.random.default_rng(item.start))[0] / len(item.found) for item in replays]
        shares[accepted_error(confidence)] = float(np.mean(read))
    return shares if len(set(shares.values())) > 1 else {}


def start_pair(y: NDArray[np.bool_], seed: int) -> tuple[int, int]:
    """Draw a relevant record, then an irrelevant one."""
    rng = np.random.default_rng(seed)
    return int(rng.choice(np.flatnonzero(y))), int(rng.choice(np.flatnonzero(~y)))


def plot_recall(replays: Sequence[ScreeningReplay], path: Path, *, title: str = "", overwrite: bool = False) -> None:
    """Plot the recall of each replay against the share of records read, with the diagonal of random reading."""
    import_extra("matplotlib", "report")
    from matplotlib.figure import Figure  # without pyplot, which has global state

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    panel = figure.subplots()
    panel.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=0.8, label="at random")
    panel.axhline(0.95, color="0.8", linewidth=0.8)
    for replay in replays:
        n = len(replay.found)
        shares, recall = np.arange(n + 1) / n, np.r_[0.0, replay.curve]
        label = "replays; dots: the stopping rule stops" if replay is replays[0] else None
        panel.step(shares, recall, where="post", color="C0", alpha=0.5, linewidth=1, label=label)
        panel.plot(replay.stop / n, recall[min(replay.stop, n)], marker="o", color="C0", markersize=4)
    panel.set(xlabel="share of records read", ylabel="recall", title=title, xlim=(0, 1), ylim=(0, 1.02))
    panel.legend(loc="lower right", frameon=False)
    with atomic_file(path, overwrite=overwrite) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
