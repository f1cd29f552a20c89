"""
Learning from parts: what a second worker, a folder larger than memory, and a cluster's other rankers cost.

Each line of output is one figure as JSON. `seconds` are by the clock; `cpu_seconds` is the processor time of the worker
that used most of it, the critical path, which other processes disturb less; `ratio_if_shared_evenly` compares what all
workers used; `load` is the machine's load average at the beginning. Folders are made where --folder says, and removed.

    python benchmarks/bench_distributed.py speed --rows 5000000
    python benchmarks/bench_distributed.py memory --gigabytes 10
    python benchmarks/bench_distributed.py rivals
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import shutil
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from corank import RankRLS, evaluate, read
from corank.deploy.distributed import Parts, fit_parts

COLUMNS, ROWS_PER_QUERY = 46, 100


def report(**figure: object) -> None:
    print(json.dumps({"bench": "distributed", **figure}), flush=True)


def rows_of(seed: int, n: int) -> tuple[Any, Any, Any]:
    """Rows as of LETOR: five grades that depend on some columns, queries of a hundred."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, COLUMNS), dtype=np.float32)
    hidden = X[:, :8] @ np.linspace(1, 0.2, 8) + rng.standard_normal(n)
    y = np.digitize(hidden, [0.0, 1.0, 2.0, 3.0]).astype(np.float64)
    return X, y, np.int64(seed) * 10**9 + np.arange(n) // ROWS_PER_QUERY


def write_folder(folder: Path, n_rows: int, n_parts: int) -> None:
    """Parts of the same rows, each under query ids of its own."""
    X, y, first = rows_of(0, n_rows // n_parts)
    for part in range(n_parts):
        qid = first + part * 10**9
        columns = {f"f{k + 1}": X[:, k] for k in range(COLUMNS)}
        table = pyarrow.table({"label": y, "qid": qid, **columns})
        # random numbers do not repeat: a dictionary of them would only cost time
        parquet.write_table(table, folder / f"part-{part:04}.parquet", use_dictionary=["qid"], compression="none")


def cpu() -> float:
    return time.process_time()


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ready() -> float:
    """Load or compile the kernels, and return the seconds that it took."""
    began = time.perf_counter()
    for dtype in (np.float32, np.float64):
        X = np.arange(12, dtype=dtype).reshape(6, 2)
        fit_parts(RankRLS(), [(X, np.array([0.0, 1.0, 1.0, np.nan, np.nan, 0.0]), np.array([1, 1, 1, 1, 1, 2]))])
    return time.perf_counter() - began


def cluster_of(n_workers: int) -> Any:
    from distributed import Client, LocalCluster

    how = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    cluster = LocalCluster(n_workers=n_workers, **how)
    client = Client(cluster)
    compiled = client.run(ready)
    report(
        figure="kernels loaded or compiled, once a worker", workers=n_workers, seconds=round(max(compiled.values()), 2)
    )
    return client, cluster


def on_cluster(n_workers: int, folder: Path, repeats: int) -> tuple[float, float, float, Any]:
    client, cluster = cluster_of(n_workers)
    clock, critical, total = [], [], []
    with client, cluster:
        for _ in range(repeats):
            before, began = client.run(cpu), time.perf_counter()
            parts = Parts(folder, client)
            model = fit_parts(RankRLS(), parts)
            clock.append(time.perf_counter() - began)
            after = client.run(cpu)
            used = [after[worker] - before[worker] for worker in after]
            critical.append(max(used))
            total.append(sum(used))
    for one in parts.passes:
        report(figure="pass", workers=n_workers, name=one.name, seconds=round(one.seconds, 2), bytes=one.bytes_moved)
    return statistics.median(clock), statistics.median(critical), statistics.median(total), model


def speed(args: argparse.Namespace, folder: Path) -> None:
    write_folder(folder, args.rows, args.parts)
    load, found = os.getloadavg()[0], {}
    for n_workers in (1, 2):
        found[n_workers] = on_cluster(n_workers, folder, args.repeats)
        seconds, critical, total, _ = found[n_workers]
        report(figure="fit_parts", rows=args.rows, workers=n_workers, seconds=round(seconds, 2),
               cpu_seconds=round(critical, 2), cpu_of_all=round(total, 2), load=load)  # fmt: skip
    (one, one_cpu, one_all, model), (two, two_cpu, two_all, other) = found[1], found[2]
    report(figure="two workers against one", ratio=round(one / two, 2), ratio_of_cpu=round(one_cpu / two_cpu, 2),
           ratio_if_shared_evenly=round(2 * one_all / two_all, 2),
           same_bytes=model.coef_.tobytes() == other.coef_.tobytes(), load=os.getloadavg()[0])  # fmt: skip
    ready()
    began, began_cpu = time.perf_counter(), time.process_time()
    here = fit_parts(RankRLS(), folder)
    report(figure="fit_parts, this machine", seconds=round(time.perf_counter() - began, 2),
           cpu_seconds=round(time.process_time() - began_cpu, 2),
           same_bytes=here.coef_.tobytes() == model.coef_.tobytes())  # fmt: skip
    began, began_cpu = time.perf_counter(), time.process_time()
    files = [read(path) for path in sorted(folder.iterdir())]
    X, y, qid = (np.concatenate([getattr(file, name) for file in files]) for name in ("X", "y", "qid"))
    del files
    read_seconds = time.perf_counter() - began
    whole = RankRLS().fit(X, y, qid=qid)
    report(figure="RankRLS.fit on all rows in memory", read_seconds=round(read_seconds, 2),
           seconds=round(time.perf_counter() - began, 2), cpu_seconds=round(time.process_time() - began_cpu, 2),
           furthest_weight=float(np.abs(whole.coef_ / model.coef_ - 1).max()),
           load=os.getloadavg()[0])  # fmt: skip


def memory(args: argparse.Namespace, folder: Path) -> None:
    n_parts = max(round(args.gigabytes * 1e9 / (args.part_rows * COLUMNS * 4)), 1)
    began = time.perf_counter()
    write_folder(folder, args.part_rows * n_parts, n_parts)
    size = sum(path.stat().st_size for path in folder.iterdir())
    report(figure="folder written", gigabytes=round(size / 1e9, 2), parts=n_parts,
           seconds=round(time.perf_counter() - began, 1))  # fmt: skip
    client, cluster = cluster_of(2)
    load = os.getloadavg()[0]
    with client, cluster:
        began = time.perf_counter()
        parts = Parts(folder, client)
        fit_parts(RankRLS(), parts)
        report(figure="folder summed", rows=parts.n_rows, workers=2, seconds=round(time.perf_counter() - began, 1),
               peak_megabytes=[round(one) for one in client.run(peak_megabytes).values()],
               here_megabytes=round(peak_megabytes()), load=load)  # fmt: skip


def rivals(args: argparse.Namespace, folder: Path) -> None:
    """Rows in random order in every part, so that all queries straddle: who ranks by whole queries all the same."""
    import dask.array as da
    import pandas

    X, y, qid = rows_of(1, args.rows)
    test = rows_of(2, 20_000)
    order = np.random.default_rng(0).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    n = len(y) // args.parts
    client, cluster = cluster_of(2)
    lazy = tuple(da.from_array(one, chunks=(n, -1) if one.ndim == 2 else n) for one in (X, y, qid))

    def judged(name: str, work: Any, moved: Any = None) -> None:
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = work()
        except Exception as error:
            report(figure="rival", name=name, failed=f"{type(error).__name__}: {error}"[:200])
            return
        ndcg = evaluate(test[1], scores, test[2], "nDCG@10")["nDCG@10"].mean
        report(figure="rival", name=name, seconds=round(time.perf_counter() - began, 2), ndcg=round(ndcg, 4),
               bytes_moved=moved() if moved else None, load=os.getloadavg()[0])  # fmt: skip

    with client, cluster:
        parts = Parts(lazy, client)
        judged("corank RankRLS, parts", lambda: fit_parts(RankRLS(), parts).predict(test[0]),
               lambda: sum(one.bytes_moved for one in parts.passes))  # fmt: skip
        judged("corank RankRLS, one machine", lambda: RankRLS().fit(X, y, qid=qid).predict(test[0]))

        def xgboost(splits: bool) -> Any:
            import dask.dataframe as dd
            from xgboost import dask as dxgb

            names = [f"f{k}" for k in range(COLUMNS)]
            frame = dd.from_dask_array(lazy[0], columns=names)
            labels, ids = (dd.from_dask_array(one) for one in (lazy[1].astype(int), lazy[2]))
            how = {"objective": "rank:ndcg", "n_estimators": 50, "max_depth": 4, "tree_method": "hist"}
            model = dxgb.DaskXGBRanker(allow_group_split=splits, **how)
            model.client = client
            model.fit(frame, labels, qid=ids)
            return model.get_booster().inplace_predict(pandas.DataFrame(test[0], columns=names))

        def lightgbm(sorts: bool) -> Any:
            from lightgbm import DaskLGBMRanker, LGBMRanker

            how = {"n_estimators": 50, "num_leaves": 15, "verbose": -1}
            if not sorts:  # group sizes of each part as it stands: runs of one query
                sizes = [np.diff(np.flatnonzero(np.r_[True, np.diff(qid[k * n : k * n + n]) != 0, True]))
                         for k in range(args.parts)]  # fmt: skip
                group = da.from_array(np.concatenate(sizes), chunks=(tuple(map(len, sizes)),))
                model = DaskLGBMRanker(client=client, **how).fit(lazy[0], lazy[1].astype(int), group=group)
                return model.booster_.predict(test[0])
            by_query = np.argsort(qid, kind="stable")
            model = LGBMRanker(n_jobs=1, **how)
            model.fit(X[by_query], y[by_query].astype(int), group=np.unique(qid, return_counts=True)[1])
            return model.predict(test[0])

        judged("XGBoost DaskXGBRanker, groups whole", lambda: xgboost(False))
        judged("XGBoost DaskXGBRanker, groups split", lambda: xgboost(True))
        judged("LightGBM DaskLGBMRanker, runs of each part as groups", lambda: lightgbm(False))
        judged("LightGBM LGBMRanker, one machine, sorted", lambda: lightgbm(True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "memory", "rivals"])
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--parts", type=int, default=32)
    parser.add_argument("--part-rows", type=int, default=1_000_000)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    args.rows = args.rows or (5_000_000 if args.what == "speed" else 200_000)
    folder = Path(tempfile.mkdtemp(dir=args.folder, prefix="corank-bench-"))
    try:
        {"speed": speed, "memory": memory, "rivals": rivals}[args.what](args, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
