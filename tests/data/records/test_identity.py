"""Keys of records: normalised identifiers and fingerprints."""

from __future__ import annotations

import pytest

from corank.data.records.identity import fingerprint, normalise_doi, normalise_pmid, normalise_title
from corank.data.records.records import RecordDetails, Records


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.1000/182", "10.1000/182"),
        ("DOI: 10.1000/ABC.", "10.1000/abc"),
        ("https://dx.doi.org/10.1016%2Fj.x.2019.03.004", "10.1016/j.x.2019.03.004"),
        ("(see 10.1002/(SICI)1097-4571(1999)50:1<1::AID>3.0)", "10.1002/(sici)1097-4571(1999)50:1"),
        ("[10.1000/a]", "10.1000/a"),
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
    assert second == ("id:b",)
    assert records.take([1]).ids == ["b"]
