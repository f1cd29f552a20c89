"""
Files: LETOR text against XGBoost's loader, memory against the size of the result, runs against pytrec_eval.

Every line is one figure; times are medians of repeats that alternate between corank and the alternative.
Run: python benchmarks/bench_files.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

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

    from corank.data.letor import read_letor

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


def measure_memory(path: Path) -> None:
    """Read in a fresh process while a thread watches its own memory."""
    from scipy import sparse

    from corank.data.letor import read_letor

    small = path.with_suffix(".head")
    with path.open("rb") as handle:
        small.write_bytes(b"".join(handle.readline() for _ in range(100)))
    for layout in ("dense", "csr"):  # loads the compiled kernels
        read_letor(small, layout=layout)
    before, peak, done = own_memory(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            peak[0] = max(peak[0], own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    file = read_letor(path, n_jobs=2)
    done.set()
    watcher.join()
    X = file.X
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    result = sum(array.nbytes for array in [*arrays, file.y, file.qid])
    extra = max(peak[0], own_memory()) - before
    print(json.dumps({"ratio": extra / result, "against": "bytes of X, y and qid", "unit": "peak own memory"}))


def bench_store(text: Path, folder: Path, repeats: int) -> None:
    from corank.data.letor import read_letor
    from corank.data.store import open_store, store_letor, write_store

    store_letor(folder / "large", [text])
    small = read_letor(text)
    write_store(folder / "small", small.X[:1000], small.y[:1000], small.qid[:1000])
    large, little = alternate(10 * repeats, lambda: open_store(folder / "large"), lambda: open_store(folder / "small"))
    tell("store_open_large_by_small", ratio=large / little, against="a store of 1000 rows", seconds=large)
    (parsed,) = alternate(repeats, lambda: read_letor(text).data)
    tell("store_open_by_parsing", ratio=parsed / large, against="read_letor(...).data", unit="times faster")


def bench_run(folder: Path, rows: int, repeats: int) -> None:
    import pytrec_eval

    from corank.data.trec import read_run, write_run

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
    parser.add_argument("--memory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        measure_memory(arguments.memory)
        return
    repeats = 3 if arguments.quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dense_text(folder / "dense.txt", 60 if arguments.quick else 300)
        bench_text("letor_dense", folder / "dense.txt", repeats)
        bench_store(folder / "dense.txt", folder, repeats)
        sparse_text(folder / "sparse.txt", 10_000 if arguments.quick else 100_000)
        bench_text("letor_sparse", folder / "sparse.txt", repeats)
        bench_run(folder, 100_000 if arguments.quick else 1_000_000, repeats)


if __name__ == "__main__":
    main()
