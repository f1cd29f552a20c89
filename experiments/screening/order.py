"""Replay judged records in the order of corank, of a linear SVM, or in random order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from corank_lab.records.records import Records
from corank_lab.screening import Screening, ScreeningReplay
from corank_lab.screening.simulate import start_pair
from corank_lab.screening.views import Views

C, RATIO = 0.11, 9.8
"""ASReview's C, and the ratio of the weights of all relevant records and all others (3.0.8, model elas_u4)."""

RANDOM, SVM, CORANK = "at random", "linear SVM", "corank"
WAYS = (RANDOM, SVM, CORANK)

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Collection:
    """
    Fully judged records.

    views: views of the records.
    y: which of them are relevant.
    """

    records: Records
    views: Views
    y: Flags

    @cached_property
    def svm_text(self) -> Any:
        """Rows for `linear_svm`."""
        return svm_text(self.records)


def read_in_order(way: str, judged: Collection, seed: int, n_read: int | None = None) -> dict[str, Any]:
    """
    Replay from one relevant and one irrelevant record.

    way: one of `WAYS`.
    seed: draws the two records, as in `corank_lab.screening.simulate`.
    n_read: number of records to read; all by default.
    Returns: whether each record is relevant, as a string of 0 and 1, and the processor seconds.
    """
    n = len(judged.y) - 2 if n_read is None else min(n_read, len(judged.y) - 2)
    start = start_pair(judged.y, seed)
    text = judged.svm_text if way == SVM else None
    began = time.process_time()
    if way == CORANK:
        order = _screen(judged, start, n)
    elif way == SVM:
        order = _follow(lambda rows: linear_svm(text, rows, judged.y[rows]), start, n)
    else:
        rng = np.random.default_rng([seed, 1])
        order = rng.permutation(np.setdiff1d(np.arange(len(judged.y)), start))[:n].tolist()
    cpu = time.process_time() - began
    return {"found": "".join("01"[int(judged.y[number])] for number in order), "cpu": round(cpu, 4)}


def replay_of(outcome: dict[str, Any], seed: int) -> ScreeningReplay:
    """Return a complete reading as a replay, for its measures; without a stopping rule."""
    found = flags(outcome["found"])
    return ScreeningReplay(seed, np.arange(len(found)), found, outcome["cpu"], len(found), 1.0)


def flags(found: str) -> Flags:
    """Return a string of 0 and 1 as an array."""
    return np.asarray(np.frombuffer(found.encode(), dtype=np.uint8) == ord("1"))


def svm_text(records: Records) -> Any:
    """Return the tf-idf rows of words and word pairs that ASReview's default learns from."""
    both = [f"{title} {abstract}" for title, abstract in zip(records.titles, records.abstracts, strict=True)]
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_df=0.95, dtype=np.float32).fit_transform(both)


def linear_svm(text: Any, rows: Sequence[int], relevant: Flags) -> NDArray[np.float64]:
    """
    Score all records as ASReview's default model does after each answer.

    text: tf-idf rows of words and word pairs.
    rows: numbers of the judged records.
    relevant: whether each is relevant; both kinds must be present.
    """
    weight = np.where(relevant, 1.0, relevant.sum() / (RATIO * (~relevant).sum()))
    svm = LinearSVC(C=C, loss="squared_hinge", random_state=0)
    svm.fit(text[rows], relevant, sample_weight=weight * len(rows) / weight.sum())
    return np.asarray(svm.decision_function(text))


def _screen(judged: Collection, start: tuple[int, int], n: int) -> list[int]:
    known, rejected = (judged.records.ids[number] for number in start)
    screening = Screening(judged.records, known=[known], rejected=[rejected], views=judged.views)
    return screen_on(screening, judged.y, n)


def screen_on(screening: Screening, y: Flags, n: int) -> list[int]:
    """Answer the next n records, and return their numbers."""
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
