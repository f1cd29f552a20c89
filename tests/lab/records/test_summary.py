"""The summary of an import counts what the records hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from corank_lab.records.duplicates import find_duplicates
from corank_lab.records.records import RecordDetails, Records, RecordSource, duplicate_table, summarise

RECORDS = Records(
    ["a1", "a2", "b1"],
    ["Sleep and memory in young rats", "", "Sleep and memory in young rats."],
    ["", "Ore.", "Rats sleep."],
    [("10.1000/B", "b1", "far"), (), ()],
    [1, np.nan, 0],
    details=[
        RecordDetails(2001, ("Roe, A.",), doi="10.1000/a", source="a.csv"),
        RecordDetails(source="a.csv"),
        RecordDetails(2001, ("Roe, Ann",), doi="10.1000/a", source="b.ris"),
    ],
    sources=[
        RecordSource("a.csv", "", "CSV", 2, ("Read as Windows-1252.",)),
        RecordSource("b.ris", "", "RIS", 1),
        RecordSource("empty.ris", "", "RIS", 0),
    ],
)


def test_numbers_of_each_file():
    groups = find_duplicates(RECORDS)
    summary = summarise(RECORDS, groups)
    table = summary.table()
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["file"] for row in rows] == ["a.csv", "b.ris", "empty.ris", "all"]
    assert [row["records"] for row in rows] == [2, 1, 0, 3]
    assert rows[0]["format"] == "CSV"
    assert (rows[0]["no title"], rows[0]["no abstract"], rows[0]["no year"], rows[0]["no DOI or PMID"]) == (1, 1, 1, 1)
    assert (rows[-1]["relevant"], rows[-1]["irrelevant"], rows[-1]["duplicates"]) == (1, 1, 1)
    assert summary.sentences() == (
        "1 duplicate in 1 group: 2 records to judge.",
        "2 records have labels: 1 relevant, 1 irrelevant; 1 without.",
        "3 references, of which 1 names a record of this collection.",
        "a.csv: Read as Windows-1252.",
        "One group of duplicates with different labels counts as unlabelled: b1.",
    )
    same = summarise(replace(RECORDS, labels=np.array([1, np.nan, 1])), groups)
    assert same.sentences()[-1] == "a.csv: Read as Windows-1252."
    assert table.note == " ".join(summary.sentences())


def test_columns_of_zeros_and_unknown_files_are_left_out():
    records = Records(["a"], ["Tin"], ["Ore."], details=[RecordDetails(2001, ("Roe",), doi="10.1/x")])
    summary = summarise(records)
    assert summary.table().columns == ("file", "format", "records")
    assert summary.table().rows == (("records", "", 1),)
    assert summary.sentences() == ("No labels were found.", "No references were found.")
    assert summarise(records, find_duplicates(records)).sentences()[0] == "No duplicates were found."
    assert summarise(records, matched=7).n_matched == 7


def test_groups_are_listed_with_the_evidence():
    groups = find_duplicates(RECORDS)
    table = duplicate_table(RECORDS, groups)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [(row["group"], row["id"], row["judged"]) for row in rows] == [(1, "a1", ""), (1, "b1", "*")]
    assert rows[0]["evidence"] == "; ".join(groups.groups[0].evidence)
    assert rows[0]["evidence"]
