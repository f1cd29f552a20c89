"""Six systematic reviews of the SYNERGY collection, replayed from several starts in several orders."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.tables import Cell, ReportTable
from corank_lab.records.records import read_records
from corank_lab.screening import Screening, ScreeningReplay, make_views
from experiments.datasets.catalog import dataset
from experiments.options import ExperimentOptions
from experiments.screening.order import CORANK, RANDOM, SVM, Collection, read_in_order, replay_of, screen_on
from experiments.significance import p_text

TITLES = {
    "Donners_2021": "Pharmacokinetics and associated efficacy of emicizumab in humans: a systematic review",
    "Sep_2021": "The rodent object-in-context task: a systematic review and meta-analysis of important variables",
    "Nelson_2002": "Postmenopausal hormone replacement therapy: scientific review",
    "Meijboom_2021": "Patients retransitioning from biosimilar TNF alpha inhibitor to the corresponding originator "
    "after initial transitioning to the biosimilar: a systematic review",
    "Oud_2018": "Specialized psychotherapies for adults with borderline personality disorder: a systematic review and "
    "meta-analysis",
    "Menon_2022": "The methodological rigour of systematic reviews in environmental health",
}
"""Each review, and its title."""

METRICS: dict[str, Callable[[ScreeningReplay], float]] = {
    "ATD": lambda replay: replay.atd,
    "WSS@95": lambda replay: replay.wss95,
    "recall@10 %": lambda replay: replay.recall10,
    "last": lambda replay: replay.at(1.0) / len(replay.found),
}
ASREVIEW = "ASReview"
STARTS = ("a pair", "the title", "nothing")

Outside = dict[tuple[str, int], dict[str, float]]
Floats = NDArray[np.float64]


class Reviews:
    """
    Replays of the reviews; each is saved.

    options: folder and seed.
    starts: number of starts per review.
    outside: measures of another program on the same starts, by review and start; see `outside.read_outside`.
    """

    def __init__(self, options: ExperimentOptions, starts: int, outside: Outside) -> None:
        self.options, self.starts, self.outside = options, starts, outside
        # the linear SVM replaces ASReview if its results are not given
        self.ways = (RANDOM, ASREVIEW if outside else SVM, CORANK)
        self._open: dict[str, _Review] = {}
        options.expect(len(TITLES) * (starts * (len({*self.ways} - {ASREVIEW}) + len(STARTS) - 1) + 1))

    def measure_table(self, measure: str) -> ReportTable:
        """Compare the orders by one measure: means over the starts."""
        values = [self._values(measure, way) for way in self.ways]
        rows: list[tuple[Cell, ...]] = [
            (name, *(float(of_way[at].mean()) for of_way in values)) for at, name in enumerate(TITLES)
        ]
        rows.append(("mean", *(float(of_way.mean()) for of_way in values)))
        return ReportTable(f"{measure}, mean of {self.starts} starts", ("review", *self.ways), tuple(rows), digits=3)

    def finding(self, measure: str, larger_is_better: bool) -> str:
        """Test corank against the other program, over starts × reviews."""
        _, rival, ours = self.ways
        ahead = (self._values(measure, ours) - self._values(measure, rival)) * (1 if larger_is_better else -1)
        means = ahead.mean(axis=1)
        return (
            f"{measure}: corank is ahead of {rival} in {int((ahead > 0).sum())} of {ahead.size} starts and on "
            f"{int((means > 0).sum())} of {len(means)} reviews; mean lead {ahead.mean():+.3f}, worst review "
            f"{means.min():+.3f}; Wilcoxon over the starts {p_text(ahead.ravel(), '.1g')}, over the means of the "
            f"reviews {p_text(means)}."
        )

    def starts_table(self) -> ReportTable:
        """Start from a pair of records, from the title of the review, and from nothing."""
        rows: list[tuple[Cell, ...]] = []
        for start in STARTS:
            atd, first = [], []
            for name in TITLES:
                replays = [replay_of(self._started(name, seed, start), seed) for seed in range(self.starts)]
                atd.append(np.mean([replay.atd for replay in replays]))
                first.append(np.median([int(np.argmax(replay.found)) + 1 for replay in replays]))
            rows.append((start, float(np.mean(atd)), *(f"{hit:g}" for hit in first)))
        return ReportTable(
            "Where to start from",
            ("from", "ATD", *(name.split("_")[0] for name in TITLES)),
            tuple(rows),
            digits=3,
            note="ATD is the mean over the reviews; the other columns are the median number of records read until the "
            "first relevant one. A pair is known beforehand, and not counted.",
        )

    def time_table(self) -> ReportTable:
        """Processor seconds of one reading."""
        rows: list[tuple[Cell, ...]] = []
        timed = [CORANK, *(way for way in self.ways if way == SVM)]
        for name in TITLES:
            prepare = self.options.result(self._key(name, "prepare"), lambda name=name: self._review(name).seconds)  # type: ignore[misc]
            loops = [np.median([self._outcome(name, seed, way)["cpu"] for seed in range(self.starts)]) for way in timed]
            rows.append((name, prepare, *map(float, loops)))
        return ReportTable(
            "Processor seconds of one complete replay, median of the starts",
            ("review", "corank, preparing", *(f"{way}, loop" for way in timed)),
            tuple(rows),
            digits=2,
        )

    def _values(self, measure: str, way: str) -> Floats:
        """One number for each review and start."""
        if way == ASREVIEW:
            return np.array([[self.outside[name, seed][measure] for seed in range(self.starts)] for name in TITLES])
        value = METRICS[measure]
        return np.array(
            [[value(replay_of(self._outcome(name, seed, way), seed)) for seed in range(self.starts)] for name in TITLES]
        )

    def _outcome(self, name: str, seed: int, way: str) -> dict[str, Any]:
        found: dict[str, Any] = self.options.result(
            {**self._key(name, way), "start": seed}, lambda: read_in_order(way, self._review(name).judged, seed)
        )
        return found

    def _started(self, name: str, seed: int, start: str) -> dict[str, Any]:
        if start == STARTS[0]:
            return self._outcome(name, seed, CORANK)
        found: dict[str, Any] = self.options.result(
            {**self._key(name, f"from {start}"), "start": seed},
            lambda: self._review(name).read_from(TITLES[name] if start == STARTS[1] else None, seed),
        )
        return found

    def _key(self, name: str, what: str) -> dict[str, Any]:
        return {"experiment": "screening", "review": name, "what": what}

    def _review(self, name: str) -> _Review:
        return self._open.setdefault(name, _Review(name))


class _Review:
    """A review, read and prepared on first use."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def _prepared(self) -> tuple[Collection, float]:
        records = read_records(dataset("synergy").path(f"{self.name}.csv"))
        began = time.process_time()
        views = make_views(records)
        return Collection(records, views, records.labels == 1), time.process_time() - began

    @property
    def judged(self) -> Collection:
        return self._prepared[0]

    @property
    def seconds(self) -> float:
        return self._prepared[1]

    def read_from(self, topic: str | None, seed: int) -> dict[str, Any]:
        judged = self.judged
        began = time.process_time()
        screening = Screening(judged.records, topic=topic, random_state=seed, views=judged.views)
        order = screen_on(screening, judged.y, len(judged.y))
        return {"found": "".join("01"[int(judged.y[one])] for one in order), "cpu": time.process_time() - began}
