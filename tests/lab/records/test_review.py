from __future__ import annotations

import json
import subprocess
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from corank_lab.records.parsed import clean_abstract
from corank_lab.records.records import REVIEW, REVIEW_CITATION, load_review, read_records, review_text
from experiments.datasets.catalog import data_root

ROOT = Path(__file__).parents[3]
RUN = 6
"""Number of consecutive words that would be running text."""


def test_the_review_is_fully_judged_and_attributed():
    found = load_review()
    assert (len(found), int(found.labels.sum())) == (258, 15)
    assert len(review_text().splitlines()) >= 258
    attribution = (
        resources.files("corank_lab.records").joinpath("reviews", "ATTRIBUTION.md").read_text(encoding="utf-8")
    )
    for words in (REVIEW, "CC0 1.0", "10.34894/HE6NAQ", "Donners", "OpenAlex", "inverted index"):
        assert words in attribution
    assert "10.34894/HE6NAQ" in REVIEW_CITATION


def test_the_review_equals_the_original():
    original = data_root() / "synergy_reviews" / "Donners_2021.csv.gz"
    if not original.exists():
        pytest.skip("needs synergy_reviews under CORANK_DATA")
    ours, theirs = load_review(), read_records(original)
    assert (ours.ids, ours.titles, ours.abstracts) == (theirs.ids, theirs.titles, theirs.abstracts)
    assert [list(of) for of in ours.references] == [list(of) for of in theirs.references]
    np.testing.assert_array_equal(ours.labels, theirs.labels)
    assert [of["year"] for of in ours.fields] == [of["year"] for of in theirs.fields]


def test_rebuilt_abstracts_have_the_words_at_their_positions():
    rows = [json.loads(line) for line in review_text().decode().splitlines()]
    for row, abstract in zip(rows, load_review().abstracts, strict=True):
        index = row["abstract_inverted_index"]
        words = [""] * sum(map(len, index.values()))
        for word, places in index.items():
            for at in places:
                words[at] = word
        assert all(words)
        assert abstract == clean_abstract(" ".join(words))


def test_the_shipped_file_has_no_running_abstracts():
    for line in review_text().decode().splitlines():
        row = json.loads(line)
        assert set(row) == {"id", "year", "title", "abstract_inverted_index", "referenced_works", "included"}
        words = list(row["abstract_inverted_index"])
        assert words == sorted(words)
        assert not _runs(words) & _runs_of_abstracts()


def test_no_file_of_the_repository_has_a_running_abstract():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs a git checkout")
    assert len(_runs_of_abstracts()) > 10_000
    for name in listed.stdout.splitlines():
        path = ROOT / name
        words = path.read_text(encoding="utf-8", errors="replace").split() if path.is_file() else []
        assert not _runs(words) & _runs_of_abstracts(), name


@cache
def _runs_of_abstracts() -> set[str]:
    """Return the runs of all abstracts, without those of the titles, which are published."""
    records = load_review()
    runs, titles = (
        set().union(*(_runs(text.split()) for text in texts)) for texts in (records.abstracts, records.titles)
    )
    return runs - titles


def _runs(words: list[str]) -> set[str]:
    return {" ".join(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}
