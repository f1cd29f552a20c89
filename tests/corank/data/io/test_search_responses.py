"""Saved answers of search engines become runs and rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corank.data.io.search_responses import as_collection, as_run, read_responses
from corank.errors import InputError


def hit(name: str, **features: float | None) -> dict:
    entries = [{"name": key} | ({} if value is None else {"value": value}) for key, value in features.items()]
    return {"_id": name, "_score": 1.0, "fields": {"_ltrlog": [{"log_entry1": entries}]}}


ELASTIC = {"hits": {"total": {"value": 2}, "hits": [hit("b", bm25=7.5, age=None), hit("a", bm25=2.5, age=3)]}}
SOLR = {
    "responseHeader": {"params": {"q": "tea"}},
    "response": {"docs": [{"id": "b", "[features]": "bm25=7.5,a=b=1"}, {"id": "a", "[features]": "bm25=2.5,a=b=3"}]},
}
VESPA = {
    "root": {
        "children": [
            {"id": "id:shop:doc::b", "relevance": 2, "fields": {"matchfeatures": {"bm25": 7.5, "vespa.x": 1}}},
            {"id": "id:shop:doc::a", "relevance": 1, "fields": {"matchfeatures": {"bm25": 2.5}}},
        ]
    }
}


def read(folder, *values, name="tea.json", **options):
    (folder / name).write_text("\n".join(map(json.dumps, values)))
    return read_responses(folder / name, **options)


@pytest.mark.parametrize(
    ("answer", "names", "X"),
    [
        (ELASTIC, ["bm25", "age"], [[7.5, np.nan], [2.5, 3]]),
        (SOLR, ["bm25", "a=b"], [[7.5, 1], [2.5, 3]]),
        (VESPA, ["bm25"], [[7.5], [2.5]]),
    ],
)
def test_order_and_features_are_those_of_the_answer(tmp_path, answer, names, X):
    found = read(tmp_path, answer)
    run = as_run(found, "x")
    assert (run.qid.tolist(), run.docids.tolist(), run.scores.tolist()) == (["tea", "tea"], ["b", "a"], [-1, -2])
    rows = as_collection(found, "x")
    assert rows.names == names
    np.testing.assert_array_equal(rows.X, X)
    assert rows.qid.tolist() == ["tea", "tea"]
    assert rows.docids.tolist() == ["b", "a"]
    assert np.isnan(rows.y).all()


def test_queries_are_named_around_the_answer_by_file_or_by_list(tmp_path):
    wrapped = read(tmp_path, {"qid": 7, "response": ELASTIC}, {"query": "x", "response": SOLR}, name="log.jsonl")
    assert [one.query for one in wrapped] == ["7", "x"]
    listed = read(tmp_path, {"responses": [ELASTIC, ELASTIC]}, queries=["one", "two"])
    assert [one.query for one in listed] == ["one", "two"]
    with pytest.raises(InputError, match="2 answers that do not name their queries"):
        read(tmp_path, {"responses": [ELASTIC, ELASTIC]})
    with pytest.raises(InputError, match="found 1 query ids for 2 answers"):
        read(tmp_path, {"responses": [ELASTIC, ELASTIC]}, queries=["one"])
    with pytest.raises(InputError, match="two answers belong to the query 'a'"):
        read(tmp_path, {"responses": [ELASTIC, ELASTIC]}, queries=["a", "a"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"error": {"type": "parsing"}, "status": 400}, "the engine answered with an error"),
        ({"took": 3}, "expected an answer of Elasticsearch"),
        ({"hits": {"hits": [{"_score": 1}]}}, "a document has no _id"),
        (
            {"hits": {"hits": [{"_id": "a", "fields": {"_ltrlog": [{"e": [{"value": 1}]}]}}]}},
            "expected a name and a value",
        ),
        ({"response": {"docs": [{"id": 1, "[features]": "bm25"}]}}, "expected name=value"),
        ({"response": {"docs": [{"id": 1, "[features]": "bm25=x"}]}}, "the feature 'bm25' is 'x'; expected a number"),
    ],
)
def test_bad_answers_get_a_sentence(tmp_path, value, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, value)


def test_answers_without_documents_or_features_are_refused_where_they_are_needed(tmp_path):
    bare = read(tmp_path, {"hits": {"hits": [{"_id": "a"}]}})
    assert as_run(bare, "x").docids.tolist() == ["a"]
    with pytest.raises(InputError, match="'tea' has no logged features"):
        as_collection(bare, "x")
    with pytest.raises(InputError, match="without any document"):
        as_run(read(tmp_path, {"hits": {"hits": []}}), "x")


def test_ids_of_vespa_stay_distinct(tmp_path):
    """What follows the document type may hold colons; documents of a group keep the group."""
    names = ["id:shop:doc::a::x", "id:shop:doc::b::x", "id:shop:doc:g=1:x", "id:shop:doc:g=2:x", "index:shop/0/7"]
    (found,) = read(tmp_path, {"root": {"children": [{"id": name} for name in names]}})
    assert found.documents == ("a::x", "b::x", *names[2:])
