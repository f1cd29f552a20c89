"""
nDCG@10 over many queries: corank against plain numpy, scikit-learn, trec_eval and ir-measures.

Each line of output is one figure as JSON: seconds are medians over repeats, `ratio` is the time of the named
alternative over corank's in the same run (above 1: corank is faster). Building the tables of dictionaries that
trec_eval and ir-measures need is not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from corank.metrics import evaluate

FIRST_CALL = """
import time
import numpy as np
from corank.metrics import evaluate
y, scores, qid = np.array([1.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0]), np.array([1, 1, 2])
began = time.perf_counter()
evaluate(y, scores, qid, "nDCG@10")
print(time.perf_counter() - began)
"""
FIRST_NUMBA_CALL = """
import time
import numpy as np
from corank.core.rows.blocks import _sort_blocks as sort_blocks
keys, order, starts = np.ones(3), np.arange(3), np.array([0, 3])
began = time.perf_counter()
sort_blocks(keys, order, starts, 0, 1)
print(time.perf_counter() - began)
"""


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def report(**figure: object) -> None:
    print(json.dumps({"bench": "metrics", **figure}), flush=True)


def by_numpy(y: np.ndarray, scores: np.ndarray) -> float:
    """Compute nDCG@10 of equally long queries, ties in any order."""
    discounts = 1.0 / np.log2(np.arange(2, 12))

    def dcg(keys: np.ndarray) -> np.ndarray:
        top = np.argpartition(-keys, 10, axis=1)[:, :10]
        order = np.take_along_axis(top, np.argsort(-np.take_along_axis(keys, top, 1), axis=1), 1)
        return (np.exp2(np.take_along_axis(y, order, 1)) - 1.0) @ discounts

    ideal = dcg(y)
    return float(np.mean(dcg(scores)[ideal > 0] / ideal[ideal > 0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the queries, fewer repeats")
    quick = parser.parse_args().quick
    n_queries, n_rows, repeats = (1000, 100, 3) if quick else (10_000, 100, 9)
    size = f"{n_queries} queries x {n_rows} rows"
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, (n_queries, n_rows)).astype(np.float64)
    scores = np.round(rng.normal(size=(n_queries, n_rows)), 1)
    qid = np.repeat(np.arange(n_queries), n_rows)
    flat_y, flat_scores = y.ravel(), scores.ravel()
    for n_jobs in (1, 2):
        evaluate(flat_y, flat_scores, qid, "nDCG@10", n_jobs=n_jobs)
        own = median_seconds(lambda: evaluate(flat_y, flat_scores, qid, "nDCG@10", n_jobs=n_jobs), 2 * repeats + 1)  # noqa: B023
        report(figure="nDCG@10, ties by expectation", size=size, threads=n_jobs, seconds=own)

    def against(name: str, work: Callable[[], object], repeats: int) -> None:
        seconds = median_seconds(work, repeats)
        report(figure="nDCG@10", size=size, threads=2, against=name, other_seconds=seconds, ratio=seconds / own)

    from sklearn.metrics import ndcg_score

    against("numpy, no tie rule", lambda: by_numpy(y, scores), repeats)
    against("scikit-learn, ties ignored", lambda: ndcg_score(y, scores, k=10, ignore_ties=True), repeats)
    against("scikit-learn, ties averaged", lambda: ndcg_score(y, scores, k=10), 3)
    against_trec(against, y, scores)
    whole = ("nDCG", "MeanNDCG", "AP", "RR", "ERR@10", "BEP", "AUC", "kpartite", "kendall")
    evaluate(flat_y, flat_scores, qid, whole)
    seconds = median_seconds(lambda: evaluate(flat_y, flat_scores, qid, whole, n_jobs=2), 3)
    report(figure="nine metrics of whole lists", size=size, threads=2, seconds=seconds)
    first_calls(3 if quick else 7)


def against_trec(against: Callable[[str, Callable[[], object], int], None], y: np.ndarray, scores: np.ndarray) -> None:
    import ir_measures
    import pytrec_eval

    names = [str(row) for row in range(y.shape[1])]
    judged = {str(q): dict(zip(names, map(int, row), strict=True)) for q, row in enumerate(y)}
    run = {str(q): dict(zip(names, row.tolist(), strict=True)) for q, row in enumerate(scores)}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10"})
    against("pytrec_eval, ties by document", lambda: evaluator.evaluate(run), 3)
    measure = ir_measures.nDCG @ 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        against("ir-measures, ties by document", lambda: ir_measures.calc_aggregate([measure], judged, run), 3)


def first_calls(repeats: int) -> None:
    """Time the first evaluation of a process whose compiled code is on disk, after imports."""

    def once(code: str) -> float:
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)

    own = statistics.median(once(FIRST_CALL) for _ in range(repeats))
    plain = statistics.median(once(FIRST_NUMBA_CALL) for _ in range(repeats))
    report(
        figure="first call in a process", seconds=own, against="first call of any cached numba kernel",
        other_seconds=plain, ratio=plain / own,
    )  # fmt: skip


if __name__ == "__main__":
    main()
