"""
Screening of many records, from the file to the thirtieth question, and peak memory.

A CSV file is made on the spot: stories of Reuters tiled to n records, with titles, authors, years and journals; four of
five records have a DOI, one of twenty is a duplicate with a changed title, and each cites three others by DOI. Then
everything happens that `corank screen` does: read the file, find duplicates, store the project, match references, make
the views, ask the first question, and show the state before each of the next questions. Answers are on the disk (fsync)
before the next question. Every second question follows a `prefetch`, which runs while a person reads and is timed
apart. The last one is the forecast with 2,000 finds. Every size runs in a process of its own. One JSON line per
figure: seconds or milliseconds by the clock, and by the processor, for busy machines; medians of questions. One thread.
Needs CORANK_DATA (reuters21578).
Run: python benchmarks/bench_screening_size.py [--sizes 10000 50000 100000]
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

GOALS = {"first question, whole path": 20.0, "next question": 50.0, "peak memory": 1000.0}
"""Largest values that are wanted at 100,000 records, in the unit of the figure, by the processor."""


class Clock:
    """Times by the clock and by the processor, and the peak memory so far, by name."""

    def __init__(self) -> None:
        self.times: dict[str, list[tuple[float, float]]] = {}
        self.peak_mb: dict[str, int] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Time what is inside."""
        began, cpu = time.perf_counter(), time.process_time()
        yield
        spent = (time.perf_counter() - began, time.process_time() - cpu)
        self.times.setdefault(name, []).append(spent)
        self.peak_mb[name] = peak_mb()

    def median(self, name: str) -> tuple[float, float]:
        """Medians by the clock and by the processor."""
        clock, cpu = zip(*self.times[name], strict=True)
        return statistics.median(clock), statistics.median(cpu)


def peak_mb() -> int:
    """Peak resident memory of this process in MB (Linux reports KB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def write_works(path: Path, n: int) -> None:
    """Write n records as CSV, a twentieth of them duplicates; labels are in a second file."""
    from bench_screening import tiled  # which imports far more than the measured process needs

    records, y = tiled(n)
    rng = np.random.default_rng(1)
    names = ["".join(rng.choice(list("bdfklmnprst"), 3)) + "a" for _ in range(3000)]
    rows = []
    for at, text in enumerate(records.titles):
        words = text.split()
        picked = rng.choice(len(words), min(12, len(words)), replace=False)
        authors = "; ".join(f"{names[k].title()}, {chr(65 + k % 26)}." for k in rng.integers(0, 3000, 3))
        doi = f"10.1000/w{at}" if rng.random() < 0.8 else ""
        cited = "; ".join(f"10.1000/w{k}" for k in records.references[at])
        title = " ".join(words[k] for k in picked).capitalize()
        rows.append([title, text, authors, 1990 + at % 30, f"Journal {at % 400}", doi, cited])
    for at in rng.choice(np.arange(1, n), n // 20, replace=False).tolist():
        copy = [*rows[at - 1]]
        copy[0], copy[5] = f"{copy[0].upper()}.", ""
        rows[at], y[at] = copy, y[at - 1]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "abstract", "authors", "year", "journal", "doi", "references"])
        writer.writerows(rows)
    np.save(path.with_suffix(".npy"), y)


def one_size(path: Path, n_questions: int) -> None:
    """Print the figures of one file."""
    from corank_lab.cli.screening.session import ScreeningFiles
    from corank_lab.records.records import summarise
    from corank_lab.screening import Screening, make_views

    y, clock, opened = np.load(path.with_suffix(".npy")), Clock(), ExitStack()
    files = ScreeningFiles((path,), None, True)
    with clock.measure("first question, whole path"):
        with clock.measure("read the file"):
            n = len(files.records)
        with clock.measure("find duplicates"):
            files.groups  # noqa: B018
        with clock.measure("project on the disk"):
            journal, _ = opened.enter_context(files.journal())
        unique = files.unique(journal)
        labels = y[unique.originals]
        known = unique.unique.ids[int(np.flatnonzero(labels)[0])]
        with clock.measure("match references"):
            linked = unique.linked()
        with clock.measure("views"):
            views = make_views(linked)
        screening = Screening(unique, known=[known], journal=journal, views=views)
        with clock.measure("summary"):
            summary = summarise(unique.everything, unique.groups)
        with clock.measure("choose the first record"):
            record = screening.next()
    for at in range(2 * n_questions):
        assert record is not None
        fetched = bool(at % 2)
        if fetched:
            with clock.measure("prefetch, while a person reads"):
                screening.prefetch(record)
        with clock.measure("next question, prefetched" if fetched else "next question"):
            with clock.measure("answer on the disk"):
                screening.answer(record, bool(labels[record]))
            record = screening.next()
            with clock.measure("progress with forecast"):
                screening.progress()
    opened.close()
    finds_clock(n, clock)
    once = (
        "first question, whole path", "read the file", "find duplicates", "project on the disk", "match references",
        "views", "summary", "choose the first record",
    )  # fmt: skip
    for name in clock.times:
        unit, times = ("s", 1.0) if name in once else ("ms", 1e3)
        by_clock, by_cpu = (round(times * value, 2) for value in clock.median(name))
        more = {"peak_mb": clock.peak_mb[name]} | ({"goal": GOALS[name]} if name in GOALS else {})
        print(json.dumps({"records": n, "figure": name, unit: by_clock, f"cpu_{unit}": by_cpu, **more}), flush=True)
    found = {"duplicates": summary.total.n_duplicates, "references_matched": summary.n_matched}
    print(json.dumps({"records": n, "figure": "found", **found}))
    goal = {"goal": GOALS["peak memory"]}
    print(json.dumps({"records": n, "figure": "peak memory", "mb": peak_mb(), **goal}), flush=True)


def finds_clock(n: int, clock: Clock) -> None:
    """Time the forecast with 2,000 finds, after a find and after other answers."""
    from corank_lab.screening.stopping import stopping_rule
    from corank_lab.screening.stopping.forecast import Forecaster

    read = n // 5
    places = np.random.default_rng(0).random(min(2000, n // 50)) ** 3
    finds = np.unique((places * read).astype(int) + 1).tolist()
    forecaster = Forecaster(stopping_rule("agree", n))
    forecaster.forecast(finds[:-1], read)
    with clock.measure("forecast after a find, 2,000 finds"):
        forecaster.forecast(finds, read)
    for more in range(1, 20):
        with clock.measure("forecast after another answer, 2,000 finds"):
            forecaster.forecast(finds, read + more)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000, 100_000], help="numbers of records")
    parser.add_argument("--questions", type=int, default=15, help="questions without and with prefetch each")
    parser.add_argument("--file", type=Path, help="measure this file in this process (used by the command itself)")
    given = parser.parse_args()
    if given.file is not None:
        with threadpool_limits(1):
            one_size(given.file, given.questions)
        return
    for n in given.sizes:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "works.csv")
            write_works(path, n)
            call = [sys.executable, __file__, "--file", str(path), "--questions", str(given.questions)]
            subprocess.run(call, check=True)


if __name__ == "__main__":
    main()
