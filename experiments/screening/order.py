"""Order: judged records read one after the other, most likely first, by corank, by a linear SVM, or at random."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from corank.data.records.records import Records
from corank.judging.screening import Screening, ScreeningReplay
from corank.judging.screening.simulate import start_pair
from corank.judging.screening.views import Views

C, RATIO = 0.11, 9.8
"""ASReview's penalty, and how many times all relevant records together outweigh the others (3.0.8, model elas_u4)."""

RANDOM, SVM, CORANK = "at random", "linear SVM", "corank"
WAYS = (RANDOM, SVM, CORANK)

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Collection:
    """
    Records that are judged throughout.

    views: of the records.
    y: which of them are relevant.
    """

    records: Records
    views: Views
    y: Flags


def read_in_order(way: str, given: Collection, seed: int, n_read: int | None = None) -> dict[str, Any]:
    """
    Read from one relevant and one other record on.

    way: one of `WAYS`.
    seed: chooses the two records, as `corank.judging.screening.simulate` does.
    n_read: how many records are read; all by default.
    Returns: whether each record is relevant, as a string of 0 and 1, and the processor seconds of all choices.
    """
    n = len(given.y) - 2 if n_read is None else min(n_read, len(given.y) - 2)
    start = start_pair(given.y, seed)
    began = time.process_time()
    if way == CORANK:
        order = _screen(given, start, n)
    elif way == SVM:
        order = _follow(lambda rows: linear_svm(given.views.text, rows, given.y[rows]), start, n)
    else:
        dice = np.random.default_rng([seed, 1])
        order = dice.permutation(np.setdiff1d(np.arange(len(given.y)), start))[:n].tolist()
    cpu = time.process_time() - began
    return {"found": "".join("01"[int(given.y[number])] for number in order), "cpu": round(cpu, 4)}


def replay_of(outcome: dict[str, Any], seed: int) -> ScreeningReplay:
    """Return what was read to the end as a replay, for its measures; no rule stopped it."""
    found = flags(outcome["found"])
    return ScreeningReplay(seed, np.arange(len(found)), found, outcome["cpu"], len(found), 1.0)


def flags(found: str) -> Flags:
    """Return a string of 0 and 1 as an array."""
    return np.asarray(np.frombuffer(found.encode(), dtype=np.uint8) == ord("1"))


def linear_svm(text: Any, rows: Sequence[int], relevant: Flags) -> NDArray[np.float64]:
    """
    Score all records as ASReview does by default after each answer.

    text: tf-idf rows of words and pairs of words.
    rows: numbers of the judged records, and whether each is relevant; both kinds are there.
    """
    weight = np.where(relevant, 1.0, relevant.sum() / (RATIO * (~relevant).sum()))
    svm = LinearSVC(C=C, loss="squared_hinge", random_state=0)
    svm.fit(text[rows], relevant, sample_weight=weight * len(rows) / weight.sum())
    return np.asarray(svm.decision_function(text))


def _screen(given: Collection, start: tuple[int, int], n: int) -> list[int]:
    known, rejected = (given.records.ids[number] for number in start)
    screening = Screening(given.records, known=[known], rejected=[rejected], views=given.views)
    return screen_on(screening, given.y, n)


def screen_on(screening: Screening, y: Flags, n: int) -> list[int]:
    """Answer n records as they come, and return their numbers."""
    order = []
    for _ in range(n):
        record = screening.next()
        assert record is not None
        screening.answer(record, bool(y[record]))
        order.append(record)
    return order


def _follow(score: Callable[[list[int]], NDArray[np.float64]], start: tuple[int, int], n: int) -> list[int]:
    read = [*start]
    for _ in range(n):
        scores = score(read)
        scores[read] = -np.inf
        read.append(int(np.argmax(scores)))
    return read[2:]
