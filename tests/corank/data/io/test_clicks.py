import json
import warnings

import numpy as np
import pytest

from corank.data.io.clicks import ClickLog, read_clicks, write_clicks
from corank.data.io.read import read
from corank.errors import InputError, UsageWarning


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


@pytest.mark.parametrize("name", ["log.csv", "log.tsv.gz"])
def test_what_is_written_comes_back(tmp_path, name):
    log = some_log()
    write_clicks(tmp_path / name, log)
    assert same(read_clicks(tmp_path / name), log)
    with pytest.raises(InputError, match="exists"):
        write_clicks(tmp_path / name, log)


def test_ids_that_look_like_formulas_come_back(tmp_path):
    log = ClickLog.of(["=1+1", "'=x"], ["-a", "'-a"], [1, 1], [0, 1])
    write_clicks(tmp_path / "log.csv", log)
    assert "\n0,=1" not in (tmp_path / "log.csv").read_text()
    back = read_clicks(tmp_path / "log.csv")
    assert (back.qid.tolist(), back.docids.tolist()) == (log.qid.tolist(), log.docids.tolist())


def test_ids_have_no_blanks_around_them_as_in_tables_of_rows(tmp_path):
    (tmp_path / "log.csv").write_text("qid, docid, position, clicked\n q, a, 1, 1\n")
    (tmp_path / "rows.csv").write_text("qid, docid, bm25\n q, a, 1\n")
    log, rows = read_clicks(tmp_path / "log.csv"), read(tmp_path / "rows.csv", y=False)
    assert log.find(rows.qid, rows.docids).tolist() == [0]


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
    with pytest.warns(UsageWarning, match="1 clicks were left out, because the query or"):
        log = read_clicks(tmp_path / "events.ndjson", queries=tmp_path / "queries.json")
    assert log.qid.tolist() == ["tea"] * 5
    assert log.docids.tolist() == ["d1", "2", "d3", "d3", "d1"]
    assert log.position.tolist() == [1, 2, 3, 1, 2]
    assert log.clicked.tolist() == [False, True, False, False, True]
    assert log.n_impressions == 2
    assert log.complete is None
    with pytest.raises(InputError, match="no document shown in 7 objects"):
        read_clicks(tmp_path / "events.ndjson")


def test_lists_are_told_apart_without_names():
    log = ClickLog.of([1, 1, 1, 2, 2], list("abaab"), [1, 2, 1, 2, 3], [0] * 5)
    assert log.impression.tolist() == [0, 0, 1, 2, 2]
    assert log.items.tolist() == [0, 1, 0, 2, 3]
    assert log.find(np.array([2, 1]), ["b", "a"]).tolist() == [1, -1, 1, -1, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((["a"], ["x"], [0], [1]), "position is 0 at row 0"),
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
        ("log.json", "[", "line 1: this is not JSON"),
        ("log.json", '{"query_id": 1}\n\n{"hits": {"hits": [}}', "line 3: this is not JSON"),
        ("log.json", "[" * 100_000, "nested too deeply"),
        (
            "log.json",
            '{"error": {"type": "index_not_found_exception"}, "status": 404}',
            "no document shown in 1 objects",
        ),
        ("log.json", '{"hits": {"hits": [3]}}', "expected a JSON object, a query or an event, found 3"),
        ("log.jsonl", '{"query_id": [], "query_response_hit_ids": []}', "query_id is"),
        ("log.jsonl", '{"query_id": "a", "query_response_hit_ids": "b"}', "expected a list of ids"),
        ("log.txt", "", "has an unknown suffix"),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_clicks(tmp_path / name)


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
    with pytest.raises(InputError, match=r"position is 1e\+12 at row 0"):
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


QUERIES = [
    {"query_id": "q1", "user_query": "tea", "query_response_hit_ids": ["d1", "d2", "d3"]},
    {"query_id": "q2", "user_query": "milk", "query_response_hit_ids": ["d3", "d1"]},
]


def event(query, document, action="click", ordinal=None, **more):
    attributes = {"object": {"object_id": document}, "position": {} if ordinal is None else {"ordinal": ordinal}}
    return {"action_name": action, "query_id": query, "event_attributes": attributes, **more}


def answer(objects, total=None, **more):
    """An answer of OpenSearch, as `_search` returns it."""
    hits = [{"_index": "ubi", "_id": str(at), "_source": one, "sort": [at]} for at, one in enumerate(objects)]
    total = {"value": len(hits) if total is None else total, "relation": "eq"}
    return {"took": 3, "timed_out": False, **more, "hits": {"total": total, "max_score": None, "hits": hits}}


WRAPPED = {
    "one answer": lambda all: json.dumps(answer(all)),
    "one answer, indented": lambda all: json.dumps(answer(all), indent=2),
    "pages": lambda all: "\n".join(json.dumps(answer([one], len(all), pit_id="p")) for one in all),
    "pages, indented": lambda all: "\n".join(json.dumps(answer([one], len(all)), indent=1) for one in all),
    "a list of pages": lambda all: json.dumps(
        [answer(all[:2], len(all)), answer(all[2:], len(all)), answer([], len(all))]
    ),
    "several searches": lambda all: json.dumps({"took": 1, "responses": [answer(all[:1]), answer(all[1:])]}),
    "a console": lambda all: (
        f"# GET ubi_queries/_search 200\n{json.dumps(answer(all[:2]))}\n\n# GET ubi_events/_search\n"
        + json.dumps(answer(all[2:]), indent=2)
    ),
    "hits alone": lambda all: "\n".join(json.dumps({"_index": "ubi", "_source": one}) for one in all),
    "objects, indented": lambda all: "\ufeff" + "\r\n".join(json.dumps(one, indent=2) for one in all),
    "an older total": lambda all: json.dumps({"hits": {"total": len(all), "hits": [{"_source": one} for one in all]}}),
}


@pytest.mark.parametrize("form", WRAPPED)
@pytest.mark.parametrize("name", ["log.json", "log.ndjson"])
def test_saved_answers_of_opensearch_are_unwrapped(tmp_path, form, name):
    objects = [*QUERIES, event("q1", "d2"), event("q2", "d1"), event("q2", "d3", "hover")]
    (tmp_path / "plain.jsonl").write_text("\n".join(map(json.dumps, objects)))
    (tmp_path / name).write_bytes(WRAPPED[form](objects).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = read_clicks(tmp_path / name)
    assert same(log, read_clicks(tmp_path / "plain.jsonl"))
    assert log.clicked.tolist() == [False, True, False, False, True]


def test_what_is_left_out_is_counted(tmp_path):
    other = [{"index": {"_index": "ubi_queries"}}, {"took": 3, "aggregations": {}}]
    objects = [*QUERIES, *other, event("q1", "d2"), event("q1", "d9")]
    (tmp_path / "log.json").write_text(json.dumps(answer(objects, total=2000)))
    with pytest.warns(UsageWarning) as found:
        assert read_clicks(tmp_path / "log.json").clicked.sum() == 1
    assert len(found) == 1
    said = str(found[0].message)
    assert "2 of 6 objects of" in said
    assert "are neither a query nor an event" in said
    assert "has 6 hits of a search that found 2000 (fetch all pages with size and search_after)" in said
    assert "1 clicks were left out" in said


def test_ordinals_are_positions_where_the_list_was_not_logged(tmp_path):
    objects = [
        *QUERIES,
        {"query_id": "q3", "user_query": "rice"},
        event("q3", "b", ordinal=4),
        event("q3", "a", "hover", ordinal="2"),
        event("q3", "other page", ordinal=4),
        event("q3", "nowhere"),
        event("q4", "x", "Impression", ordinal=1, user_query="salt"),
        event("q4", "y", "impression", ordinal=2, user_query="salt"),
        event("q4", "y", ordinal=2, user_query="salt"),
        event("q1", "d3", ordinal=0),
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, objects)))
    with pytest.warns(UsageWarning, match="1 of 4 searches have neither query_response_hit_ids nor"):
        log = read_clicks(tmp_path / "log.jsonl")
    rows = list(zip(log.qid, log.docids, log.position, log.clicked, log.complete, strict=True))
    assert rows[5:] == [
        ("rice", "a", 2, False, False), ("rice", "b", 4, True, False),
        ("salt", "x", 1, False, True), ("salt", "y", 2, True, True),
    ]  # fmt: skip
    assert log.clicked[:5].tolist() == [False, False, True, False, False]
    write_clicks(tmp_path / "log.csv", log)
    again = read_clicks(tmp_path / "log.csv")
    assert same(again, log)
    assert again.complete.tolist() == log.complete.tolist()
    (tmp_path / "zero.jsonl").write_text(json.dumps(event("q", "d", ordinal=0, user_query="tea")))
    with pytest.raises(InputError, match="ordinal is 0 in an event of the search"):
        read_clicks(tmp_path / "zero.jsonl")


def test_a_part_of_a_log_keeps_all_columns():
    log = ClickLog.of([1, 1, 2], ["a", "b", "a"], [1, 2, 1], [0, 1, 1], propensity=[1, 0.5, 1], complete=[1, 1, 0])
    part = log.part(np.array([False, True, True]))
    assert part.docids.tolist() == ["b", "a"]
    assert part.propensity.tolist() == [0.5, 1.0]
    assert part.complete.tolist() == [True, False]
    assert part.impression.tolist() == [0, 1]
    assert log.part(np.array([True, True, False])).complete is None


def test_half_characters_of_json_do_not_reach_a_written_log(tmp_path):
    query = {"query_id": "s", "user_query": "\ud83d", "query_response_hit_ids": ["a\udc00", "b"]}
    (tmp_path / "log.jsonl").write_text(json.dumps(query))
    log = read_clicks(tmp_path / "log.jsonl")
    assert (log.qid.tolist(), log.docids.tolist()) == (["?", "?"], ["a?", "b"])
    write_clicks(tmp_path / "again.csv", log)
    assert same(read_clicks(tmp_path / "again.csv"), log)


def test_clicks_on_documents_that_were_not_shown_are_counted_and_left_out(tmp_path):
    query = {"query_id": "q", "user_query": "tin", "query_response_hit_ids": ["a", "b"]}
    clicks = [
        {"action_name": "click", "query_id": "q", "event_attributes": {"object": {"object_id": one}}} for one in "acdd"
    ]
    without = [{"action_name": "click", "query_id": "q"}, {**clicks[0], "query_id": None}]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, [query, *clicks, *without])))
    with pytest.warns(UsageWarning, match="2 clicks were left out, because the query"):
        log = read_clicks(path)
    assert log.docids[log.clicked].tolist() == ["a"]
