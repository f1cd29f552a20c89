"""
Replay of `corank suggest` for fusions: how many judged documents bring a fusion .01 above RRF?

Half of the queries of TREC DL may be judged, the other half measures nDCG@10; the qrels answer every question. Four
ways to choose documents: single ones at random; the first 10 of every list, for queries at random (top-k pooling);
whole queries by `suggest_for_fusion`; and single documents drawn by it. Every line is one figure: the gain over RRF
after so many judged documents, mean over draws, and the share of draws with a gain of .01 or more.
With --pools: the gain of a fusion of 26 judged queries with three pools, all documents, the first 10 of every list, and
these with the first 10 of RRF; and with two treatments of unjudged documents.
With --time: processor seconds of a fit to 100 queries and eight retrievers, of synthetic lists.
Run: CORANK_DATA=... python benchmarks/bench_fusion_suggest.py [--quick] [--draws 20] [--pools | --time]
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data import read_grades, read_runs
from corank.data.io.runs import Runs
from corank.models.fusion import Fusion, FusionDefinition
from corank.models.fusion.judged import JudgedQueries
from corank.models.fusion.lists import RetrievedLists
from corank.models.fusion.suggest import suggest_for_fusion

Floats = NDArray[np.float64]
BUDGETS = (40, 80, 160, 320, 640)
DEPTH = 10
SETS = {
    "DL 2021, BM25 + TAS-B": ("trec_dl2021", ("paug_bm25", "TUW_TAS-B_768")),
    "DL 2021, BM25 + TCT": ("trec_dl2021", ("p_bm25", "p_tct1")),
    "DL 2019, 6 runs": (
        "trec_dl2019",
        ("bm25tuned_p", "UNH_bm25", "ms_duet_passage", "srchvrs_ps_run1", "TUW19-p1-f", "bm25base_ax_p"),
    ),
    "DL 2021, 8 runs": (
        "trec_dl2021",
        ("p_bm25", "p_bm25rm3", "paug_bm25", "paug_bm25rm3", "p_tct0", "p_tct1", "TUW_TAS-B_768", "p_unicoil0"),
    ),
}  # fmt: skip

Choose = Callable[[FusionDefinition, RetrievedLists, Floats, int, np.random.Generator], tuple[Any, Any]]


def random_documents(
    _: FusionDefinition, lists: RetrievedLists, y: Floats, n: int, rng: np.random.Generator
) -> tuple[Any, Any]:
    free = np.flatnonzero(np.isnan(y))
    return rng.choice(free, min(n, len(free)), replace=False), 1.0


def top_pools(
    _: FusionDefinition, lists: RetrievedLists, y: Floats, n: int, rng: np.random.Generator
) -> tuple[Any, Any]:
    """Judge the first documents of every list, one random query after another, as long as whole queries fit."""
    codes, rows = lists.queries.codes, []
    is_pooled = np.isnan(y) & ((lists.ranks > 0) & (lists.ranks <= DEPTH)).any(axis=1)
    for q in rng.permutation(len(lists.queries)).tolist():
        members = np.flatnonzero(is_pooled & (codes == q))
        if len(members) and np.isnan(y[codes == q]).all() and (len(rows) + len(members) <= n or not rows):
            rows += members[: n - len(rows)].tolist()
    return np.array(rows, dtype=np.int64), 1.0


def suggested(strategy: str) -> Choose:
    def choose(
        definition: FusionDefinition, lists: RetrievedLists, y: Floats, n: int, rng: np.random.Generator
    ) -> tuple[Any, Any]:
        chosen = suggest_for_fusion(definition, lists, y, n, strategy=strategy, random_state=int(rng.integers(2**31)))
        return chosen.rows, chosen.probabilities

    return choose


STRATEGIES: dict[str, Choose] = {
    "random documents": random_documents, "top 10 of random queries": top_pools,
    "suggest, whole queries": suggested("queries"), "suggest, sample": suggested("sample"),
}  # fmt: skip


def judged_runs(folder: Path, names: tuple[str, ...]) -> tuple[Runs, Floats]:
    """Return the lists of the judged queries, and the grades; unjudged documents have the grade 0."""
    qrels = read_grades(folder / "qrels.txt.gz")[0]
    runs = read_runs([folder / "runs" / f"{name}.run.gz" for name in names])
    kept = np.isin(runs.qid.astype(str), qrels.qid.astype(str))
    runs = replace(runs, qid=runs.qid[kept], docids=runs.docids[kept], X=runs.X[kept])
    return runs, np.nan_to_num(runs.join(qrels)[0])


def replay(name: str, data: Path, draws: int) -> None:
    folder, names = SETS[name]
    runs, truth = judged_runs(data / folder, names)
    queries = np.unique(runs.qid.astype(str))
    gains: dict[str, list[list[float]]] = {strategy: [] for strategy in STRATEGIES}
    for draw in range(draws):
        half = set(np.random.default_rng(draw).permutation(queries)[: len(queries) // 2].tolist())
        is_train = np.array([query in half for query in runs.qid.tolist()])
        lists = RetrievedLists.of(runs.X[is_train], runs.qid[is_train])
        test = RetrievedLists.of(runs.X[~is_train], runs.qid[~is_train])
        measured = JudgedQueries.of(truth[~is_train], test.queries, 10)
        rrf = FusionDefinition.rrf(tuple(f"r{j + 1}" for j in range(len(names))))
        base = float(measured.ndcg(rrf.score_lists(test)[:, None]).mean())
        for strategy, choose in STRATEGIES.items():
            rng, definition, curve = np.random.default_rng([draw, 1]), rrf, []
            y, weights = np.full(int(is_train.sum()), np.nan), np.ones(int(is_train.sum()))
            for budget in BUDGETS:
                rows, odds = choose(definition, lists, y, budget - int((~np.isnan(y)).sum()), rng)
                y[rows], weights[rows] = truth[is_train][rows], 1.0 / odds
                definition = Fusion().fit(lists.X, y, qid=runs.qid[is_train], sample_weight=weights).definition_
                curve.append(float(measured.ndcg(definition.score_lists(test)[:, None]).mean()) - base)
            gains[strategy].append(curve)
    for strategy, curves in gains.items():
        values = np.array(curves)
        figure = {
            "figure": "gain over RRF", "set": name, "strategy": strategy, "draws": draws, "judged": BUDGETS,
            "gain": values.mean(axis=0).round(4).tolist(), "share": (values >= 0.01).mean(axis=0).round(2).tolist(),
        }  # fmt: skip
        print(json.dumps(figure), flush=True)


def pools(name: str, data: Path, draws: int) -> None:
    folder, names = SETS[name]
    runs, truth = judged_runs(data / folder, names)
    queries = np.unique(runs.qid.astype(str))
    gains: dict[str, list[float]] = {}
    for draw in range(draws):
        half = set(np.random.default_rng(draw).permutation(queries)[: len(queries) // 2].tolist())
        is_train = np.array([query in half for query in runs.qid.tolist()])
        lists = RetrievedLists.of(runs.X[is_train], runs.qid[is_train])
        test = RetrievedLists.of(runs.X[~is_train], runs.qid[~is_train])
        measured = JudgedQueries.of(truth[~is_train], test.queries, 10)
        rrf = FusionDefinition.rrf(tuple(f"r{j + 1}" for j in range(len(names))))
        base = float(measured.ndcg(rrf.score_lists(test)[:, None]).mean())
        top = ((lists.ranks > 0) & (lists.ranks <= DEPTH)).any(axis=1)
        judged = {
            "all": np.full(len(top), True), "top 10": top,
            "top 10 and RRF": top | (lists.queries.ranks(rrf.score_lists(lists)) <= DEPTH),
        }  # fmt: skip
        for pool, is_judged in judged.items():
            for unjudged in ("auto", "pooled"):
                y = np.where(is_judged, truth[is_train], np.nan)
                fusion = Fusion(unjudged=unjudged).fit(lists.X, y, qid=runs.qid[is_train])
                value = float(measured.ndcg(fusion.definition_.score_lists(test)[:, None]).mean())
                gains.setdefault(f"{pool}, {unjudged}", []).append(value - base)
    rounded = {key: round(float(np.mean(values)), 4) for key, values in gains.items()}
    print(json.dumps({"figure": "pools", "set": name, "draws": draws, "gain": rounded}), flush=True)


def measure_time(n_documents: int, depth: int) -> None:
    """Print the time of a fit to lists of some depth out of so many documents per query."""
    rng = np.random.default_rng(0)
    y = (rng.random((100, n_documents)) < 0.03) * rng.integers(1, 4, (100, n_documents))
    S = 0.8 * y[:, :, None] + rng.normal(size=(100, n_documents, 8)) + 1.5 * rng.normal(size=(100, n_documents, 1))
    X = np.where(np.sort(S, axis=1)[:, -depth][:, None] <= S, S, np.nan).reshape(-1, 8)
    is_returned = ~np.isnan(X).all(axis=1)
    X, qid = X[is_returned], np.repeat(np.arange(100), n_documents)[is_returned]
    grades = y.reshape(-1).astype(np.float64)[is_returned]
    Fusion().fit(X[qid < 3], grades[qid < 3], qid=qid[qid < 3])  # imports
    began = time.process_time()
    Fusion().fit(X, grades, qid=qid)
    seconds = round(time.process_time() - began, 2)
    print(json.dumps({"figure": "seconds of a fit", "rows": len(X), "retrievers": 8, "seconds": seconds}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--pools", action="store_true")
    given = parser.parse_args()
    if given.time:
        measure_time(1000, 700)
        measure_time(2500, 1000)
        return
    data = os.environ.get("CORANK_DATA")
    if not data or not Path(data, "trec_dl2021").is_dir():
        raise SystemExit("set CORANK_DATA to the folder of data sets, which holds trec_dl2021 and trec_dl2019")
    warnings.simplefilter("ignore")
    for name in list(SETS)[: 1 if given.quick else None]:
        (pools if given.pools else replay)(name, Path(data), 2 if given.quick else given.draws)


if __name__ == "__main__":
    main()
