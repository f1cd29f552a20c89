"""
The hint of `RankRLS(alphas=...)` that a Gaussian kernel would rank better: how often it is right, and what it costs.

The collections of `bench_auto.py`, with 60, 100 and all training queries: whether the hint is given, the gain in
nDCG@10 of the Gaussian kernel on test queries, and processor milliseconds of the fit with and without the check. The
rule was chosen on `DEVELOPMENT` and is judged on `JUDGING`. One JSON line per fit. Needs CORANK_DATA.
Run: python benchmarks/bench_kernel_hint.py [--collections steps fireman] [--draws 2]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from auto_collections import JUDGING, Rows, collection, split
from corank import RankRLS
from corank.metrics import ndcg


def milliseconds(work: Callable[[], object]) -> float:
    """Return the lowest processor time of five calls."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return round(1e3 * min(times), 1)


def one(name: str, train: Rows, test: Rows) -> None:
    """Print the figures of one fit."""

    def fit(alphas: object, kernel: str = "linear") -> RankRLS:
        return RankRLS(kernel=kernel, alphas=alphas, random_state=0).fit(train.X, train.y, qid=train.qid)

    def quality(model: RankRLS) -> float:
        return ndcg(test.y, model.predict(test.X), test.qid, k=10)

    alphas, gaussian = (fit(None, kernel).alpha_ for kernel in ("linear", "gaussian"))
    alphas = alphas * np.logspace(-3, 2, 6)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        linear = fit(alphas)
    is_given = any("Gaussian" in str(warning.message) for warning in found)
    gain = quality(fit(gaussian * np.logspace(-4, 0, 5), "gaussian")) - quality(linear)
    checked = milliseconds(lambda: fit(alphas))
    with mock.patch("corank.models.rls.rankrls.gaussian_is_better", return_value=False):
        plain = milliseconds(lambda: fit(alphas))
    line = {"collection": name, "queries": len(np.unique(train.qid)), "hint": is_given, "gain": round(gain, 4)}
    print(json.dumps({**line, "cpu_ms": checked, "cpu_ms_without": plain}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--collections", nargs="+", default=[*JUDGING], help="collections of bench_auto.py")
    parser.add_argument("--draws", type=int, default=2, help="random splits of the queries")
    given = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in given.collections:
            for n_queries in (60, 100, None):
                for draw in range(given.draws):
                    train, test = split(collection(name), n_queries, draw)
                    if n_queries is None or len(np.unique(train.qid)) == n_queries:
                        one(name, train, test)


if __name__ == "__main__":
    main()
