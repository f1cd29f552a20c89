"""Matching of references: identifiers, titles in free text, author with year, volume and page."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corank_lab.records.records import RecordDetails, Records
from corank_lab.records.references import ReferenceCounts, match_references
from corank_lab.screening.views import reference_views

TITLES = [
    "Sleep improves spatial memory in young rats", "Bleeding under a new drug, and what to do",
    "Sleep improves spatial memory in young rats: a second look", "Tin", "Copper in the ward",
]  # fmt: skip
DETAILS = [
    RecordDetails(2001, ("Roe, Anna", "Doe, B."), "Journal of Sleep Studies", doi="10.1000/a1", given_id="W1001"),
    RecordDetails(2010, ("van der Berg, C.",), "New England Journal of Medicine", pmid="77", doi="10.1000/s"),
    RecordDetails(2005, ("Roe, Anna",), "Journal of Sleep Studies"),
    RecordDetails(1990, ("Tinner, T",), "Metals", doi="10.1000/s"),
    RecordDetails(1990, ("Tinner, T",), "Metals", given_id="https://openalex.org/W1005"),
]
FIELDS = [{"SP": ["221"], "VL": ["12"]}, {"pages": ["e33-e40"], "volume": ["8"]}, {}, {}, {}]


def matched(*texts: str, at: int = 4) -> tuple[tuple[str, ...], ReferenceCounts]:
    """References of one record of the collection, as they are after matching."""
    references = [list(texts) if one == at else [] for one in range(5)]
    records = Records(list("abcde"), TITLES, [""] * 5, references, details=DETAILS, fields=FIELDS)
    result, counts = match_references(records)
    return tuple(result.references[at]), counts


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("a", "a"),
        ("W1001", "a"),
        ("https://openalex.org/W1001", "a"),
        ("https://doi.org/10.1000/A1", "a"),
        ("ROE A, 2001, J SLEEP STUD, V12, P221, DOI 10.1000/a1", "a"),
        ("Roe A, 2001, J SLEEP STUD, V12, P221", "a"),
        ("ROE A, 2001, NATURE, V12, P221", None),  # another journal
        ("ROE A, 2002, J SLEEP STUD, V12, P221", None),
        ("ROE A, 2001, J SLEEP STUD, V12, P222", None),
        ("ROE A, 2001, J SLEEP STUD, V12", None),
        ("VAN DER BERG C, 2010, NEW ENGL J MED, V8, PE33", "b"),
        ("PMID: 77", "b"),
        ("https://pubmed.ncbi.nlm.nih.gov/77/", "b"),
        ("Roe A., Doe B., Sleep improves spatial memory in young rats, J. Sleep Stud., 12, pp. 221-228, (2001)", "a"),
        ("Roe, A. (2001). Sleep Improves Spatial Memory in Young Rats. Journal of Sleep Studies.", "a"),
        ("Sleep improves spatial memory in young rats, (2001)", "a"),
        ("Roe A., Sleep improves spatial memory in young rats: A second look, J. Sleep Stud., (2005)", "c"),
        ("Roe A., Sleep improves spatial memory in young rats: A third look, J. Sleep Stud., (2001)", None),
        ("Roe A., Sleep improves spatial memory in young rats and mice, J. Sleep Stud., (2001)", None),
        ("Roe A., Sleep improves spatial memory in young rats, J. Sleep Stud., (1999)", None),
        ("Foe X., Sleep improves spatial memory in young rats, J. Sleep Stud., (2001)", None),
        ("Van Der Berg C., Bleeding under a new drug, and what to do, N. Engl. J. Med., 8, (2010)", "b"),
        ("Tinner T., Tin, Metals, (1990)", None),  # too short a title
        ("10.1000/s", None),  # two works share this DOI
        ("Berg C., Bleeding under a new drug, and what to do, (2010), doi:10.1000/s", "b"),
    ],
)
def test_single_references(text: str, record: str | None) -> None:
    found, counts = matched(text)
    assert len(found) == counts.n_references == 1
    assert (found[0] if counts.n_matched_inside else None) == record
    assert (found[0] in "abcde") == (record is not None)


def test_lists_are_split_but_never_at_blanks() -> None:
    scopus = (
        "Roe A., Doe B., Sleep improves spatial memory in young rats, J. Sleep Stud., 12, pp. 221-228, (2001); "
        "Unknown U., A work that nobody has: really?, Nature, 4, (1999)"
    )
    found, counts = matched(scopus, "W2|W1001", "10.1002/(SICI)1097(1999)50:1<1::AID-ASI1>3.0.CO;2-J")
    assert found == (
        "a", "unknown u a work that nobody has really nature 4 1999", "W2",
        "doi:10.1002/(sici)1097(1999)50:1<1::aid-asi1>3.0.co;2-j",
    )  # fmt: skip
    assert (counts.n_references, counts.by_title, counts.by_id) == (5, 1, 1)
    assert str(counts) == "2 of 5 references are to records of the collection (1 by id, 1 by title)."


def test_own_id_and_repeated_references_are_left_out() -> None:
    found, counts = matched("a", "10.1000/a1", "https://openalex.org/w1005")
    assert found == ("a",)
    assert (counts.n_references, counts.n_matched_inside) == (3, 2)
    assert str(matched()[1]) == "0 of 0 references are to records of the collection."


def test_works_outside_are_shared_by_the_records_that_cite_them() -> None:
    references = [
        ["https://doi.org/10.5/X".replace("10.5", "10.5000"), "SMITH J, 2003, NATURE, V4, P5"],
        ["Smith J., Something, Nature, (2003), DOI 10.5000/x", "SMITH J, 2003, NATURE LONDON, V4, P5"],
        ["https://openalex.org/W9999"], ["w9999"], [],
    ]  # fmt: skip
    records, _ = match_references(Records(list("abcde"), TITLES, [""] * 5, references, details=DETAILS, fields=FIELDS))
    assert list(records.references[0]) == list(records.references[1]) == ["doi:10.5000/x", "smith 2003 v4 p5"]
    assert records.references[2] == records.references[3]
    _, cited = reference_views(records)
    similarity = (cited @ cited.T).toarray()
    assert similarity[0, 1] > 0
    assert similarity[2, 3] > 0
    assert similarity[0, 2] == 0


def test_matching_twice_changes_nothing() -> None:
    references = [
        ["b", "W5555", "10.5000/x", "Smith J., Something else entirely, Nature, (2003)"],
        ["PMID 5"],
        [],
        [],
        [],
    ]
    once, _ = match_references(Records(list("abcde"), TITLES, [""] * 5, references, details=DETAILS, fields=FIELDS))
    assert list(match_references(once)[0].references) == list(once.references)


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_text_is_accepted(texts: list[str]) -> None:
    found, counts = matched(*texts)
    assert len(found) <= counts.n_references
    assert all(found)
