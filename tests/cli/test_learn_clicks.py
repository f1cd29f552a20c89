"""`corank learn-clicks` learns what the estimators learn, and estimates on queries that it did not learn from."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

import corank
from cli.some_files import files
from corank.clicks import PositionBias, click_pairs, estimate_from_clicks
from corank.data.formats.click_files import read_clicks


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(files(tmp_path))
    return tmp_path


def test_model_and_estimate_are_those_of_the_library(here, says):
    said = json.loads(says("learn-clicks", "rows.csv", "clicks.csv", "--bias", 1, "--clip", 0.2, "-o", "m", "--json"))
    rows, clicks = corank.read("rows.csv", y=None), read_clicks("clicks.csv")
    bias = PositionBias.power(1.0, 8)
    made = click_pairs(clicks, rows.qid, rows.docids, bias=bias, clip=0.2)
    model = corank.SPD().fit(rows.X, pairs=made.pairs, pair_weight=made.pair_weight)
    np.testing.assert_array_equal(corank.load("m").predict(rows.X), model.predict(rows.X))

    # the estimate: a model of four fifths of the queries, judged by clicks on the others
    split = corank.QueryShuffleSplit(1, test_size=0.2, random_state=0)
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
    mine = corank.ClickLog.of(clicks.qid[kept], clicks.docids[kept], clicks.position[kept], clicks.clicked[kept])
    scores = part.predict(rows.X[test])
    how = {"method": "doubly_robust", "bias": bias, "clip": 0.2}
    expected = estimate_from_clicks(mine, scores, rows.qid[test], rows.docids[test], **how)
    assert (new["value"], new["low"], new["high"]) == pytest.approx((expected.value, expected.low, expected.high))
