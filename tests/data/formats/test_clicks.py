import json

import numpy as np
import pytest

from corank.data.formats.click_files import read_clicks, write_clicks
from corank.data.formats.click_log import ClickLog
from corank.errors import InputError


def some_log(propensity=None):
    return ClickLog.of(
        ["red shoes", "red shoes", "7", "7", "red shoes"],
        ["a,b", 'say "c"', "a,b", "ü", "x"],
        [1, 2, 2, 1, 1],
        [0, 1, 1, 0, 1],
        impression=["l", "l", "m", "m", "n"],
        propensity=propensity,
    )


def same(one, other):
    key = [
        sorted(zip(log.impression, log.qid, log.docids, log.position, log.clicked, strict=True)) for log in (one, other)
    ]
    return key[0] == key[1]


@pytest.mark.parametrize("name", ["log.csv", "log.tsv.gz", "log.jsonl", "log.json"])
def test_what_is_written_comes_back(tmp_path, name):
    log = some_log()
    write_clicks(tmp_path / name, log)
    assert same(read_clicks(tmp_path / name), log)
    with pytest.raises(InputError, match="exists"):
        write_clicks(tmp_path / name, log)


def test_propensities_stay_in_tables(tmp_path):
    chance = [0.1, 1 / 3, 0.5, 1.0, 0.25]
    write_clicks(tmp_path / "log.csv", some_log(chance))
    assert read_clicks(tmp_path / "log.csv").propensity.tolist() == chance


def test_ubi_as_others_write_it(tmp_path):
    """Two files, one a list wrapped as an index is exported; late, doubled and foreign events."""
    queries = [
        {"query_id": "q1", "user_query": "tea", "query_response_hit_ids": ["d1", 2, "d3"], "client_id": "c"},
        {"query_id": "q2", "user_query": "tea", "query_response_hit_ids": ["d3", "d1"]},
        {"query_id": "q3", "user_query": "no answer kept"},
    ]

    def event(query, document, action="click", **position):
        attributes = {"object": {"object_id": document, "object_id_field": "sku"}, "position": position}
        return {
            "action_name": action,
            "query_id": query,
            "timestamp": "2024-01-01T00:00:00Z",
            "event_attributes": attributes,
        }

    events = [
        event("q2", "d1", ordinal=2),
        event("q1", 2, ordinal={"index": 2}),
        event("q1", 2, ordinal={"index": 2}),
        event("q1", "d3", action="hover", ordinal=3),
        event("q1", "d9", ordinal=1),
        event("q9", "d1", ordinal=1),
        {"action_name": "login", "query_id": "q1"},
    ]
    (tmp_path / "queries.json").write_text(json.dumps([{"_index": "ubi_queries", "_source": one} for one in queries]))
    (tmp_path / "events.ndjson").write_text("\n".join(map(json.dumps, events)))
    log = read_clicks(tmp_path / "events.ndjson", queries=tmp_path / "queries.json")
    assert log.qid.tolist() == ["tea"] * 5
    assert log.docids.tolist() == ["d1", "2", "d3", "d3", "d1"]
    assert log.position.tolist() == [1, 2, 3, 1, 2]
    assert log.clicked.tolist() == [False, True, False, False, True]
    assert log.n_impressions == 2
    with pytest.raises(InputError, match="the lists shown are unknown"):
        read_clicks(tmp_path / "events.ndjson")


def test_two_files_are_written(tmp_path):
    write_clicks(tmp_path / "events.jsonl", some_log(), queries=tmp_path / "queries.jsonl")
    assert all("action_name" in json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines())
    assert same(read_clicks(tmp_path / "events.jsonl", queries=tmp_path / "queries.jsonl"), some_log())


def test_lists_are_told_apart_without_names():
    log = ClickLog.of([1, 1, 1, 2, 2], list("abaab"), [1, 2, 1, 2, 3], [0] * 5)
    assert log.impression.tolist() == [0, 0, 1, 2, 2]
    assert log.items.tolist() == [0, 1, 0, 2, 3]
    assert log.find(np.array([2, 1]), ["b", "a"]).tolist() == [1, -1, 1, -1, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((["a"], ["x"], [0], [1]), "position is 0 at row 0 of the log; pass a position from 1"),
        ((["a"], ["x"], [1.5], [1]), "position is 1.5"),
        ((["a"], ["x"], [1], [2]), "clicked is 2 at row 0"),
        ((["a"], ["x"], [1], [np.nan]), "clicked is nan"),
        ((["a"], ["x", "y"], [1], [0]), "docids has 2 values for 1 query ids"),
        (([], [], [], []), "the log has no rows"),
    ],
)
def test_bad_logs_get_a_sentence(given, message):
    with pytest.raises(InputError, match=message):
        ClickLog.of(*given)


def test_bad_lists_get_a_sentence():
    with pytest.raises(InputError, match="row 1 of the log has query 'b'"):
        ClickLog.of(["a", "b"], ["x", "y"], [1, 2], [0, 0], impression=[1, 1])
    with pytest.raises(InputError, match="row 1 of the log repeats a document of its list"):
        ClickLog.of(["a", "a"], ["x", "x"], [1, 2], [0, 0])
    with pytest.raises(InputError, match="row 1 of the log repeats a position of its list"):
        ClickLog.of(["a", "a"], ["x", "y"], [1, 1], [0, 0], impression=[1, 1])
    with pytest.raises(InputError, match="propensity is 0 at row 0"):
        ClickLog.of(["a"], ["x"], [1], [0], propensity=[0.0])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.csv", "qid,docid,position\n1,2,3\n", "no column 'clicked'"),
        ("log.csv", "qid,docid,position,clicked\n", "no rows"),
        ("log.csv", "qid,docid,position,clicked\n1,2,x,0\n", "line 2: position is 'x'; expected a number"),
        ("log.csv", "qid,docid,position,clicked\n1,2,0,0\n", "log.csv: position is 0"),
        ("log.json", "[1]", "expected a JSON object"),
        ("log.json", "[", "not a list of JSON objects"),
        ("log.jsonl", '{"query_id": [], "query_response_hit_ids": []}', "query_id is"),
        ("log.jsonl", '{"query_id": "a", "query_response_hit_ids": "b"}', "expected a list of ids"),
        ("log.txt", "", "has an unknown suffix"),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_clicks(tmp_path / name)


def test_what_ubi_cannot_keep_is_refused(tmp_path):
    with pytest.raises(InputError, match="gaps between positions"):
        write_clicks(tmp_path / "a.jsonl", ClickLog.of(["a", "a"], ["x", "y"], [1, 3], [0, 1]))
    with pytest.raises(InputError, match="has propensities"):
        write_clicks(tmp_path / "a.jsonl", ClickLog.of(["a"], ["x"], [1], [1], propensity=[0.5]))
    assert not any(tmp_path.iterdir())


def test_events_of_no_search_are_left_out(tmp_path):
    lines = [
        {"query_id": "q", "user_query": "tea", "query_response_hit_ids": ["d"]},
        {"action_name": "page_view", "timestamp": "2024-01-01T00:00:00Z"},
        {"action_name": "click", "query_id": "q", "event_attributes": {"object": {"object_id": "d"}}},
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert read_clicks(tmp_path / "log.jsonl").clicked.tolist() == [True]


def test_ids_and_places_that_are_none():
    with pytest.raises(InputError, match="row 1 has no id"):
        ClickLog.of(["a", None], ["x", "y"], [1, 2], [0, 0])
    with pytest.raises(InputError, match="position is inf"):
        ClickLog.of(["a"], ["x"], [np.inf], [0])
    with pytest.raises(InputError, match=r"position is 1e\+12 at row 0 of the log; pass a position from 1 to 1000000"):
        ClickLog.of(["a"], ["x"], [1e12], [0])


def test_a_second_page_of_a_search_goes_on_where_the_first_ended(tmp_path):
    lines = [
        {"query_id": "q", "user_query": "tea", "query_response_hit_ids": ["a", "b"]},
        {"query_id": "q", "user_query": "tea", "query_response_hit_ids": ["c", "d"]},
        {"action_name": "click", "query_id": "q", "event_attributes": {"object": {"object_id": "c"}}},
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    log = read_clicks(tmp_path / "log.jsonl")
    assert log.docids.tolist() == ["a", "b", "c", "d"]
    assert log.position[log.clicked].tolist() == [3]
