"""
Duplicates: precision and recall on labelled exports against two other rules, and time and memory on many records.

Needs CORANK_DATA (record_exports). Every line that is a JSON object is one figure. Figures count records that need no
judgement of their own: a group with k records that are marked as kept has k - 1 wrong ones (or none), and its other
members are found; if no member is kept, all but one are found.

labelled_test_set.csv has two marks. `label` says what was removed by hand; it left copies of the same record in the
collection (three identical records marked In_database are common), so that it measures recall but not precision.
`source` marks one record of each work as unique and all others as duplicates, and measures both. The EndNote files mark
all members of groups; their figures count members.

The other rules are a shared DOI, and `asreview data dedup` of ASReview datatools, if --datatools names a Python that
has it. It says what it keeps, not why: a removed record is wrong if no record of its work is kept. Works are those of
corank, which agree with `source` but for one work that has no unique record.

--records N makes N records by joining words of the exports to titles, with copies that have typing errors and missing
details.
Run: python benchmarks/bench_duplicates.py [--quick] [--records 50000] [--datatools /path/to/python]
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import os
import random
import resource
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from corank_lab.records.duplicates import find_duplicates
from corank_lab.records.identity import normalise_doi
from corank_lab.records.records import RecordDetails, Records

Groups = list[tuple[int, ...]]


def exports() -> Path:
    return Path(os.environ["CORANK_DATA"]) / "record_exports"


def labelled() -> tuple[Records, list[dict[str, str]]]:
    """Records of the labelled export, and its rows; NA is a missing value."""
    text = lzma.decompress((exports() / "labelled_test_set.csv.xz").read_bytes()).decode("cp1252")
    rows = [
        {name: "" if cell == "NA" else cell for name, cell in row.items()} for row in csv.DictReader(io.StringIO(text))
    ]
    details = [
        RecordDetails(int(row["year"]), (row["author"],), row["journal"], normalise_doi(row["doi"])) for row in rows
    ]
    fields = [{name: [row[name]] for name in ("pages", "volume", "number", "isbn") if row[name]} for row in rows]
    ids, titles, abstracts = ([row[name] for row in rows] for name in ("record_id", "title", "abstract"))
    return Records(ids, titles, abstracts, details=details, fields=fields), rows


def endnote(name: str) -> tuple[Records, list[bool]]:
    """Records of an EndNote library, and whether the caption marks them as duplicates."""
    entries = list(ElementTree.fromstring(lzma.decompress((exports() / name).read_bytes())).iter("record"))

    def text(entry: ElementTree.Element, path: str) -> str:
        found = entry.find(path)
        return "".join(found.itertext()).strip() if found is not None else ""

    details = [
        RecordDetails(
            int(year) if (year := text(one, "dates/year")[:4]).isdigit() else None,
            tuple("".join(author.itertext()) for author in one.findall("contributors/authors/author")),
            text(one, "titles/secondary-title"), normalise_doi(text(one, "electronic-resource-num")),
            accession=text(one, "accession-num"),
        ) for one in entries
    ]  # fmt: skip
    fields = [{tag: [value] for tag in ("pages", "volume", "isbn") if (value := text(one, tag))} for one in entries]
    ids, titles, abstracts = (
        [text(one, path) for one in entries] for path in ("rec-number", "titles/title", "abstract")
    )
    marks = ["duplicate" in text(one, "caption").lower() for one in entries]
    return Records(ids, titles, abstracts, details=details, fields=fields), marks


def counts(groups: Iterable[Sequence[int]], is_kept: Sequence[bool]) -> dict[str, Any]:
    """Precision and recall of the records that groups remove."""
    found = wrong = 0
    for group in groups:
        n_kept = sum(is_kept[at] for at in group)
        found += len(group) - max(n_kept, 1)
        wrong += max(n_kept - 1, 0)
    n_duplicates = len(is_kept) - sum(is_kept)
    return {
        "found": found, "wrong": wrong, "missed": n_duplicates - found,
        "precision": round(found / max(1, found + wrong), 5), "recall": round(found / n_duplicates, 5),
    }  # fmt: skip


def pair_counts(groups: Iterable[Sequence[int]], truth: Iterable[Sequence[int]]) -> dict[str, Any]:
    """Precision and recall of pairs of records in one group."""
    ours, right = ({pair for group in one for pair in combinations(sorted(group), 2)} for one in (groups, truth))
    return {
        "pairs": len(ours), "true_pairs": len(right), "pair_precision": round(len(ours & right) / max(1, len(ours)), 5),
        "pair_recall": round(len(ours & right) / max(1, len(right)), 5),
    }  # fmt: skip


def by_doi(records: Records) -> Groups:
    shared: dict[str, list[int]] = defaultdict(list)
    for at, one in enumerate(records.details):
        if one.doi:
            shared[one.doi].append(at)
    return [tuple(group) for group in shared.values() if len(group) > 1]


def by_datatools(python: str, records: Records, dois: Sequence[str], options: Sequence[str]) -> list[bool]:
    """Whether `asreview data dedup` keeps each record."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.csv"), Path(folder, "out.csv")
        with source.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["number", "title", "abstract", "doi"])
            table.writerows(zip(range(len(records)), records.titles, records.abstracts, dois, strict=True))
        command = [python, "-m", "asreview", "data", "dedup", str(source), "-o", str(target), *options]
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run(command, check=True, capture_output=True, env=alone)
        with target.open(encoding="utf-8", newline="") as file:
            kept = {int(float(row["number"])) for row in csv.DictReader(file)}
    return [at in kept for at in range(len(records))]


def emit(**figure: Any) -> None:
    print(json.dumps(figure), flush=True)


def accuracy(datatools: str | None) -> None:
    records, rows = labelled()
    marks = {
        name: [row[name] == value for row in rows] for name, value in (("label", "In_database"), ("source", "unique"))
    }
    begin = time.process_time()
    ours = [group.members for group in find_duplicates(records).groups]
    seconds = time.process_time() - begin
    for rule, groups in (("corank", ours), ("shared DOI", by_doi(records))):
        for name, is_kept in marks.items():
            emit(data="labelled_test_set", rule=rule, mark=name, **counts(groups, is_kept))
        within = {at for group in groups if any(marks["label"][one] for one in group) for at in group}
        removed = [at for at, kept in enumerate(marks["label"]) if not kept]
        emit(
            data="labelled_test_set", rule=rule, what="removed by hand, and in a group with a kept record",
            recall=round(sum(at in within for at in removed) / len(removed), 5),
        )  # fmt: skip
    emit(data="labelled_test_set", rule="corank", seconds=round(seconds, 2))
    if datatools:
        for options in ((), ("--similar",), ("--similar", "--title_only")):
            kept = by_datatools(datatools, records, [one.doi for one in records.details], options)
            # the tool says what it keeps, not the groups: the first kept record of a work stands for it
            work = works(ours, len(records))  # agrees with `source` but for one work without a unique record
            gone = Counter(work[at] for at, stays in enumerate(kept) if not stays)
            n_works_lost = sum(n == size for one, n in gone.items() for size in (Counter(work)[one],))
            n_gone, n_true = sum(gone.values()), len(work) - len(set(work))
            emit(
                data="labelled_test_set", rule=f"asreview data dedup {' '.join(options)}".strip(), removed=n_gone,
                works_lost=n_works_lost, precision=round((n_gone - n_works_lost) / max(1, n_gone), 5),
                recall=round((n_gone - n_works_lost) / n_true, 5),
            )  # fmt: skip
    for name in ("endnote_copper.xml.xz", "endnote_tafenoquine.xml.xz"):
        library, is_marked = endnote(name)
        for rule, groups in (
            ("corank", [group.members for group in find_duplicates(library).groups]),
            ("shared DOI", by_doi(library)),
        ):
            members = {at for group in groups for at in group}
            n_right = sum(is_marked[at] for at in members)
            emit(
                data=name.partition(".")[0], rule=rule, members=len(members), marked=sum(is_marked),
                precision=round(n_right / len(members), 5), recall=round(n_right / sum(is_marked), 5),
            )  # fmt: skip


def works(groups: Groups, n: int) -> list[int]:
    """Number of the work of each record."""
    work = list(range(n))
    for group in groups:
        for at in group:
            work[at] = group[0]
    return work


def many(n: int) -> None:
    """Time, memory and pairs on synthetic records; 4 of 10 works have two to four versions."""
    rng = random.Random(0)
    samples = [labelled()[0], endnote("endnote_copper.xml.xz")[0]]
    vocabulary = Counter(word for one in samples for title in one.titles for word in title.split())
    words, weights = list(vocabulary), list(vocabulary.values())
    texts = [text.split() for one in samples for text in one.abstracts if len(text) > 300]
    names = [one.authors[0].split()[0].strip(",") for sample in samples for one in sample.details if one.authors]
    rows: list[tuple[str, str, RecordDetails, dict[str, list[str]]]] = []
    work: list[int] = []
    while len(rows) < n:
        title = " ".join(rng.choices(words, weights, k=rng.randint(6, 18)))
        text = " ".join(rng.choices(rng.choice(texts), k=100))
        details = RecordDetails(
            rng.randint(1990, 2023), (f"{rng.choice(names)}, {rng.choice('ABC')}",), "Journal of Studies",
            f"10.1000/{len(rows)}" if rng.random() < 0.7 else "",
        )  # fmt: skip
        place = {"pages": [str(rng.randint(1, 2000))], "volume": [str(rng.randint(1, 200))]}
        for version in range(1 if rng.random() < 0.6 else rng.randint(2, 4)):
            shown = title if not version else misspelled(title, rng)
            known = details if rng.random() < 0.7 else RecordDetails(details.year, details.authors, details.journal)
            rows.append((shown, text if rng.random() < 0.8 else "", known, place if rng.random() < 0.8 else {}))
            work.append(work[-1] + 1 if work and not version else work[-1] if work else 0)
    order = list(range(n))
    rng.shuffle(order)
    titles, abstracts, details_of, fields = zip(*(rows[at] for at in order), strict=True)
    records = Records([str(at) for at in range(n)], titles, abstracts, details=details_of, fields=fields)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin, cpu = time.perf_counter(), time.process_time()
    groups = [group.members for group in find_duplicates(records).groups]
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    truth: dict[int, list[int]] = defaultdict(list)
    for at, source in enumerate(order):
        truth[work[source]].append(at)
    emit(
        data=f"{n} synthetic records", rule="corank", seconds=round(seconds, 1), processor_seconds=round(cpu, 1),
        megabytes_before=round(before), megabytes_peak=round(memory), **pair_counts(groups, truth.values()),
    )  # fmt: skip


def misspelled(title: str, rng: random.Random) -> str:
    letters = list(title)
    for _ in range(rng.randint(0, 2)):
        at = rng.randrange(len(letters))
        letters[at] = rng.choice(("", "e", letters[at] * 2))
    return "".join(letters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5,000 synthetic records.")
    parser.add_argument("--records", type=int, default=50_000, help="Number of synthetic records.")
    parser.add_argument("--datatools", help="Python that has asreview-datatools.")
    options = parser.parse_args()
    accuracy(options.datatools)
    many(5_000 if options.quick else options.records)


if __name__ == "__main__":
    main()
