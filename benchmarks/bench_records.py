"""
Reading records: a table of what is found in each export of a database or tool, and records per second.

The table needs CORANK_DATA (record_exports); the last column says whether every record keeps its id when the records
are in the opposite order. The speed is processor time for a RIS file of 50,000 made-up records.
Run: python benchmarks/bench_records.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from corank_lab.records.parsed import load_file
from corank_lab.records.reading import interpret, parse_file, stable_ids
from corank_lab.records.records import Records, read_records
from experiments.datasets.catalog import data_root

COLUMNS = ("records", "title", "abstract", "year", "authors", "journal", "doi", "keywords", "url")


def counts(records: Records) -> list[int]:
    details = [sum(bool(getattr(one, name)) for one in records.details) for name in COLUMNS[3:]]
    return [len(records), sum(map(bool, records.titles)), sum(map(bool, records.abstracts)), *details]


def has_stable_ids(path: Path, records: Records) -> bool:
    entries, _ = interpret(parse_file(load_file(path)), path.name, path.name)
    titles = [one.title for one in entries[::-1]]
    again = zip(stable_ids(entries[::-1]), titles, strict=True)
    return sorted(again) == sorted(zip(records.ids, records.titles, strict=True))


def table() -> None:
    root = data_root() / "record_exports"
    files = sorted((*root.glob("tools/*.xz"), *root.glob("*.xz")))
    print(f"{'file':<34}{'format':<18}" + "".join(f"{name:>9}" for name in COLUMNS) + "  stable ids")
    for path in files:
        records = read_records(path)
        shown = "".join(f"{count:>9}" for count in counts(records))
        print(f"{path.stem:<34}{records.sources[0].format:<18}{shown}  {has_stable_ids(path, records)}")
    print(f"{len(files)} files")


def ris(n: int) -> str:
    """Made-up records with abstracts of 150 words, ten keywords and four authors."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randrange(2, 11))) for _ in range(5000)]

    def some(k: int) -> str:
        return " ".join(rng.choices(words, k=k))

    lines = []
    for at in range(n):
        lines += ["TY  - JOUR", f"TI  - {some(12)}", f"AB  - {some(150)}", f"PY  - {rng.randrange(1980, 2025)}"]
        lines += [f"AU  - {some(1).title()}, {some(1)[:1].upper()}." for _ in range(4)]
        lines += [f"KW  - {some(2)}" for _ in range(10)]
        lines += [f"JF  - {some(3)}", f"DO  - 10.1000/x.{at}", f"UR  - https://x.example/{at}", "ER  - ", ""]
    return "\n".join(lines)


def speed(n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "works.ris"
        path.write_text(ris(n), encoding="utf-8")
        begin = time.process_time()
        found = read_records(path)
        seconds = time.process_time() - begin
        size = path.stat().st_size
    figure = {"records": len(found), "seconds": round(seconds, 2), "per_second": round(n / seconds), "bytes": size}
    print(json.dumps({"name": "read RIS", **figure}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the speed, on 5,000 records")
    quick = parser.parse_args().quick
    if not quick:
        table()
    speed(5_000 if quick else 50_000)


if __name__ == "__main__":
    main()
