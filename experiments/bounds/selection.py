"""
Does D, the distance of two rankers on unjudged queries, choose better models than held-out errors alone?

Usunier, Truong, Amini and Gallinari, Ranking with unlabeled data: a first study, 2005, compare rankers by D. The alpha
of a linear RankRLS is chosen from a few judged queries: by fivefold errors, by fivefold errors plus D, by D alone, or
by the closed rule of corank, which chooses nothing. Nothing was tuned.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank import QueryKFold, RankRLS
from corank.comparison.report import Report
from corank.metrics import evaluate
from corank.metrics.bounds import ranking_distance
from corank.metrics.bounds.cross_validation import list_errors
from corank.tables import Cell, ReportTable
from experiments.datasets.catalog import dataset
from experiments.datasets.mq2008 import read_parts
from experiments.options import ExperimentOptions
from experiments.significance import p_text

REPEATS, N_FOLDS = 20, 5
SIZES = (5, 10, 20, 40)
N_UNJUDGED = 100
ALPHAS = tuple(float(f"{10.0 ** (power / 2):.2g}") for power in range(-8, 7))
RULES = ("closed rule", "errors", "errors + D", "D")
METRICS = ("disagreement", "nDCG@10")

Floats = NDArray[np.float64]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 20 repeats by default; quick runs make 4.
    Returns: test errors of the chosen models, for each number of judged queries.
    """
    repeats = options.repeats or (4 if options.quick else REPEATS)
    cells = [("MQ2008", read_parts, n) for n in SIZES] + [("MSLR sample", _mslr, n) for n in SIZES[:-1]]
    options.expect(len(cells) * repeats)
    rows: list[tuple[Cell, ...]] = []
    for name, read, n in cells:
        key = {"experiment": "bounds-selection", "source": name, "judged": n}
        trials = [
            options.result({**key, "repeat": repeat}, partial(choose, read, n, [options.seed, repeat]))
            for repeat in range(repeats)
        ]
        for metric in METRICS:
            values = {rule: np.array([trial[rule][metric] for trial in trials]) for rule in RULES}
            gain = values["errors + D"] - values["errors"]
            means = (float(of.mean()) for of in values.values())
            rows.append((name, f"{n}", metric, *means, float(gain.mean()), p_text(gain, before="")))
    return Report(
        "Models chosen by D",
        f"Linear RankRLS, alpha one of {len(ALPHAS)} from {ALPHAS[0]:g} to {ALPHAS[-1]:g}; {N_FOLDS} folds of the "
        f"judged queries; D on at most {N_UNJUDGED} other queries without their grades; tests on all queries that were "
        f"not judged; {repeats} draws. Tests are Wilcoxon's over draws, which share queries.",
        (
            ReportTable(
                "Test values of the chosen alpha",
                ("set", "judged queries", "metric", *RULES, "errors + D against errors", "p"),
                tuple(rows),
                note="Disagreement is an error: negative differences are better. nDCG@10: positive ones are.",
            ),
        ),
    )


def choose(read: Any, n: int, seed: list[int]) -> dict[str, dict[str, float]]:
    """Return test values of the alpha that each rule chooses from n judged queries."""
    rng, source = np.random.default_rng(seed), read()
    X, y, qid = (
        np.asarray(source.X, dtype=np.float64),
        np.asarray(source.y),
        np.unique(source.qid, return_inverse=True)[1],
    )
    several = np.array([len(np.unique(y[qid == q])) > 1 for q in range(qid.max() + 1)])
    queries = rng.permutation(np.flatnonzero(several))
    judged, rest = np.isin(qid, queries[:n]), np.isin(qid, queries[n:])
    others = np.isin(qid, queries[n : n + N_UNJUDGED])

    def fitted(alpha: float | None, rows: NDArray[Any]) -> RankRLS:
        return RankRLS(alpha).fit(X[rows], y[rows], qid=qid[rows])

    errors, distances = np.zeros(len(ALPHAS)), np.zeros(len(ALPHAS))
    numbers = np.flatnonzero(judged)
    for index, alpha in enumerate(ALPHAS):
        whole = fitted(alpha, numbers).predict(X[others])
        for train, test in QueryKFold(N_FOLDS).split(X[numbers], qid=qid[numbers]):
            model, held = fitted(alpha, numbers[train]), numbers[test]
            errors[index] += list_errors(model.predict(X[held]), y[held], qid[held])[0].mean() / N_FOLDS
            distances[index] += ranking_distance(whole, model.predict(X[others]), qid[others]) / N_FOLDS
    best = (None, *(ALPHAS[int(np.argmin(of))] for of in (errors, errors + distances, distances)))
    values = {}
    for rule, chosen in zip(RULES, best, strict=True):
        result = evaluate(y[rest], fitted(chosen, numbers).predict(X[rest]), qid[rest], METRICS)
        values[rule] = {metric: float(result[metric].mean) for metric in METRICS}
    return values


def _mslr() -> Any:
    from corank.data.io.letor_reader import read_letor

    entry = dataset("mslr-sample")
    return read_letor([entry.path(f"msn1.fold1.{part}.5k.txt") for part in ("train", "test")], layout="dense")
