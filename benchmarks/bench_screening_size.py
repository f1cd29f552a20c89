"""
Screening of many records: seconds to the first question, milliseconds to the next one, and peak memory.

Stories of Reuters tiled to n records, with three random references each. Every size runs in a process of its own, whose
peak resident memory is reported, also before the screening begins. The first question includes the views; the next
one is `Screening.answer` and `Screening.next` together, from two known records on, without and with `prefetch` (which
runs while a person reads, and is timed apart). Times are by the clock; `cpu` marks processor time, for busy machines.
One thread. Needs CORANK_DATA (reuters21578).
Run: python benchmarks/bench_screening_size.py [--sizes 10000 50000 100000]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from bench_screening import tiled
from corank.judging.screening import Screening


def peak_mb() -> int:
    """Peak resident memory of this process in MB (Linux reports KB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def one_size(n: int, n_answers: int) -> None:
    """Print the figures of one size as a JSON line."""
    records, y = tiled(n)
    before = peak_mb()
    known = [records.ids[int(np.flatnonzero(y == flag)[0])] for flag in (True, False)]
    began, cpu = time.perf_counter(), time.process_time()
    screening = Screening(records, known=known[:1], rejected=known[1:])
    record = screening.next()
    first, first_cpu = time.perf_counter() - began, time.process_time() - cpu
    plain, plain_cpu, fetched, fetching = [], [], [], []
    for at in range(2 * n_answers):
        assert record is not None
        if at % 2:
            began = time.perf_counter()
            screening.prefetch(record)
            fetching.append(time.perf_counter() - began)
        began, cpu = time.perf_counter(), time.process_time()
        screening.answer(record, bool(y[record]))
        record = screening.next()
        (fetched if at % 2 else plain).append(time.perf_counter() - began)
        if not at % 2:
            plain_cpu.append(time.process_time() - cpu)
    figures = {
        "records": n, "first_s": round(first, 1), "first_cpu_s": round(first_cpu, 1),
        "peak_mb": peak_mb(), "peak_mb_before": before,
        **{name: round(1e3 * statistics.median(times), 1)
           for name, times in (("next_ms", plain), ("next_cpu_ms", plain_cpu), ("next_prefetched_ms", fetched),
                               ("prefetch_ms", fetching))},
        "next_ms_95": round(1e3 * float(np.quantile(plain, 0.95)), 1), "answers": 2 * n_answers,
    }  # fmt: skip
    print(json.dumps(figures), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000, 100_000], help="numbers of records")
    parser.add_argument("--answers", type=int, default=100, help="answers without and with prefetch each")
    parser.add_argument("--here", action="store_true", help="run the only size in this process")
    given = parser.parse_args()
    for n in given.sizes:
        if given.here:
            with threadpool_limits(1):
                one_size(n, given.answers)
        else:
            call = [sys.executable, __file__, "--here", "--sizes", str(n), "--answers", str(given.answers)]
            subprocess.run(call, check=True)


if __name__ == "__main__":
    main()
