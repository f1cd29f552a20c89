from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from corank.data.records.records import REVIEW, REVIEW_CITATION, load_review, read_records, review_text
from experiments.datasets.catalog import data_root


def test_the_review_is_fully_judged_and_attributed():
    found = load_review()
    assert (len(found), int(found.labels.sum())) == (258, 15)
    assert len(review_text().splitlines()) >= 259
    attribution = (
        resources.files("corank.data.records").joinpath("reviews", "ATTRIBUTION.md").read_text(encoding="utf-8")
    )
    for words in (REVIEW, "CC0 1.0", "10.34894/HE6NAQ", "Donners", "OpenAlex"):
        assert words in attribution
    assert "10.34894/HE6NAQ" in REVIEW_CITATION


def test_the_review_equals_the_original():
    original = data_root() / "synergy_reviews" / f"{REVIEW}.gz"
    if not original.exists():
        pytest.skip("needs synergy_reviews under CORANK_DATA")
    ours, theirs = load_review(), read_records(original)
    assert (ours.ids, ours.titles, ours.abstracts) == (theirs.ids, theirs.titles, theirs.abstracts)
    assert [list(of) for of in ours.references] == [list(of) for of in theirs.references]
    np.testing.assert_array_equal(ours.labels, theirs.labels)
