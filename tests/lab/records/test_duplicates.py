"""Duplicates: hard pairs decided by hand, laws of grouping, and the labelled exports."""

from __future__ import annotations

import csv
import io
import lzma
import os
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank_lab.records.duplicates import DuplicateGroups, find_duplicates, restore_duplicates
from corank_lab.records.identity import normalise_doi
from corank_lab.records.records import RecordDetails, Records

TEXT = (
    "We trained forty young rats in a water maze and recorded their sleep for two days. Animals that slept more after "
    "training found the platform faster, which was not explained by stress, weight or light. "
)
OTHER_TEXT = (
    "Of the patients in three hospitals, half received the new drug for a year. Bleeding was rare in both arms of this "
    "trial, and quality of life improved slightly, although many participants stopped early because of nausea. "
)


@dataclass(frozen=True)
class Row:
    """A record in short."""

    title: str = "Sleep improves spatial memory in young rats"
    year: int | None = 2001
    author: str = "Roe, Anna"
    journal: str = "Journal of Sleep Studies"
    volume: str = "12"
    pages: str = "221-8"
    doi: str = ""
    pmid: str = ""
    accession: str = ""
    abstract: str = TEXT
    id: str = ""


def collection(*rows: Row) -> Records:
    return Records(
        [str(at) for at in range(len(rows))], [row.title for row in rows], [row.abstract for row in rows],
        details=[
            RecordDetails(
                row.year, (row.author,) if row.author else (), row.journal, row.doi, row.pmid, row.accession,
                given_id=row.id,
            ) for row in rows
        ],
        fields=[
            {name: [value] for name, value in (("volume", row.volume), ("pages", row.pages)) if value} for row in rows
        ],
    )  # fmt: skip


ROW = Row()
BARE = Row(year=None, author="", journal="", volume="", pages="", abstract="")
LONG = "Sleep improves spatial memory in young rats that were trained in a water maze for two days"

DUPLICATES: dict[str, Row | tuple[Row, Row]] = {
    "no titles": (replace(BARE, title="", abstract=TEXT), replace(BARE, title="", abstract=TEXT + "(C) 2001")),
    "another spelling": replace(
        ROW, title="SLEEP IMPROVES <i>SPATIAL MEMORY</i> IN YOUNG RATS.", author="A Roe", pages="221-228"
    ),
    "typing error": replace(ROW, title="Sleep improves spatail memory in young rats"),
    "abbreviated journal": replace(ROW, journal="J Sleep Stud", abstract=""),
    "online a year earlier": replace(ROW, year=2000, volume="", pages=""),
    "wrong volume": replace(ROW, volume="1"),
    "pages taken for a date": (replace(ROW, pages="8-21"), replace(ROW, pages="21-Aug")),
    "same DOI, nothing else": (replace(BARE, title=ROW.title, doi="10.1000/1"), replace(ROW, doi="10.1000/1")),
    "same DOI, subtitle missing": (replace(ROW, title=LONG, doi="10.1000/1"), replace(ROW, doi="10.1000/1")),
    "same PubMed id, translated title": (
        replace(ROW, pmid="5"), replace(ROW, pmid="5", title="Le sommeil et la mémoire")
    ),
    "same DOI, translated title": (
        replace(ROW, doi="10.1/1"), replace(ROW, doi="10.1/1", title="Schlaf und Gedächtnis")
    ),
    "language in the title": replace(ROW, title="[Sleep improves spatial memory in young rats] [French]"),
    "same accession number": (replace(ROW, accession="L1", pages="", volume=""), replace(ROW, accession="L1")),
    "only titles": (replace(BARE, title=ROW.title), replace(BARE, title=ROW.title)),
    "only titles and abstracts": (
        replace(BARE, title=ROW.title, abstract=TEXT), replace(BARE, title=ROW.title, abstract=TEXT + "(C) 2001")
    ),
    "title with an added word and the same abstract": replace(ROW, title="The " + ROW.title + ": a study", pages=""),
    "wrong DOI in one database": (replace(ROW, doi="10.1000/1"), replace(ROW, doi="10.1000/2")),
    "type II and type 2": (
        replace(ROW, title="Sleep in patients with type II diabetes"),
        replace(ROW, title="Sleep in patients with type 2 diabetes"),
    ),
    "retracted, with a mark in the title": (
        replace(ROW, doi="10.1000/1"), replace(ROW, doi="10.1000/1", title="RETRACTED: " + ROW.title)
    ),
    "title and year only": (
        replace(BARE, title=ROW.title, year=2001), replace(BARE, title=ROW.title + ".", year=2001)
    ),
    "title and year against a whole record": (replace(BARE, title=ROW.title, year=2001), ROW),
    "title and year, one with a text": (
        replace(BARE, title=ROW.title, year=2001), replace(BARE, title=ROW.title, year=2001, abstract=TEXT)
    ),
    "title, year and a short text": (
        replace(BARE, title=ROW.title, year=2001, abstract="In rats."),
        replace(BARE, title=ROW.title, year=2001, abstract="In rats."),
    ),
    "a common title with the same id and text": (
        replace(BARE, title="Editorial", id="7", abstract="On rats."),
        replace(BARE, title="Editorial", id="7", abstract="On rats."),
    ),
    "a common title with the same id and text, one with a year": (
        replace(BARE, title="Editorial", id="7", abstract="On rats.", year=2001),
        replace(BARE, title="Editorial", id="7", abstract="On rats."),
    ),
}  # fmt: skip

DISTINCT: dict[str, tuple[Row, Row]] = {
    "parts": (
        replace(ROW, title="Sleep of rats and memory, part 1", pages="1-9", abstract=""),
        replace(ROW, title="Sleep of rats and memory, part 2", pages="10-19", abstract=""),
    ),
    "parts without pages": (
        replace(ROW, title="Sleep of rats and memory. I", pages="", volume="", abstract=""),
        replace(ROW, title="Sleep of rats and memory. II", pages="", volume="", abstract=""),
    ),
    "parts with the same DOI": (
        replace(BARE, title="Sleep of young rats and memory: part I", doi="10.1000/1"),
        replace(BARE, title="Sleep of young rats and memory: part II", doi="10.1000/1"),
    ),
    "another animal": (
        replace(ROW, pages="", abstract=""),
        replace(ROW, title="Sleep improves spatial memory in young mice", pages="", abstract=""),
    ),
    "erratum": (ROW, replace(ROW, title="Erratum: " + ROW.title, pages="400", abstract="")),
    "comment on the same page": (ROW, replace(ROW, title="Comment on: " + ROW.title, abstract="")),
    "comment with the same title": (ROW, replace(ROW, author="Doe, B", pages="300", abstract="")),
    "title and another year against a whole record": (replace(BARE, title=ROW.title, year=2005), ROW),
    "comment of which little is known": (
        replace(ROW, author="", volume="", pages=""), replace(ROW, author="", volume="", pages="", abstract="")
    ),
    "reply": (ROW, replace(ROW, title="Reply to: " + ROW.title, doi="10.1000/2")),
    "conference abstract and article": (
        replace(ROW, year=2000, journal="Sleep Conference", volume="", pages="A134", abstract=OTHER_TEXT), ROW
    ),
    "conference abstract in the same journal": (
        replace(ROW, year=2000, volume="11", pages="", abstract=OTHER_TEXT), ROW
    ),
    "abstracts of one supplement": (
        replace(ROW, doi="10.1000/s", pages="S1"),
        replace(ROW, title="Bleeding under a new drug", doi="10.1000/s", pages="S2", abstract=OTHER_TEXT),
    ),
    "alike abstracts of one supplement": (
        replace(ROW, doi="10.1000/s", pages="S1"),
        replace(ROW, title="The " + ROW.title, doi="10.1000/s", pages="S2", abstract=OTHER_TEXT),
    ),
    "yearly editorial": (
        replace(ROW, title="Editorial", year=2001, abstract=""), replace(ROW, title="Editorial", year=2002, abstract="")
    ),
    "two introductions": (
        replace(BARE, title="Introduction", year=2001), replace(BARE, title="Introduction", year=2001)
    ),
    "title only, other years": (
        replace(BARE, title=ROW.title, year=2001), replace(BARE, title=ROW.title, year=2002)
    ),
    "introductions with the same number in two files": (
        replace(BARE, title="Introduction", id="7"), replace(BARE, title="Introduction", id="7")
    ),
    "a common title with other texts and the same number": (
        replace(BARE, title="Editorial", id="7", abstract="On rats."),
        replace(BARE, title="Editorial", id="7", abstract="On mice."),
    ),
    "a common title with the same text and other ids": (
        replace(BARE, title="Editorial", id="7", abstract="On rats."),
        replace(BARE, title="Editorial", id="8", abstract="On rats."),
    ),
    "two letters of one author": (
        replace(ROW, title="Letter to the editor", pages="3", abstract=""),
        replace(ROW, title="Letter to the editor", pages="9", abstract=""),
    ),
    "yearly report": (
        replace(ROW, title="Annual report on sleep research in Europe 2001", pages="", abstract=""),
        replace(ROW, title="Annual report on sleep research in Europe 2002", pages="", abstract="", year=2002),
    ),
    "other authors": (replace(ROW, author="Doe, B", abstract="", pages=""), replace(ROW, abstract="", pages="")),
    "other PubMed ids": (replace(ROW, pmid="1"), replace(ROW, pmid="2")),
    "preprint and article": (
        replace(ROW, doi="10.1000/1"), replace(ROW, doi="10.1101/2", journal="bioRxiv", volume="", pages="")
    ),
    "same numbers of a database, other works": (
        replace(ROW, accession="1"), replace(ROW, accession="1", title="Bleeding under a new drug", abstract=OTHER_TEXT)
    ),
    "no titles": (replace(BARE, title=""), replace(BARE, title="")),
    "no titles, other texts": (replace(BARE, title="", abstract=TEXT), replace(BARE, title="", abstract=OTHER_TEXT)),
    "phase 2 and phase 3": (
        replace(ROW, title="A phase II trial of sleep in young adults", abstract="", pages=""),
        replace(ROW, title="A phase III trial of sleep in young adults", abstract="", pages=""),
    ),
}  # fmt: skip


def both(case: Row | tuple[Row, Row]) -> Records:
    return collection(*(case if isinstance(case, tuple) else (ROW, case)))


@pytest.mark.parametrize("case", DUPLICATES)
def test_duplicates(case: str) -> None:
    groups = find_duplicates(both(DUPLICATES[case])).groups
    assert [group.members for group in groups] == [(0, 1)]
    assert all(groups[0].evidence)


@pytest.mark.parametrize("case", DISTINCT)
def test_distinct_works(case: str) -> None:
    assert find_duplicates(both(DISTINCT[case])).groups == []


def test_evidence_is_plain_english() -> None:
    groups = find_duplicates(
        collection(
            ROW, replace(ROW, title="Sleep improves spatail memory in young rats", volume="", abstract=""),
            replace(BARE, title="Bleeding", doi="10.1000/7"), replace(BARE, title="Bleeding", doi="10.1000/7"),
        )
    ).groups  # fmt: skip
    assert [group.evidence for group in groups] == [
        ("titles 97 % alike, same year, first author, journal and first page",), ("same DOI 10.1000/7",),
    ]  # fmt: skip


def test_representative_is_the_most_complete() -> None:
    rows = [
        replace(ROW, abstract="", doi="10.1000/1"), replace(ROW, abstract=TEXT, doi="10.1000/1"),
        replace(ROW, abstract=TEXT + TEXT),
        replace(ROW, title="Bleeding under a new drug", abstract=OTHER_TEXT, pages="9"),
    ]  # fmt: skip
    groups = find_duplicates(collection(*rows))
    assert groups.groups[0].representative == 1
    assert groups.representatives == [1, 3]
    assert groups.group_of(2) == (0, 1, 2)
    assert groups.group_of(3) == (3,)
    assert repr(groups) == "<DuplicateGroups: 2 duplicates in 1 groups of 4 records>"


def test_chains_do_not_join_different_works() -> None:
    first = replace(ROW, pages="221-8", abstract=TEXT)
    second = replace(ROW, pages="400-9", author="Doe, B", abstract=OTHER_TEXT)
    bridge = replace(BARE, title=ROW.title, year=2001, journal=ROW.journal, volume="12")
    for rows in ([first, bridge, second], [bridge, second, first]):
        for group in find_duplicates(collection(*rows)).groups:
            assert not {rows.index(first), rows.index(second)} <= set(group.members)


def test_a_person_splits_and_joins_groups() -> None:
    rows = [ROW, replace(ROW, abstract=""), replace(ROW, abstract=TEXT + "x"), replace(ROW, title="Tin", pages="1")]
    groups = find_duplicates(collection(*rows))
    assert groups.group_of(0) == (0, 1, 2)
    split = groups.without([(1, 0)])
    assert all(not {0, 1} <= set(group.members) for group in split.groups)
    assert sum(len(group.members) for group in split.groups) == 2
    joined = split.joined([(3, 1)])
    assert {1, 3} <= set(joined.group_of(3))
    assert 0 not in joined.group_of(1)
    assert "confirmed by a person" in next(group for group in joined.groups if 3 in group.members).evidence
    assert joined.joined([(0, 1)]).group_of(0) == (0, 1, 2, 3)
    assert joined.joined([(0, 1)]).without([(1, 3)]).group_of(3) == (3,)
    with pytest.raises(InputError, match=r"the pair of records is \(0, 9\)"):
        groups.without([(9, 0)])


def test_many_copies_and_many_equal_titles_stay_fast() -> None:
    rows = [replace(BARE, title=ROW.title)] * 3000 + [replace(BARE, title="Editorial", year=2000)] * 3000
    rows += [
        replace(BARE, title=ROW.title, year=1900 + at % 100, author=f"{'abcdefghij'[at % 10] * 7}, B")
        for at in range(500)
    ]
    groups = find_duplicates(collection(*rows))
    assert groups.group_of(0) == tuple(range(3000))
    assert groups.group_of(3000) == (3000,)


CASES = [
    *(
        row
        for case in (*DUPLICATES.values(), *DISTINCT.values())
        for row in (case if isinstance(case, tuple) else (ROW, case))
    )
]


def as_sets(groups: DuplicateGroups, rows: list[Row]) -> list[tuple[Any, ...]]:
    """Groups by content: rows of the members, the representative and the evidence."""
    return sorted(
        (sorted(str(rows[at]) for at in group.members), str(rows[group.representative]), sorted(group.evidence))
        for group in groups.groups
    )


@given(st.lists(st.sampled_from(CASES), min_size=2, max_size=14), st.randoms(use_true_random=False))
def test_laws_of_groups(rows: list[Row], rng: random.Random) -> None:
    groups = find_duplicates(collection(*rows))
    shuffled = rows[:]
    rng.shuffle(shuffled)
    assert as_sets(groups, rows) == as_sets(find_duplicates(collection(*shuffled)), shuffled)
    members = [at for group in groups.groups for at in group.members]
    assert len(members) == len(set(members))
    assert all(group.representative in group.members and len(group.members) > 1 for group in groups.groups)
    assert len(groups.representatives) == len(rows) - groups.n_duplicates
    assert all(at in groups.group_of(other) for at in range(len(rows)) for other in groups.group_of(at))
    assert [one.members for one in groups.without([]).groups] == [one.members for one in groups.groups]
    restored = restore_duplicates(collection(*rows), [list(one) for one in groups.pairs])
    assert restored.groups == groups.groups
    assert restored.joined([(0, 1)]).groups == groups.joined([(0, 1)]).groups
    if groups.groups:
        one, other, *_ = groups.groups[0].members
        pair = (one, other)
        assert pair[1] not in groups.without([pair]).group_of(pair[0])
        assert pair[1] in groups.without([pair]).joined([pair]).group_of(pair[0])


DATA = Path(os.environ.get("CORANK_DATA", "")) / "record_exports"


@pytest.mark.skipif(not (DATA / "labelled_test_set.csv.xz").is_file(), reason="CORANK_DATA has no record_exports")
def test_labelled_export() -> None:
    text = lzma.decompress((DATA / "labelled_test_set.csv.xz").read_bytes()).decode("cp1252")
    table = [
        {name: "" if cell == "NA" else cell for name, cell in row.items()} for row in csv.DictReader(io.StringIO(text))
    ]
    groups = find_duplicates(
        collection(
            *(
                Row(
                    row["title"], int(row["year"]), row["author"], row["journal"], row["volume"], row["pages"],
                    normalise_doi(row["doi"]), abstract=row["abstract"],
                ) for row in table
            )
        )
    ).groups  # fmt: skip
    n_works = [sum(table[at]["source"] == "unique" for at in group.members) for group in groups]
    n_found = sum(len(group.members) - max(n, 1) for group, n in zip(groups, n_works, strict=True))
    n_wrong = sum(max(n - 1, 0) for n in n_works)
    n_duplicates = sum(row["source"] == "duplicate" for row in table)
    assert n_found / (n_found + n_wrong) >= 0.998
    assert n_found / n_duplicates >= 0.98
    # those removed by hand are together with a record that was kept
    kept = {
        at
        for group in groups
        if any(table[one]["label"] == "In_database" for one in group.members)
        for at in group.members
    }
    removed = [at for at, row in enumerate(table) if row["label"] == "Duplicate_in_trash"]
    assert sum(at in kept for at in removed) / len(removed) >= 0.98
