"""
One, two or five rows of a topic are known, and nothing else.

All judged rows agree, and a ranker has no pair: 500 random rows are presumed to be of no topic (a few are, and count as
bad all the same). Measured on the rows that are neither known nor presumed, the pool and the test rows together.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.routing import fit_with_qid
from corank.metrics import average_precision
from corank.tables import Cell, ReportTable
from experiments.few_judgements.learners import RANKRLS, learners
from experiments.few_judgements.problems import TopicPool
from experiments.options import ExperimentOptions
from experiments.significance import p_text

N_KNOWN = (1, 2, 5)
N_PRESUMED = 500
NAMED, MEAN = "words of the name, nothing judged", "mean of the known, nothing learnt"

Floats = NDArray[np.float64]


def positives_table(options: ExperimentOptions, pool: TopicPool, repeats: int, topics: list[str]) -> ReportTable:
    """
    Compare what learns from a few known rows.

    options: kept results.
    pool: the problem.
    repeats: draws of known and presumed rows for each topic.
    topics: which of its topics.
    Returns: AP by the number of known rows; the gain over RankRLS on text with Wilcoxon's test over topics.
    """
    options.expect(len(topics) * len(N_KNOWN) * repeats)
    results = {
        n: [[_cell(options, pool, topic, n, repeat) for repeat in range(repeats)] for topic in topics] for n in N_KNOWN
    }
    rows: list[tuple[Cell, ...]] = []
    for method in (NAMED, MEAN, *learners()):
        cells: list[Cell] = []
        for n in N_KNOWN:
            values, bar = (_by_topic(results[n], name) for name in (method, RANKRLS))
            cells += [float(values.mean()), f"{(values - bar).mean():+.3f} ({p_text(values - bar, '.1g', '')})"]
        seconds = float(np.median([draw[method][1] for draws in results[N_KNOWN[-1]] for draw in draws]))
        rows.append((method, *cells, f"{1000 * seconds:.0f}" if seconds else ""))
    return ReportTable(
        f"{pool.name}: AP of {len(topics)} topics from known rows alone",
        ("method", *(text for n in N_KNOWN for text in (f"{n} known", "gain (p)")), "ms"),
        tuple(rows),
        digits=3,
        note=f"Gain over {RANKRLS} on text. ms: processor time to fit {N_KNOWN[-1]} known and {N_PRESUMED} presumed "
        f"rows and to score {len(pool.is_test)}.",
    )


def _by_topic(cells: list[list[dict[str, tuple[float, float]]]], method: str) -> Floats:
    return np.array([np.mean([draw[method][0] for draw in draws]) for draws in cells])


def _cell(options: ExperimentOptions, pool: TopicPool, topic: str, n_known: int, repeat: int) -> Any:
    key = {"experiment": "few-judgements", "table": "positives", "topic": topic, "known": n_known, "repeat": repeat}
    return options.result(key, lambda: _draw(pool, topic, n_known, np.random.default_rng([options.seed, repeat])))


def _draw(pool: TopicPool, topic: str, n_known: int, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Method to AP and processor time."""
    y = pool.about[topic]
    known = rng.choice(np.flatnonzero(y), n_known, replace=False)
    others = np.setdiff1d(np.arange(len(y)), known)
    presumed = rng.choice(others, min(N_PRESUMED, len(others) // 2), replace=False)
    judged = np.repeat([1.0, 0.0], [n_known, len(presumed)])
    rows = np.concatenate([known, presumed])
    rest = np.setdiff1d(others, presumed)
    scores: dict[str, tuple[Floats, float]] = {
        NAMED: (pool.named[topic][rest], 0.0),
        MEAN: (np.asarray(pool.text[rest] @ np.asarray(pool.text[known].mean(axis=0)).ravel()), 0.0),
    }
    for name, (features, estimator) in learners().items():
        X, began = (pool.text if features == "text" else pool.smooth), process_time()
        model = fit_with_qid(estimator, X[rows], judged, np.zeros(len(rows)))
        scores[name] = (model.predict(X[rest]), process_time() - began)
    return {
        name: (round(float(average_precision(y[rest], values)), 6), seconds)
        for name, (values, seconds) in scores.items()
    }
