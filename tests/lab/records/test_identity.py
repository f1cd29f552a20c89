"""Keys of records: normalised identifiers and fingerprints."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corank_lab.records.identity import IdentityIndex, fingerprint, normalise_doi, normalise_pmid, normalise_title
from corank_lab.records.records import RecordDetails, Records


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.1000/182", "10.1000/182"),
        ("DOI: 10.1000/ABC.", "10.1000/abc"),
        ("https://dx.doi.org/10.1016%2Fj.x.2019.03.004", "10.1016/j.x.2019.03.004"),
        ("(see 10.1002/(SICI)1097-4571(1999)50:1<1::AID>3.0)", "10.1002/(sici)1097-4571(1999)50:1<1::aid>3.0"),
        ("[10.1000/a]", "10.1000/a"),
        ("http://dx.doi.org/10.1016/S0735-1097%2813%2962048-0", "10.1016/s0735-1097(13)62048-0"),
        ("https://journals.example/doi/10.1000/a.b/full?via=x#top", "10.1000/a.b"),
        ("https://doi.org/10.1000/a?b#c", "10.1000/a?b#c"),
        ("ARTN 106\n10.1186/s1-018", "10.1186/s1-018"),
        ("<a>10.1000/x</a>", "10.1000/x"),
        ("10.1/x", ""),
        ("", ""),
    ],
)
def test_doi(text: str, doi: str) -> None:
    assert normalise_doi(text) == doi


def test_pmid_is_a_positive_number() -> None:
    assert [normalise_pmid(one) for one in ("30922926", "pmid:7", "", "0", "PMC12")] == ["30922926", "7", "", "", ""]


def test_fingerprint_ignores_case_markup_accents_and_style_of_names() -> None:
    one = fingerprint("Élan <sub>2</sub> vital: a review.", 2001, ["Bergson, H."])
    assert one == fingerprint("elan 2 vital — A Review", 2001, ["Henri Bergson", "Roe, B."])
    assert one != fingerprint("elan 2 vital — A Review", 2002, ["Henri Bergson"])
    assert fingerprint("...", 2001, []) == ""
    assert normalise_title("<b>") == ""


def test_records_have_keys_in_order_of_reliability() -> None:
    details = [RecordDetails(doi="10.1000/1", pmid="5", given_id="W1"), RecordDetails()]
    records = Records(["W1", "b"], ["Tin", ""], ["", "x"], details=details)
    first, second = records.keys
    assert [key.partition(":")[0] for key in first] == ["doi", "pmid", "title", "id"]
    assert second == (f"title:{fingerprint('x', None, [])}", "id:b")  # without a title, by the abstract
    assert list(Records(["b"], [""], [""]).keys) == [("id:b",)]
    assert records.take([1]).ids == ["b"]


SLEEP, TIN = "Sleep and memory in young rats", "Toxicity of tin compounds in the kidney"


def collection(*rows: tuple[str, str, RecordDetails]) -> Records:
    ids, titles, details = zip(*rows, strict=True)
    return Records(ids, titles, [""] * len(ids), details=details)


def found(old: Records, new: Records) -> list[int | None]:
    """Numbers in the new collection of the records of the old one."""
    index = IdentityIndex(new)
    return [index.find(keys, title) for keys, title in zip(old.keys, old.titles, strict=True)]


def test_inserted_rows_and_another_order() -> None:
    old = collection(("a", SLEEP, RecordDetails(doi="10.1000/1")), ("b", TIN, RecordDetails(year=1990)))
    new = collection(
        ("x", "A new one of an update search", RecordDetails(doi="10.1000/9", source="second.ris")),
        ("b", TIN, RecordDetails(year=1990)), ("a", SLEEP, RecordDetails(doi="10.1000/1")),
    )  # fmt: skip
    assert found(old, new) == [2, 1]
    assert found(new, old) == [None, 1, 0]


@pytest.mark.parametrize("kept", [{"doi": "10.1000/1"}, {"pmid": "7"}, {"given_id": "W1"}])
def test_corrected_title(kept: dict[str, str]) -> None:
    old = collection(("W1", "Sleep and memroy in young rats", RecordDetails(**kept)))
    new = collection(("W0", TIN, RecordDetails(given_id="W0")), ("W1", SLEEP, RecordDetails(**kept, year=2001)))
    assert found(old, new) == [1]


def test_renumbered_file_moves_no_answer() -> None:
    titles = [SLEEP, TIN, "Iron in the diet of infants", "Iron in the diet of infants, part 2"]
    old = collection(*((str(at), title, RecordDetails(given_id=str(at))) for at, title in enumerate(titles, 1)))
    new = collection(
        *((str(at), title, RecordDetails(given_id=str(at))) for at, title in enumerate(reversed(titles), 1))
    )
    assert found(old, new) == [3, 2, 1, 0]
    without = collection(*((str(at), title, RecordDetails(given_id=str(at))) for at, title in enumerate(titles[1:], 1)))
    assert found(old, without) == [None, 0, 1, 2]


def test_id_alone_never_wins_over_numbers_in_titles() -> None:
    old = collection(("1", "Iron in the diet of infants, part 1", RecordDetails()))
    new = collection(("1", "Iron in the diet of infants, part 2", RecordDetails()))
    assert found(old, new) == [None]
    assert IdentityIndex(new).find(["id:1"]) == IdentityIndex(new).find(["1"]) == 0  # old logs have no titles
    assert IdentityIndex(new).find([old.keys[0][0], "id:1"]) is None  # another fingerprint


def test_abstracts_of_a_supplement_share_a_doi() -> None:
    shared = RecordDetails(doi="10.1000/suppl")
    old = collection(("a", SLEEP, shared), ("b", TIN, shared))
    new = collection(("p", TIN, shared), ("q", SLEEP, shared), ("r", "Copper and wound healing", shared))
    assert found(old, new) == [1, 0]
    assert found(old, new.take([2])) == [None, None]
    corrected = collection(("z", TIN.replace("Toxicity", "The toxicity"), shared))
    assert found(corrected, new) == [0]


def test_doi_that_appears_later_and_year_that_is_corrected() -> None:
    old = collection(("title:1", SLEEP, RecordDetails(year=2001, authors=("Roe, A",))))
    new = collection(("doi:10.1000/1", SLEEP, RecordDetails(year=2001, authors=("A. Roe",), doi="10.1000/1")))
    assert found(old, new) == found(new, old) == [0]
    later = collection(("title:2", SLEEP, RecordDetails(year=2002, authors=("Roe, A",))))
    assert found(old, later) == [0]
    assert found(old, collection(*zip(["x", "y"], [SLEEP] * 2, [RecordDetails(year=1)] * 2, strict=True))) == [None]


def test_records_equal_in_every_key() -> None:
    rows = [("title:5", SLEEP, RecordDetails()), ("title:5#2", SLEEP, RecordDetails())]
    old = collection(*rows)
    assert found(old, old) == [0, 1]
    assert found(old, collection(*reversed(rows))) == [1, 0]


def test_other_identifier_is_another_work() -> None:
    old = collection(("1", "Editorial", RecordDetails(doi="10.1000/1", year=2001)))
    new = collection(("1", "Editorial", RecordDetails(doi="10.1000/2", year=2001)))
    assert found(old, new) == [None]


def test_shortened_titles_and_keys_of_a_group() -> None:
    title = SLEEP + ": a long study of many animals over the course of several years in four laboratories"
    new = collection(
        ("1", TIN, RecordDetails(doi="10.1000/2")), ("2", title, RecordDetails(given_id="W1")),
        ("3", title + " (abstract)", RecordDetails(doi="10.1000/1")),
    )  # fmt: skip
    index = IdentityIndex(new)
    assert index.find(["id:W1"], title[:60] + "…") == 1
    assert index.find([*new.keys[2], *new.keys[1]], title[:60]) == 2
    assert index.find(["doi:10.1000/3"], "") is None


@settings(deadline=None)
@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_every_record_finds_itself(order: list[int], dropped: set[int]) -> None:
    details = [
        RecordDetails(doi="10.1000/s"), RecordDetails(doi="10.1000/s"), RecordDetails(pmid="4", year=2000),
        RecordDetails(year=2000, authors=("Roe, A",)), RecordDetails(given_id="1"), RecordDetails(given_id="2"),
    ]  # fmt: skip
    titles = [SLEEP, TIN, "Editorial", "Editorial", "Iron in the diet, part I", "Iron in the diet, part II"]
    old = collection(*((str(at), titles[at], details[at]) for at in range(6)))
    kept = [at for at in order if at not in dropped]
    if kept:
        wanted = [kept.index(at) if at in kept else None for at in range(6)]
        assert found(old, old.take(kept)) == wanted
