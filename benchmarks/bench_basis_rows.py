"""
Basis rows by default: what they cost in accuracy and save in time, against all rows.

`RankRLS(kernel="gaussian")` with 250 to 2,000 basis rows, with the closed rule for alpha and with a path of 8 alphas,
and `RankingPursuit` with a dictionary of as many rows, against the same with all scored rows. The collections of
`bench_auto.py`, without their limits on the number of queries; the sizes were chosen on these collections, so that none
judges them independently. One JSON line per fit: nDCG@10 and disagreement error on held-out queries, processor seconds
of the fit.
One thread. Needs CORANK_DATA.
Run: python benchmarks/bench_basis_rows.py [--what rls path pursuit] [--collections MQ2008] [--rows 6000] [--draws 2]
     python benchmarks/bench_basis_rows.py --sizes 2000 4000 8000 16000   (time alone, synthetic rows)
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import auto_collections
from auto_collections import collection, split
from corank import RankingPursuit, RankRLS
from corank.errors import UsageWarning
from corank.metrics import evaluate

COLLECTIONS = ("MQ2008", "Jester", "abalone", "bends", "MSLR", "MovieLens", "wine", "steps")
ALPHAS = np.logspace(-6, 1, 8)
METRICS = ["nDCG@10", "disagreement"]


def ranker(what: str, n: int | None, seed: int) -> RankRLS | RankingPursuit:
    """Return a ranker with n basis rows; None for all."""
    if what == "pursuit":
        return RankingPursuit(dictionary="scored" if n is None else n, random_state=seed)
    alphas = ALPHAS if what == "path" else None
    return RankRLS(kernel="gaussian", n_basis=n, alphas=alphas, random_state=seed)


def accuracy(name: str, what: str, n_rows: int, draw: int) -> None:
    """Print the figures of one collection."""
    train, test = split(collection(name), None, draw)
    ids, sizes = np.unique(train.qid, return_counts=True)
    train = train.queries(ids[np.cumsum(sizes) <= n_rows])
    for n in (None, 250, 500, 1000, 2000):
        if n is not None and n >= len(train.y):
            continue
        begin = time.process_time()
        model = ranker(what, n, draw).fit(train.X, train.y, qid=train.qid)
        spent = time.process_time() - begin
        found = evaluate(test.y, model.predict(test.X), test.qid, METRICS)
        values = {metric: round(found[metric].mean, 4) for metric in METRICS}
        line = {"collection": name, "what": what, "rows": len(train.y), "draw": draw, "basis_rows": n, **values}
        print(json.dumps({**line, "cpu_s": round(spent, 2)}), flush=True)


def times(n_rows: int) -> None:
    """Print the processor time of the default and of all rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 20))
    y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=n_rows), [0, 1, 2]).astype(float)
    for name, auto, whole in (
        ("RankRLS", RankRLS(kernel="gaussian", random_state=0), RankRLS(kernel="gaussian", n_basis=None)),
        ("RankingPursuit", RankingPursuit(random_state=0), RankingPursuit(dictionary="scored")),
    ):
        spent = []
        for model in (auto, whole):
            begin = time.process_time()
            model.fit(X, y, qid=np.arange(n_rows) // 40)
            spent.append(time.process_time() - begin)
        line = {"figure": f"{name}, {n_rows} rows", "cpu_s": round(spent[0], 2), "alternative": "all rows"}
        print(json.dumps({**line, "alternative_s": round(spent[1], 2), "ratio": round(spent[0] / spent[1], 3)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--what", nargs="+", default=["rls", "pursuit"], help="rls, path, pursuit")
    parser.add_argument("--collections", nargs="+", default=COLLECTIONS, help="collections of bench_auto.py")
    parser.add_argument("--rows", type=int, default=6000, help="training rows")
    parser.add_argument("--draws", type=int, default=2, help="random splits of the queries")
    parser.add_argument("--sizes", type=int, nargs="+", help="measure time alone, with these numbers of rows")
    given = parser.parse_args()
    auto_collections.MOST_ROWS, auto_collections.MOST_TRAIN, auto_collections.MOST_TEST = 400, 10**6, 10**6
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UsageWarning)
        for n_rows in (6000, *given.sizes) if given.sizes else ():  # the first one loads the compiled kernels
            times(n_rows)
        for name in () if given.sizes else given.collections:
            for what in given.what:
                for draw in range(given.draws):
                    accuracy(name, what, given.rows, draw)


if __name__ == "__main__":
    main()
