"""Replays of judged records: how soon the relevant ones are found, and what a stopping rule would have cost."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.data.records.records import Records
from corank.errors import InputError
from corank.judging.screening.screening import Screening
from corank.judging.screening.stopping import Plan, Rule
from corank.judging.screening.views import Views, make_views


@dataclass(frozen=True, eq=False)
class Replay:
    """
    One replay, from one relevant and one other record on; all shares are of the records without these two.

    Attributes
    ----------
    start : int
        Seed that chose the two records.
    order : array of int
        Numbers of the records, as they were read.
    found : array of bool
        Which of them are relevant.
    seconds : float
        Time for all of it.
    stop : int
        Records read when the stopping rule said so.
    stop_recall : float
        Share of all relevant records that was known then, that of the start among them.
    """

    start: int
    order: NDArray[np.intp]
    found: NDArray[np.bool_]
    seconds: float
    stop: int
    stop_recall: float

    @property
    def curve(self) -> NDArray[np.float64]:
        """Recall after each record."""
        return np.asarray(np.cumsum(self.found) / self.found.sum())

    @property
    def atd(self) -> float:
        """Average time to discovery: mean place of the relevant records, as a share."""
        return float((np.flatnonzero(self.found) + 1).mean() / len(self.found))

    @property
    def wss95(self) -> float:
        """Work saved over sampling: the share that is unread when 95 % are found, less 5 %."""
        return 1 - self.at(0.95) / len(self.found) - 0.05

    @property
    def recall10(self) -> float:
        """Recall after a tenth of the records."""
        return float(self.curve[int(np.ceil(0.1 * len(self.found))) - 1])

    def at(self, recall: float) -> int:
        """
        Say when a recall was reached.

        Parameters
        ----------
        recall : float
            A share of the relevant records.

        Returns
        -------
        int
            Number of records read by then.
        """
        return int(np.argmax(self.curve >= recall - 1e-12)) + 1


def simulate(
    records: Records,
    starts: int | Iterable[int] = 10,
    *,
    rule: str = "decline",
    target: float = 0.95,
    confidence: float = 0.95,
    views: Views | None = None,
) -> list[Replay]:
    """
    Replay a collection that is judged throughout, from several starts.

    A start is one relevant and one other record; ``numpy.random.default_rng(seed)`` chooses first among the relevant
    ones, then among the others.

    Parameters
    ----------
    records : Records
        With a label for every record.
    starts : int or iterable of int
        Number of starts, or their seeds.
    rule : {"decline", "poisson", "sample"}
        When reading would have stopped; it is replayed to the end all the same.
    target, confidence : float
        What the rule aims at.
    views : Views, optional
        Made from the same records before.

    Returns
    -------
    list of Replay
        One for each start.
    """
    unjudged = int(np.isnan(records.labels).sum())
    if unjudged:
        raise InputError(
            f"{unjudged} of {len(records)} records are not judged; a replay needs an answer for each, 1 or 0 in a "
            "column such as included."
        )
    y = records.labels == 1
    if y.sum() < 2 or y.all():
        raise InputError(
            f"{int(y.sum())} of {len(records)} records are relevant; a replay needs two relevant ones and one other."
        )
    seeds = list(range(starts)) if isinstance(starts, int) else list(starts)
    stopping = Rule(rule, len(records) - 2, target, confidence)
    made = make_views(records) if views is None else views
    return [_replay(records, y, seed, stopping, made) for seed in seeds]


def _replay(records: Records, y: NDArray[np.bool_], seed: int, rule: Rule, views: Views) -> Replay:
    began = time.perf_counter()
    known, rejected = (records.ids[number] for number in start_pair(y, seed))
    screening = Screening(records, known=[known], rejected=[rejected], views=views)
    order = []
    while (record := screening.next()) is not None:
        screening.answer(record, bool(y[record]))
        order.append(record)
    seconds = time.perf_counter() - began
    found = y[order]
    stop, n_found = stopped(found, rule, np.random.default_rng(seed))
    return Replay(seed, np.array(order), found, seconds, stop, n_found / int(y.sum()))


def start_pair(y: NDArray[np.bool_], seed: int) -> tuple[int, int]:
    """Choose a relevant record, then another one."""
    rng = np.random.default_rng(seed)
    return int(rng.choice(np.flatnonzero(y))), int(rng.choice(np.flatnonzero(~y)))


def stopped(found: NDArray[np.bool_], rule: Rule, rng: np.random.Generator) -> tuple[int, int]:
    """
    Replay a stopping rule.

    found: whether each record is relevant, in the order of reading; one more relevant record is known.
    rng: draws the sample, where the rule has one.
    Returns: the number of records read, and of relevant ones known.
    """
    finds = (np.flatnonzero(found) + 1).tolist()
    read = next(
        (look for look in rule.looks if rule.advises([place for place in finds if place <= look], look, 1)), len(found)
    )
    known = 1 + int(found[:read].sum())
    if rule.name != "sample":
        return read, known
    rest = found[read:]
    plan, labels = Plan(len(rest), known, rule.target, rule.confidence), rest[rng.permutation(len(rest))].tolist()
    sample = next(size for size in [0, *plan.sizes] if plan.proves(labels[:size]))
    return read + sample, known + sum(labels[:sample])
