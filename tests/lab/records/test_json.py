from __future__ import annotations

import json

import numpy as np
import pytest

from corank.errors import InputError
from helpers.record_samples import ABSTRACT, TITLE, check_works, read

ROWS = [
    {
        "id": "a1", "title": TITLE, "authors": ["Roe, Ann B.", "Doe, Ben"], "year": 2001, "journal": "Journal of Ore",
        "abstract": ABSTRACT, "doi": "https://doi.org/10.1000/ore.1", "pmid": 12345678,
        "keywords": ["tin", "deep sleep"], "url": "https://ore.example/1",
    },
    {"id": "b2", "title": "Gold dust", "year": 1999, "abstract": None, "extra": {"deep": {"er": [1, "x"]}}},
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("\n".join(map(json.dumps, ROWS)), "JSON lines"),
        (json.dumps(ROWS), "JSON"),
        (json.dumps(ROWS, indent=2), "JSON"),
        (json.dumps({"meta": {"count": 2}, "results": ROWS}), "JSON"),
        (json.dumps({"CodeSets": [{"SetName": "x"}] * 5, "References": ROWS}), "JSON"),
        (json.dumps({"resultList": {"result": ROWS}}, indent=1), "JSON"),
        (json.dumps({"hits": {"hits": [{"_id": "x", "_source": row} for row in ROWS]}}), "JSON"),
    ],
)
def test_lines_arrays_and_answers_of_services(text, format, tmp_path):
    found = read(tmp_path, text)
    check_works(found, format)
    assert found.ids == ["a1", "b2"]
    assert found.fields[1]["extra.deep.er"] == ["1", "x"]


def test_openalex(tmp_path):
    works = [
        {
            "id": "https://openalex.org/W1", "doi": "https://doi.org/10.1000/ore.1", "title": TITLE,
            "publication_year": 2001, "ids": {"pmid": "https://pubmed.ncbi.nlm.nih.gov/12345678"},
            "authorships": [{"author": {"display_name": "Ann B. Roe"}}, {"author": {"display_name": "Ben Doe"}}],
            "primary_location": {
                "landing_page_url": "https://ore.example/1", "source": {"display_name": "Journal of Ore"}
            },
            "keywords": [{"display_name": "tin", "score": 0.5}, {"display_name": "deep sleep", "score": 0.4}],
            "abstract_inverted_index": {
                "Rats": [0], "sleep": [1], "in": [2], "tin": [3], "mines.": [4], "Effects": [5], "were": [6],
                "large": [7], "(p": [8], "<": [9], "0.05).": [10],
            },
            "referenced_works": ["https://openalex.org/W2", "https://openalex.org/W3"],
        },
        {"id": "https://openalex.org/W2", "title": "Gold dust", "publication_year": 1999},
    ]  # fmt: skip
    found = read(tmp_path, json.dumps({"meta": {}, "results": works}))
    check_works(found, "OpenAlex JSON", authors=("Ann B. Roe", "Ben Doe"))
    assert found.ids == ["https://openalex.org/W1", "https://openalex.org/W2"]
    assert list(found.references[0]) == works[0]["referenced_works"]
    assert "abstract_inverted_index" not in found.fields[0]


def test_csl(tmp_path):
    items = [
        {
            "id": "x/1", "title": TITLE,
            "author": [{"family": "Roe", "given": "Ann B."}, {"family": "Doe", "given": "Ben"}],
            "issued": {"date-parts": [[2001, 5]]}, "container-title": "Journal of Ore", "abstract": ABSTRACT,
            "DOI": "10.1000/ore.1", "PMID": "12345678", "URL": "https://ore.example/1", "keyword": "tin; deep sleep",
        },
        {"id": "x/2", "title": ["Gold dust"], "issued": {"date-parts": [["1999"]]}, "author": [{"literal": "A group"}]},
    ]  # fmt: skip
    found = read(tmp_path, json.dumps(items))
    check_works(found, "JSON")
    assert found.details[1].authors == ("A group",)


def test_references_and_labels(tmp_path):
    rows = [
        {"title": "Tin", "references": ["W1", "free text, 2001; with semicolons"], "included": True},
        {"title": "Ore", "references": 7, "included": False},
        {"title": "Zinc", "references": "W1 W2", "included": None},
    ]
    found = read(tmp_path, json.dumps(rows))
    assert [list(of) for of in found.references] == [["W1", "free text, 2001; with semicolons"], ["7"], ["W1", "W2"]]
    np.testing.assert_array_equal(found.labels, [1, 0, np.nan])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected a JSON object"),
        ("{}", "has no titles"),
        ('{"title": "Tin"', "line 1: expected a JSON object"),
        ('[{"name": "x"}]', r"\(JSON\) has no titles; it has the fields name"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "has no titles|expected a JSON object"),
        ('{"title": ' + "[" * 500 + '"x"' + "]" * 500 + "}", ""),
    ],
)
def test_other_json_is_refused(text, message, tmp_path):
    if message:
        with pytest.raises(InputError, match=message):
            read(tmp_path, text)
    else:
        assert len(read(tmp_path, text)) == 1


def test_lone_surrogates_become_question_marks(tmp_path):
    found = read(tmp_path, '{"title": "Tin \\ud800", "x\\udc00": "y"}\n{"title": "Ore"}\n')
    assert found.titles == ["Tin ?", "Ore"]
