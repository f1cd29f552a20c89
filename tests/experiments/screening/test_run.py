from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import minimize

from corank.errors import InputError
from corank_lab.records.writer import write_records
from corank_lab.screening import make_views, simulate
from experiments.datasets.reuters import Stories
from experiments.options import ExperimentOptions
from experiments.screening import pool, reviews, run
from experiments.screening.order import CORANK, RANDOM, SVM, Collection, flags, linear_svm, read_in_order
from experiments.screening.outside import read_outside
from helpers.records import collection

NAMES = ["One_2001", "Two_2002"]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Two reviews and a pool of stories, made of words."""
    folder = tmp_path / "data" / "synergy_reviews"
    folder.mkdir(parents=True)
    for seed, name in enumerate(NAMES):
        records = collection(50, 9, seed=seed)
        write_records(folder / f"{name}.csv", records, records.labels, {})
    monkeypatch.setenv("CORANK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(reviews, "TITLES", dict.fromkeys(NAMES, "topic1 topic2"))
    monkeypatch.setattr(run, "TITLES", reviews.TITLES)
    made = collection(150, 40, references=False)
    topics = [
        frozenset({"main"} if label else {f"other{at % 9}"} | ({"half"} if at % 2 else set()))
        for at, label in enumerate(made.labels)
    ]
    stories = Stories(
        [f"{a} {b}" for a, b in zip(made.titles, made.abstracts, strict=True)], topics, np.zeros(150, bool)
    )
    monkeypatch.setattr(pool, "read_modapte", lambda: stories)
    monkeypatch.setattr(pool, "DEPTHS", (20,))
    pool._prepared.cache_clear()
    yield ExperimentOptions(tmp_path / "out", quick=True)
    pool._prepared.cache_clear()


@pytest.mark.long
def test_a_run_compares_orders_rules_and_starts(small, tmp_path):
    told = []
    report = run.run(ExperimentOptions(small.folder, quick=True, report_done=told.append))
    atd, wss, *_ = report.tables
    assert atd.columns == ("review", RANDOM, SVM, CORANK)
    for at, name in enumerate(NAMES):
        expected = simulate(collection(50, 9, seed=at), 2)
        assert atd.rows[at][0] == name
        assert atd.rows[at][-1] == pytest.approx(np.mean([replay.atd for replay in expected]))
        assert wss.rows[at][-1] == pytest.approx(np.mean([replay.wss95 for replay in expected]))
        assert atd.rows[at][-1] < atd.rows[at][1]
    assert "at random" in report.markdown()
    assert len(told) == len(set(told)) > 20
    # all of it is kept
    assert run.run(ExperimentOptions(small.folder, quick=True)).tables[0] == atd


def test_results_of_asreview_are_read_from_a_file(small, tmp_path):
    lines = [
        {"records": f"{name}.csv.gz", "start": start, "atd": 0.2 + start / 10, "wss95": 0.5, "recall10": 0.4, "last": 1}
        for name in NAMES
        for start in range(2)
    ]
    path = tmp_path / "asreview.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    report = run.run(ExperimentOptions(small.folder, quick=True, asreview=path))
    assert report.tables[0].columns == ("review", RANDOM, "ASReview", CORANK)
    assert report.tables[0].rows[0][2] == pytest.approx(0.25)
    assert any("ahead of ASReview in 4 of 4 starts" in finding for finding in report.findings)
    path.write_text(json.dumps(lines[0]))
    with pytest.raises(InputError, match="no replay of One_2001 from start 1"):
        read_outside(path, NAMES, 2)
    path.write_text('{"records": "One_2001.csv"}\n')
    with pytest.raises(InputError, match=r"line 1: .* is not a replay"):
        read_outside(path, NAMES, 2)


def test_orders_begin_alike_and_read_each_record_once():
    records = collection(50, 9)
    given = Collection(records, make_views(records), records.labels == 1)
    for way in (RANDOM, SVM, CORANK):
        found = flags(read_in_order(way, given, 3)["found"])
        assert (len(found), found.sum()) == (48, 8)
        part = flags(read_in_order(way, given, 3, 10)["found"])
        np.testing.assert_array_equal(part, found[:10])
    replayed = simulate(records, [3])[0].found
    np.testing.assert_array_equal(flags(read_in_order(CORANK, given, 3)["found"]), replayed)


def test_the_linear_svm_weighs_as_asreview_does():
    """Weights from their definition: relevant records 1, all others together a 9.8th of these, then rescaled."""
    records = collection(50, 9)
    views, y = make_views(records), records.labels == 1
    text = views.text_of(np.arange(len(records)))
    rows = [*np.flatnonzero(y)[:4], *np.flatnonzero(~y)[:11]]
    weights = np.array([1.0] * 4 + [4 / 9.8 / 11] * 11)
    weights *= 15 / weights.sum()
    K = (text @ text.T).toarray().astype(float) + 1.0  # the level is penalised
    here, t = K[np.ix_(rows, rows)], np.where(y[rows], 1.0, -1.0)

    def objective(a):
        return a @ here @ a / 2 + 0.11 * weights @ np.maximum(0, 1 - t * (here @ a)) ** 2

    a = minimize(objective, np.zeros(15), tol=1e-10).x
    np.testing.assert_allclose(linear_svm(text, rows, y[rows]), K[:, rows] @ a, atol=2e-3)
