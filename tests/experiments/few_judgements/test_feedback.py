from __future__ import annotations

import numpy as np
import pytest

from corank.metrics import average_precision
from corank.models.rls import RankRLS
from experiments.datasets.smart import Topics
from experiments.few_judgements import feedback
from experiments.few_judgements.learners import RANKRLS, learners
from experiments.few_judgements.retrieval import BM25Index
from experiments.options import ExperimentOptions
from helpers.texts import made_texts


@pytest.fixture
def topics(monkeypatch):
    def read(name):
        texts, about = made_texts(160, np.random.default_rng(len(name)))
        relevant = np.array([y > 0 for y in about.values()] + [np.arange(160) < 1])
        return Topics(texts, ["tin0", "gold1", "rice2", texts[0]], relevant)

    monkeypatch.setattr(feedback, "read_topics", read)
    feedback._collection.cache_clear()
    yield read
    feedback._collection.cache_clear()


@pytest.mark.filterwarnings("ignore:X has")
def test_judged_documents_are_taken_out_and_a_query_without_another_is_passed_over(topics):
    found = feedback._trial("some", np.random.default_rng(0))
    collection, read = feedback._collection("some"), topics("some")
    bm25 = BM25Index.of(read.texts, read.queries, feedback.K1, feedback.B).scores()
    # the fourth query's only relevant document is found first
    assert np.array(found[feedback.BM25]["values"]).shape == (1, 3)
    for query in range(3):
        order = np.argsort(-bm25[query], kind="stable")
        rest = order[5:]
        value = average_precision(read.relevant[query][rest], bm25[query][rest])
        assert found[feedback.BM25]["values"][0][query] == pytest.approx(value, abs=1e-6)
    assert collection.features["text"].shape[0] == 164


def test_a_ranker_learns_from_query_judged_and_presumed(topics):
    X = np.random.default_rng(0).normal(size=(22, 4))
    y = (np.arange(20) % 3 == 0).astype(float)
    judged, presumed = np.array([0, 1, 2, 3, 4]), np.array([10, 12])
    found = feedback._learnt(RankRLS(scale=False), X, 1, judged, presumed, y)
    rows = [21, 0, 1, 2, 3, 4, 10, 12]
    direct = RankRLS(scale=False).fit(X[rows], [1, 1, 0, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(found, direct.predict(X[:20]))


def test_parameters_are_those_best_on_the_other_collections():
    cells = {
        "a": [{"m": {"points": ["x", "y"], "values": [[0.9, 0.9], [0.1, 0.3]]}}],
        "b": [{"m": {"points": ["x", "y"], "values": [[0.2], [0.3]]}}],
        "c": [{"m": {"points": ["x", "y"], "values": [[0.2], [0.3]]}}],
    }
    values, chosen = feedback._tuned(cells, "a")["m"]
    assert (values.tolist(), chosen) == ([0.1, 0.3], "y")
    assert feedback._tuned(cells, "b")["m"][1] == "x"


@pytest.mark.filterwarnings("ignore:X has")
def test_the_table_has_bars_and_rankers(topics, tmp_path):
    table, findings = feedback.feedback_table(ExperimentOptions(tmp_path), 1, ("one", "other"))
    assert [row[0] for row in table.rows] == [feedback.BM25, feedback.CHANCE, feedback.ROCCHIO, *learners()]
    assert table.rows[2][2] == ""
    # words of their own make topics that feedback finds
    assert min(table.rows[2][1], table.rows[3 + list(learners()).index(RANKRLS)][1]) > table.rows[0][1]
    assert len(findings) == len(learners())
