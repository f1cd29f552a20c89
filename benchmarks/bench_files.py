"""
Files: LETOR text against XGBoost's loader, memory against the size of the result, Parquet and CSV against pandas, runs
against pytrec_eval, and `corank rank` against parsing alone.

Every line is one figure; times are medians of repeats that alternate between corank and the alternative.
Run: python benchmarks/bench_files.py [--quick] [--rank] [--parquet] [--csv]; --rank measures `corank rank` alone,
--parquet and --csv reading of these.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS_IN_BLOCK = 10_000


def write_blocks(path: Path, bodies: list[str], megabytes: float) -> None:
    """Write the same bodies again and again, each time under new query ids, until the file is large enough."""
    with path.open("w") as handle:
        row = 0
        while handle.tell() < megabytes * 1e6:
            handle.writelines(f"{(row + k) % 3} qid:{(row + k) // 100} {body}\n" for k, body in enumerate(bodies))
            row += len(bodies)


def dense_text(path: Path, megabytes: float) -> None:
    rng = np.random.default_rng(0)
    values = rng.random((ROWS_IN_BLOCK, 46)) * (rng.random((ROWS_IN_BLOCK, 46)) < 0.8)
    form = " ".join(f"{k}:%.6f" for k in range(1, 47)) + " #docid = GX%03d-%02d-%07d inc = 1 prob = 0.5"
    write_blocks(path, [form % (*row, k % 273, k % 100, k) for k, row in enumerate(values.tolist())], megabytes)


def sparse_text(path: Path, rows: int) -> None:
    rng = np.random.default_rng(1)
    with path.open("w") as handle:
        for row in range(rows):
            ids = np.unique((47_000 * rng.random(80) ** 3).astype(int) + 1)[:75]
            pairs = " ".join(f"{k}:{v:.6g}" for k, v in zip(ids.tolist(), rng.random(len(ids)).tolist(), strict=True))
            handle.write(f"{row % 3} qid:{row // 50} {pairs}\n")


def alternate(repeats: int, *works: Callable[[], object]) -> list[float]:
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, spent in zip(works, times, strict=True):
            begin = time.perf_counter()
            work()
            spent.append(time.perf_counter() - begin)
    return [statistics.median(spent) for spent in times]


def tell(figure: str, **numbers: object) -> None:
    rounded = {name: float(f"{v:.4g}") if isinstance(v, float) else v for name, v in numbers.items()}
    print(json.dumps({"figure": figure, **rounded}), flush=True)


def bench_text(name: str, path: Path, repeats: int) -> None:
    import xgboost

    from corank.data.io.letor_reader import read_letor

    xgboost.set_config(verbosity=0)
    read_letor(path)
    ours, theirs = alternate(
        repeats, lambda: read_letor(path, n_jobs=2), lambda: xgboost.DMatrix(f"{path}?format=libsvm", nthread=2)
    )
    megabytes = path.stat().st_size / 1e6
    tell(
        name, ratio=theirs / ours, against="xgboost.DMatrix", unit="times faster", megabytes=megabytes,
        mb_per_s=megabytes / ours, mb_per_s_against=megabytes / theirs, threads=2,
    )  # fmt: skip
    answer = subprocess.run([sys.executable, __file__, "--memory", path], capture_output=True, check=True, text=True)
    tell(f"{name}_memory", **json.loads(answer.stdout))


def own_memory() -> int:
    """Memory of this process without file cache (RssAnon), in bytes; Linux only."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not report RssAnon")


def watched(work: Callable[[], Any]) -> tuple[Any, int]:
    """Call `work`; return its result and its peak memory in addition to the memory before."""
    before, peak, done = own_memory(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            peak[0] = max(peak[0], own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    found = work()
    done.set()
    watcher.join()
    return found, max(peak[0], own_memory()) - before


def measure_memory(path: Path) -> None:
    """Read in a fresh process while a thread watches its own memory."""
    from scipy import sparse

    from corank.data.io.letor_reader import read_letor

    small = path.with_suffix(".head")
    with path.open("rb") as handle:
        small.write_bytes(b"".join(handle.readline() for _ in range(100)))
    for layout in ("dense", "csr"):  # loads the compiled kernels
        read_letor(small, layout=layout)
    file, extra = watched(lambda: read_letor(path, n_jobs=2))
    X = file.X
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    result = sum(array.nbytes for array in [*arrays, file.y, file.qid])
    print(json.dumps({"ratio": extra / result, "against": "bytes of X, y and qid", "unit": "peak own memory"}))


def linear_model(text: Path, path: Path) -> None:
    import corank
    from corank.data.io.letor_reader import read_letor

    rows = read_letor(text)
    few = slice(0, 5000)
    corank.save(corank.SPD(n_steps=1000, random_state=0).fit(rows.X[few], rows.y[few], qid=rows.qid[few]), path)


def rank_once(model: Path, text: Path, output: Path) -> None:
    """Do what `corank rank MODEL TEXT -o OUTPUT` does after start-up."""
    import corank
    from corank.cli.learn.scoring import ScoringRequest, write_scores
    from corank.cli.options import ColumnOptions
    from corank.cli.rows import FittedModel

    fitted = FittedModel(model, corank.load(model))
    write_scores(ScoringRequest.of(fitted, [text], ColumnOptions()), output, overwrite=True)


def bench_rank(name: str, folder: Path, text: Path, repeats: int) -> None:
    """Processor time and wall time of scoring a file against those of parsing it, in one process."""
    from corank.data.io.letor_reader import read_letor

    model, output = folder / "model", folder / "scores.txt"
    rank_once(model, text, output)
    spent: dict[str, list[tuple[float, float]]] = {"rank": [], "parse": []}
    for _ in range(repeats):
        for what, work in (("parse", lambda: read_letor(text)), ("rank", lambda: rank_once(model, text, output))):
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            spent[what].append((time.process_time() - cpu, time.perf_counter() - wall))
    (cpu, wall), (parse_cpu, parse_wall) = (np.median(spent[what], axis=0).tolist() for what in ("rank", "parse"))
    tell(
        name, ratio=cpu / parse_cpu, against="read_letor", unit="processor time", wall_ratio=wall / parse_wall,
        seconds=wall, seconds_against=parse_wall, megabytes=text.stat().st_size / 1e6,
    )  # fmt: skip


def bench_rank_memory(folder: Path, text: Path) -> None:
    """Memory that scoring takes, for a file and for the first tenth of it."""
    small = folder / "tenth.txt"
    with text.open("rb") as handle:
        small.write_bytes(b"".join(handle.readlines(text.stat().st_size // 10)))
    used = []
    for one in (small, text):
        words = [sys.executable, __file__, "--rank-memory", one, "--model", folder / "model"]
        used.append(int(subprocess.run(words, capture_output=True, check=True, text=True).stdout))
    tell("rank_memory", ratio=used[1] / used[0], against="a tenth of the file", megabytes=used[1] / 1e6)


def measure_rank_memory(model: Path, text: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        few = Path(name, "few.txt")
        with text.open("rb") as handle:
            few.write_bytes(b"".join(handle.readline() for _ in range(100)))
        rank_once(model, few, Path(name, "scores"))  # loads the compiled kernels
        print(watched(lambda: rank_once(model, text, Path(name, "scores")))[1])


def bench_store(text: Path, folder: Path, repeats: int) -> None:
    from corank.data.io.letor_reader import read_letor
    from corank.data.io.stores import open_store, store_letor, write_store

    store_letor(folder / "large", [text])
    small = read_letor(text)
    write_store(folder / "small", small.X[:1000], small.y[:1000], small.qid[:1000])
    large, little = alternate(10 * repeats, lambda: open_store(folder / "large"), lambda: open_store(folder / "small"))
    tell("store_open_large_by_small", ratio=large / little, against="a store of 1000 rows", seconds=large)
    (parsed,) = alternate(repeats, lambda: read_letor(text).data)
    tell("store_open_by_parsing", ratio=parsed / large, against="read_letor(...).data", unit="times faster")


def bench_parquet(folder: Path, rows: int, repeats: int) -> None:
    """Processor time of reading Parquet, with ids of rows that all differ and with ids that recur in other queries."""
    import pandas as pd

    from corank.data.io.read import read

    rng, features = np.random.default_rng(3), [f"f{k}" for k in range(46)]
    for kind, docids in (("differ", np.arange(rows)), ("recur", rng.permutation(rows) % (rows // 20))):
        path = folder / f"{kind}.parquet"
        table = pd.DataFrame(rng.random((rows, 46), dtype=np.float32), columns=features)
        ids = {"label": rng.integers(0, 3, rows), "qid": np.arange(rows) // 50, "docid": [f"d{k}" for k in docids]}
        table.assign(**ids).drop_duplicates(["qid", "docid"]).to_parquet(path)
        read(path)

        def arrays(path: Path = path, ids: dict[str, Any] = ids) -> object:
            found = pd.read_parquet(path)
            return found[features].to_numpy(), *(found[name].to_numpy(dtype=object) for name in ids)

        spent: dict[str, list[float]] = {"corank": [], "pandas": [], "arrays": []}
        works = {"corank": lambda p=path: read(p), "pandas": lambda p=path: pd.read_parquet(p), "arrays": arrays}
        for _ in range(3 * repeats):
            for name, work in works.items():
                begin = time.process_time()
                work()
                spent[name].append(time.process_time() - begin)
        ours, frame, all_arrays = (statistics.median(spent[name]) for name in works)
        tell(
            f"parquet, ids {kind}", ratio=ours / frame, against="pandas.read_parquet", unit="processor time",
            seconds=ours, seconds_against=frame, seconds_to_arrays=all_arrays, rows=rows,
        )  # fmt: skip


def bench_csv(folder: Path, rows: int, repeats: int) -> None:
    """Processor time and wall time of reading CSV with 46 features, against pandas."""
    import pandas as pd

    from corank.data.io.read import read

    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.random((rows, 46)).round(6), columns=[f"f{k}" for k in range(46)])
    table.insert(0, "qid", np.arange(rows) // 50)
    table.insert(0, "label", rng.integers(0, 3, rows))
    path = folder / "rows.csv"
    table.to_csv(path, index=False)
    found = read(path)
    assert np.array_equal(found.X, table.iloc[:, 2:].to_numpy())
    assert found.names == table.columns[2:].tolist()
    spent: dict[str, list[tuple[float, float]]] = {"corank": [], "pandas": []}
    for _ in range(repeats):
        for name, work in (("corank", lambda: read(path)), ("pandas", lambda: pd.read_csv(path))):
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            spent[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    (cpu, wall), (other_cpu, other_wall) = (np.median(spent[name], axis=0).tolist() for name in ("corank", "pandas"))
    tell(
        "csv", ratio=cpu / other_cpu, against="pandas.read_csv", unit="processor time", wall_ratio=wall / other_wall,
        seconds=cpu, seconds_against=other_cpu, rows=rows,
    )  # fmt: skip


def bench_run(folder: Path, rows: int, repeats: int) -> None:
    import pytrec_eval

    from corank.data.io.trec import read_run, write_run

    rng = np.random.default_rng(2)
    path = folder / "run.txt"
    write_run(path, np.arange(rows) // 1000, [f"GX{k % 273:03d}-{k:08d}" for k in range(rows)], rng.random(rows))
    read_run(path)

    def parse() -> object:
        with path.open() as handle:
            return pytrec_eval.parse_run(handle)

    ours, theirs = alternate(repeats, lambda: read_run(path), parse)
    tell("read_run", ratio=theirs / ours, against="pytrec_eval.parse_run", unit="times faster", lines_per_s=rows / ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small files, few repeats")
    parser.add_argument("--rank", action="store_true", help="corank rank alone")
    parser.add_argument("--parquet", action="store_true", help="reading of Parquet alone")
    parser.add_argument("--csv", action="store_true", help="reading of CSV alone")
    parser.add_argument("--rank-memory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--memory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        measure_memory(arguments.memory)
        return
    if arguments.rank_memory:
        measure_rank_memory(arguments.model, arguments.rank_memory)
        return
    repeats = 3 if arguments.quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.parquet:
            bench_parquet(folder, 20_000 if arguments.quick else 100_000, repeats)
            return
        if arguments.csv:
            bench_csv(folder, 20_000 if arguments.quick else 200_000, repeats)
            return
        dense_text(folder / "dense.txt", 60 if arguments.quick else 300)
        linear_model(folder / "dense.txt", folder / "model")
        bench_rank("rank", folder, folder / "dense.txt", repeats)
        bench_rank_memory(folder, folder / "dense.txt")
        with (folder / "dense.txt").open("rb") as plain, gzip.open(folder / "dense.txt.gz", "wb", 1) as packed:
            shutil.copyfileobj(plain, packed)
        bench_rank("rank_gzip", folder, folder / "dense.txt.gz", repeats)
        if arguments.rank:
            return
        bench_text("letor_dense", folder / "dense.txt", repeats)
        bench_store(folder / "dense.txt", folder, repeats)
        sparse_text(folder / "sparse.txt", 10_000 if arguments.quick else 100_000)
        bench_text("letor_sparse", folder / "sparse.txt", repeats)
        bench_parquet(folder, 20_000 if arguments.quick else 100_000, repeats)
        bench_csv(folder, 20_000 if arguments.quick else 200_000, repeats)
        bench_run(folder, 100_000 if arguments.quick else 1_000_000, repeats)


if __name__ == "__main__":
    main()
