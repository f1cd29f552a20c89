"""Which rows to judge: five to begin with, then ten at a time, chosen by chance, by score, or where a model doubts."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.metrics import average_precision
from corank.tables import Cell, ReportTable
from experiments.few_judgements.learners import LOGISTIC, RANKRLS, SMOOTHED, learners
from experiments.few_judgements.problems import MIN_TEST, TopicPool
from experiments.few_judgements.replay import judging_curve
from experiments.options import ExperimentOptions
from experiments.significance import p_text

START, BATCH, STEPS = 5, 10, 4
N_JUDGED = tuple(START + BATCH * step for step in range(STEPS + 1))
SHOWN = (0, 1, 2, 4)
"""Steps that a table shows: 5 judged rows, and 10, 20 and 40 more."""
RULES = ("random", "top", "uncertain")
MEASURED = (("pool", RANKRLS), ("test", LOGISTIC), ("test", RANKRLS), ("test", SMOOTHED))
"""Where each learner is measured: on the rows that may be judged, judged ones included, or on rows that never are."""
COMPARED = (
    ("pool", (RANKRLS, "uncertain"), (RANKRLS, "random")),
    ("pool", (RANKRLS, "uncertain"), (RANKRLS, "top")),
    ("test", (RANKRLS, "uncertain"), (RANKRLS, "random")),
    ("test", (RANKRLS, "uncertain"), (RANKRLS, "top")),
    ("test", (RANKRLS, "uncertain"), (LOGISTIC, "uncertain")),
    ("test", (RANKRLS, "top"), (LOGISTIC, "top")),
    ("test", (SMOOTHED, "uncertain"), (RANKRLS, "uncertain")),
    ("test", (SMOOTHED, "top"), (RANKRLS, "top")),
)
"""What findings hold against each other."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChoiceCurves:
    """
    AP after each step.

    pool, topics: what was looked for.
    values: (place, learner, rule) to AP by topic, mean over repeats, of shape (n_topics, n_points); on test rows, of
        the topics that have enough there.
    named: place to AP of the words of the topics' names.
    seconds: (place, learner) to the processor time of a step.
    """

    pool: TopicPool
    topics: list[str]
    values: dict[tuple[str, str, str], Floats]
    named: dict[str, Floats]
    seconds: dict[tuple[str, str], float]

    def table(self) -> ReportTable:
        """Show means over topics."""
        rows: list[tuple[Cell, ...]] = []
        for place, named in self.named.items():
            rows.append((place, "words of the name, nothing judged", "", float(named.mean()), *[None] * len(SHOWN)))
            for learner in [name for where, name in MEASURED if where == place]:
                for rule in RULES:
                    means = self.values[place, learner, rule].mean(axis=0)[list(SHOWN)]
                    ms = f"{1000 * self.seconds[place, learner]:.0f}"
                    rows.append((place, learner, rule, *map(float, means), ms))
        out = self.pool.is_test
        return ReportTable(
            f"{self.pool.name}: AP of {len(self.topics)} topics",
            ("measured on", "learner", "rule", *(f"{N_JUDGED[step]} judged" for step in SHOWN), "ms"),
            tuple(rows),
            digits=3,
            note=f"pool: the {int((~out).sum())} rows that may be judged, judged ones included; test: {int(out.sum())} "
            f"others, of the {len(self.named['test'])} topics that have {MIN_TEST} rows or more there. ms: processor "
            "time of a step, which fits, scores, measures and chooses.",
        )

    def findings(self) -> tuple[str, ...]:
        """Say what a rule, smoothing and a learner bring, with Wilcoxon's test over topics."""
        counts = ", ".join(str(N_JUDGED[step]) for step in SHOWN[1:])
        results = []
        for place, item, other in COMPARED:
            gap = self.values[place, *item] - self.values[place, *other]
            gains = ", ".join(f"{gap[:, index].mean():+.3f} ({p_text(gap[:, index])})" for index in SHOWN[1:])
            sides = f"{' by '.join(item)} minus {' by '.join(other)}"
            results.append(f"{self.pool.name}, {place} rows, {counts} judged: {sides} {gains}.")
        return tuple(results)


def choice_curves(options: ExperimentOptions, pool: TopicPool, repeats: int, topics: list[str]) -> ChoiceCurves:
    """
    Judge step by step, topic by topic.

    options: kept results.
    pool: the problem.
    repeats: starts of each topic; all learners and rules begin alike.
    topics: which of its topics.
    Returns: the curves.
    """
    measured = {
        "pool": topics,
        "test": [topic for topic in topics if pool.about[topic][pool.is_test].sum() >= MIN_TEST],
    }
    options.expect(repeats * sum(len(measured[place]) for place, _ in MEASURED))
    values: dict[tuple[str, str, str], Floats] = {}
    seconds: dict[tuple[str, str], float] = {}
    # repeat by repeat, so that a run that is broken off has some of everything
    cells: dict[tuple[str, str], list[list[Any]]] = {of: [] for of in MEASURED}
    for repeat in range(repeats):
        for place, learner in MEASURED:
            cells[place, learner].append(
                [_cell(options, pool, topic, learner, place, repeat) for topic in measured[place]]
            )
    for (place, learner), of in cells.items():
        by_rule = np.array([[cell["values"] for cell in row] for row in of], dtype=np.float64).mean(axis=0)
        values |= {(place, learner, rule): by_rule[:, index] for index, rule in enumerate(RULES)}
        seconds[place, learner] = float(np.median([cell["seconds"] for row in of for cell in row]))
    named = {}
    for place, of_place in measured.items():
        rows = pool.is_test == (place == "test")
        results = [average_precision(pool.about[topic][rows], pool.named[topic][rows]) for topic in of_place]
        named[place] = np.array(results, dtype=np.float64)
    return ChoiceCurves(pool, topics, values, named, seconds)


def _cell(options: ExperimentOptions, pool: TopicPool, topic: str, learner: str, place: str, repeat: int) -> Any:
    key = {
        "experiment": "few-judgements", "table": pool.name, "topic": topic, "learner": learner, "place": place,
        "repeat": repeat,
    }  # fmt: skip
    return options.result(key, lambda: _replay(options, pool, topic, learner, place, repeat))


def _replay(options: ExperimentOptions, pool: TopicPool, topic: str, learner: str, place: str, repeat: int) -> Any:
    features, estimator = learners()[learner]
    X, y, out = (pool.text if features == "text" else pool.smooth), pool.about[topic], pool.is_test
    began = process_time()
    curve = judging_curve(
        estimator, X[~out], y[~out], strategy=RULES, start=START, steps=STEPS, batch=BATCH, n_repeats=1,
        test=(X[out], y[out]) if place == "test" else "all", random_state=1000 * options.seed + repeat,
    )  # fmt: skip
    seconds = (process_time() - began) / curve.values.size
    return {"values": np.round(curve.values[:, 0], 6).tolist(), "seconds": seconds}
