"""`corank learn-clicks` learns what the estimators learn, and estimates on queries that it did not learn from."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

import corank
from corank.clicks import PositionBias, click_pairs, estimate_from_clicks
from corank.data.io.clicks import read_clicks
from corank.errors import InputError, UsageWarning
from helpers.files import files


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(files(tmp_path))
    return tmp_path


def test_model_and_estimate_are_those_of_the_library(here, says):
    said = json.loads(says("learn-clicks", "rows.csv", "clicks.csv", "--bias", 1, "--clip", 0.2, "-o", "m", "--json"))
    rows, clicks = corank.read("rows.csv", y=False), read_clicks("clicks.csv")
    bias = PositionBias.power(1.0, 8)
    made = click_pairs(clicks, rows.qid, rows.docids, bias=bias, clip=0.2)
    model = corank.SPD().fit(rows.X, pairs=made.pairs, pair_weight=made.pair_weight)
    np.testing.assert_array_equal(corank.load("m").predict(rows), model.predict(rows))

    # the estimate: a model of four fifths of the queries, judged by clicks on the others
    split = corank.data.QueryShuffleSplit(1, test_size=0.2, random_state=0)
    train, test = next(split.split(rows.X, qid=rows.qid))
    made = click_pairs(clicks, rows.qid[train], rows.docids[train], bias=bias, clip=0.2)
    part = corank.SPD().fit(rows.X[train], pairs=made.pairs, pair_weight=made.pair_weight)
    held = {str(query) for query in rows.qid[test]}
    gain = 0.0
    for line in csv.DictReader((here / "clicks.csv").read_text().splitlines()):
        position = int(line["position"])
        if line["qid"] in held and line["clicked"] == "1":
            gain += 1 / max(1 / position, 0.2) / math.log2(1 + position)
    shown, new = said["offline"]
    assert shown == pytest.approx(gain / len(held))
    kept = np.isin(clicks.qid.astype(str), list(held))
    mine = corank.data.ClickLog.of(clicks.qid[kept], clicks.docids[kept], clicks.position[kept], clicks.clicked[kept])
    scores = part.predict(rows.X[test])
    how = {"method": "doubly_robust", "bias": bias, "clip": 0.2}
    expected = estimate_from_clicks(mine, scores, rows.qid[test], rows.docids[test], **how)
    assert new["value"] == pytest.approx(expected.value)
    assert new["low"] is new["high"] is None  # four lists exclude nothing: unbounded, which JSON lacks
    assert (expected.low, expected.high) == (-math.inf, math.inf)


def test_saved_answers_of_opensearch_give_the_same_model(here, says):
    """UBI as `_search` returns it; without the hit lists, positions come from the events."""
    queries, events = [], []
    for line in csv.DictReader((here / "clicks.csv").read_text().splitlines()):
        if line["position"] == "1":
            queries.append({"query_id": f"s{line['qid']}", "user_query": line["qid"], "query_response_hit_ids": []})
        queries[-1]["query_response_hit_ids"].append(line["docid"])
        if line["clicked"] == "1":
            place = {"object": {"object_id": line["docid"]}, "position": {"ordinal": int(line["position"])}}
            events.append(
                {
                    "action_name": "click",
                    "query_id": f"s{line['qid']}",
                    "user_query": line["qid"],
                    "event_attributes": place,
                }
            )
    for name, objects in (("queries.json", queries), ("events.json", [*events, {"_shards": 1}])):
        hits = [{"_source": one} for one in objects]
        (here / name).write_text(json.dumps({"hits": {"total": {"value": len(hits)}, "hits": hits}}, indent=2))
    says("learn-clicks", "rows.csv", "clicks.csv", "--bias", 1, "-o", "table")
    options = ("--bias", 1, "--held-out", 0)
    with pytest.warns(UsageWarning, match=r"1 of .* objects of events.json are neither a"):
        says("learn-clicks", "rows.csv", "events.json", "--queries", "queries.json", *options, "-o", "saved")
    X = corank.read("rows.csv", y=False)
    np.testing.assert_array_equal(corank.load("saved").predict(X), corank.load("table").predict(X))
    said = json.loads(
        says("learn-clicks", "rows.csv", "events.json", "--bias", 1, "--against", "query", "-o", "events", "--json")
    )
    assert said["n_clicks"] == len(events)
    with pytest.raises(InputError, match=r"no list of the log is complete.*such as"):
        says("learn-clicks", "rows.csv", "events.json", "-o", "none")
