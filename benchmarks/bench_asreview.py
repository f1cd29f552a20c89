"""
Screening orders on the same starts: corank, ASReview's default, similarity to the first record, and random reading.

Every record file needs a judgement per record. A start is one relevant and one irrelevant record, as in
`corank_lab.screening.simulate`; all measures leave these two out. Results are appended to a file of JSON lines, one
per replay, and replays that are in it are not repeated, so that an interrupted run continues.
Run: python benchmarks/bench_asreview.py REVIEW.csv.gz ... --asreview PATH/TO/bin/asreview --results results.jsonl
Without --asreview, ASReview's figures are read from --results only. --no-references replays corank without references.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sqlite3
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon
from threadpoolctl import threadpool_limits

from corank_lab.records.records import Records, read_records
from corank_lab.screening import Screening, ScreeningReplay, make_views
from corank_lab.screening.simulate import start_pair
from corank_lab.screening.views import Views

METRICS = {"atd": "ATD", "loss": "loss", "wss95": "WSS@95", "recall10": "recall@10 %"}
ASREVIEW, CORANK, SIMILAR, RANDOM = "asreview", "corank", "similarity to the start", "random"
WAYS = (ASREVIEW, CORANK, SIMILAR, RANDOM)


def measures(replay: ScreeningReplay) -> dict[str, float]:
    """Measures of a complete reading."""
    return {name: round(float(getattr(replay, name)), 5) for name in METRICS}


def replay_of(y: NDArray[np.bool_], order: Sequence[int], seed: int, seconds: float) -> ScreeningReplay:
    """Reading in a given order; records that were not read follow and must be irrelevant."""
    rest = np.setdiff1d(np.arange(len(y)), [*start_pair(y, seed), *order])
    if y[rest].any():
        raise SystemExit("a replay ended before all relevant records were found; remove it from the results.")
    whole = np.concatenate([np.asarray(order, dtype=np.intp), rest])
    return ScreeningReplay(seed, whole, y[whole], seconds, len(whole), 1.0)


def run_asreview(command: str, records: Records, seed: int) -> ScreeningReplay:
    """Run `asreview simulate` with its default model from the two records of a start, until all are found."""
    import csv

    y = records.labels == 1
    with tempfile.TemporaryDirectory() as scratch:
        source, project = Path(scratch, "records.csv"), Path(scratch, "replay.asreview")
        with source.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["title", "abstract", "included"])
            rows.writerows(zip(records.titles, records.abstracts, y.astype(int).tolist(), strict=True))
        known = [str(number) for number in start_pair(y, seed)]
        call = [command, "simulate", str(source), "--prior-idx", *known, "--seed", str(seed), "-o", str(project)]
        began = time.perf_counter()
        subprocess.run(call, check=True, capture_output=True)
        seconds = time.perf_counter() - began
        return replay_of(y, _read_order(project, Path(scratch)), seed, seconds)


def run_corank(records: Records, views: Views, seed: int) -> ScreeningReplay:
    """Screen from the two records of a start until all relevant records are found, as ASReview does."""
    y, began = records.labels == 1, time.perf_counter()
    known, rejected = (records.ids[number] for number in start_pair(y, seed))
    screening, order = Screening(records, known=[known], rejected=[rejected], views=views), []
    missing = int(y.sum()) - 1
    while missing:
        record = screening.next()
        assert record is not None
        screening.answer(record, bool(y[record]))
        order.append(record)
        missing -= int(y[record])
    return replay_of(y, order, seed, time.perf_counter() - began)


def _read_order(project: Path, scratch: Path) -> list[int]:
    """Numbers of the records in the order of reading, without the start, from the database in a project file."""
    with zipfile.ZipFile(project) as packed:
        for name in packed.namelist():
            if not name.endswith(".db"):
                continue
            with sqlite3.connect(packed.extract(name, scratch)) as base:
                tables = {row[0] for row in base.execute("select name from sqlite_master where type = 'table'")}
                if "results" in tables:
                    query = "select record_id from results where classifier is not null order by rowid"
                    return [int(row[0]) for row in base.execute(query)]
    raise SystemExit(f"{project.name} holds no results; check the version of ASReview (tested: 3.0.8).")


def baselines(records: Records, views: Views, seed: int) -> dict[str, ScreeningReplay]:
    """Orders without learning: by similarity of the text to the relevant record of the start, and at random."""
    y = records.labels == 1
    start = start_pair(y, seed)
    likeness = views.text_times(views.text_of([start[0]]))
    others = np.setdiff1d(np.arange(len(y)), start)
    similar = others[np.argsort(-likeness[others], kind="stable")]
    shuffled = np.random.default_rng([seed, 1]).permutation(others)
    return {way: replay_of(y, order.tolist(), seed, 0.0) for way, order in ((SIMILAR, similar), (RANDOM, shuffled))}


class Results:
    """Measures by way, file and start, kept in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path, self.found = path, dict[tuple[str, str, int], dict[str, float]]()
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            self._take(json.loads(line))

    def _take(self, entry: dict[str, Any]) -> None:
        self.found[entry.get("way", ASREVIEW), entry["records"], entry["start"]] = entry

    def add(self, way: str, name: str, replay: ScreeningReplay, **more: Any) -> None:
        entry = {"records": name, "start": replay.start, "way": way, **measures(replay), **more}
        entry["seconds"] = round(replay.seconds, 2)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        self._take(entry)

    def mean(self, way: str, name: str, measure: str, starts: Iterable[int]) -> float:
        """Mean over the starts; NaN if one is missing."""
        entries = [self.found.get((way, name, start), {}) for start in starts]
        return float(np.mean([entry.get(measure, np.nan) for entry in entries]))


def fill(results: Results, path: Path, starts: Sequence[int], command: str | None, with_references: bool) -> int:
    """Run what the results lack; return the number of references that were used."""
    records = read_records(path)
    n_references = sum(map(len, records.references)) if with_references else 0
    used = records if with_references else dataclasses.replace(records, references=())
    way, name = corank_way(with_references), path.name
    views = make_views(used)
    for seed in starts:
        if (way, name, seed) not in results.found:
            results.add(way, name, run_corank(used, views, seed), references=n_references)
        if (SIMILAR, name, seed) not in results.found:
            for other, replay in baselines(records, views, seed).items():
                results.add(other, name, replay)
        if command and (ASREVIEW, name, seed) not in results.found:
            results.add(ASREVIEW, name, run_asreview(command, records, seed))
    return n_references


def add_losses(results: Results, path: Path) -> None:
    """Compute ASReview's loss from its ATD where a results file lacks it: (mean rank − best) / irrelevant records."""
    y = read_records(path).labels == 1
    n, k = len(y) - 2, int(y.sum()) - 1
    for (way, name, _), entry in results.found.items():
        if way == ASREVIEW and name == path.name and "loss" not in entry:
            entry["loss"] = (entry["atd"] * n - (k + 1) / 2) / (n - k)


def corank_way(with_references: bool) -> str:
    return CORANK if with_references else f"{CORANK}, text only"


def table(results: Results, names: dict[str, int], starts: Sequence[int], with_references: bool) -> str:
    """Paired figures per review, their means, the ratio of the means and Wilcoxon's p over reviews."""
    mine, lines = corank_way(with_references), []
    head = [f"{label}: {who}" for label in METRICS.values() for who in ("ASReview", "corank")]
    lines.append("| review | references used | " + " | ".join(head) + " | ATD: similarity | ATD: random |")
    lines.append("|---|---:|" + "---:|" * (len(head) + 2))
    pairs = {
        name: [results.mean(way, name, one, starts) for one in METRICS for way in (ASREVIEW, mine)]
        + [results.mean(way, name, "atd", starts) for way in (SIMILAR, RANDOM)]
        for name in names
    }
    for name, row in pairs.items():
        lines.append(f"| {name.split('.')[0]} | {names[name]} | " + " | ".join(f"{value:.3f}" for value in row) + " |")
    both = np.array([row for row in pairs.values() if not np.isnan(row).any()])
    if len(both):
        lines.append(f"| mean of {len(both)} | | " + " | ".join(f"{value:.4f}" for value in both.mean(axis=0)) + " |")
        theirs, ours = both[:, 0], both[:, 1]
        p = wilcoxon(theirs, ours).pvalue if np.any(theirs != ours) else 1.0
        lines += [
            "",
            f"ATD: ratio of the means {ours.mean() / theirs.mean():.3f}; lower on {(ours < theirs).sum()} of "
            f"{len(both)} reviews; largest excess {(ours - theirs).max():+.4f}; Wilcoxon over reviews p = {p:.2g}",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("reviews", nargs="+", type=Path, help="fully judged record files")
    parser.add_argument("--asreview", help="command of ASReview; without it only its stored results are used")
    parser.add_argument("--results", type=Path, default=Path("asreview.jsonl"), help="file of JSON lines, appended to")
    parser.add_argument("--starts", type=int, default=10, help="number of starts per review")
    parser.add_argument("--no-references", action="store_true", help="replay corank on text alone")
    given = parser.parse_args()
    results, starts, names = Results(given.results), range(given.starts), {}
    with threadpool_limits(1):
        for path in given.reviews:
            names[path.name] = fill(results, path, starts, given.asreview, not given.no_references)
            add_losses(results, path)
    print(table(results, names, starts, not given.no_references))


if __name__ == "__main__":
    main()
