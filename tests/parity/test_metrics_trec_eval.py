"""The convention `trec_eval` against trec_eval itself, through pytrec_eval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.metrics import evaluate

pytrec_eval = pytest.importorskip("pytrec_eval")
NAMES = {
    "nDCG": "ndcg", "nDCG@1": "ndcg_cut_1", "nDCG@5": "ndcg_cut_5", "nDCG@100": "ndcg_cut_100",
    "AP": "map", "AP@3": "map_cut_3", "P@5": "P_5", "P@100": "P_100", "RR": "recip_rank", "BEP": "Rprec",
    "R@1": "recall_1", "R@5": "recall_5", "R@100": "recall_100",
    "Success@1": "success_1", "Success@5": "success_5", "Bpref": "bpref",
}  # fmt: skip
ASKED = {"ndcg", "ndcg_cut.1,5,100", "map", "map_cut.3", "P.5,100", "recip_rank", "Rprec",
         "recall.1,5,100", "success.1,5", "bpref"}  # fmt: skip

# a row: grade or None (not in the judgements), score or None (not in the run); few scores, so ties abound
row = st.tuples(
    st.one_of(st.none(), st.integers(-1, 3)), st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 1.0 + 1e-9]))
)
queries = st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=4)


@given(queries, st.randoms(use_true_random=False))
def test_every_measure_of_every_query(queries, random):
    judged, run, rows = {}, {}, []
    for q, documents in enumerate(queries):
        for grade, score in documents:
            document = f"d{random.randrange(10**6)}-{len(rows)}"
            if grade is not None:
                judged.setdefault(f"q{q}", {})[document] = grade
            if score is not None:
                run.setdefault(f"q{q}", {})[document] = score
            if grade is not None or score is not None:
                rows.append((f"q{q}", document, grade, score))
    # trec_eval reports queries that are in both files; a query of negative grades only can hang its C code
    judged = {query: grades for query, grades in judged.items() if max(grades.values()) >= 0}
    rows = [entry for entry in rows if entry[0] in judged and entry[0] in run]
    if not rows:
        return
    expected = pytrec_eval.RelevanceEvaluator(judged, ASKED).evaluate(run)
    qid, docids, grades, scores = zip(*rows, strict=True)
    found = evaluate(
        [np.nan if grade is None else grade for grade in grades],
        [0.0 if score is None else score for score in scores],
        qid,
        list(NAMES),
        convention="trec_eval",
        docids=docids,
        retrieved=[score is not None for score in scores],
    )
    assert set(found.query_ids.tolist()) == set(expected)
    for ours, theirs in NAMES.items():
        for query, value in zip(found.query_ids.tolist(), found[ours].values, strict=True):
            assert value == pytest.approx(expected[query][theirs], abs=1e-9), (ours, query)


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_of_relevance(seed):
    rng = np.random.default_rng(seed)
    grades, scores = rng.integers(0, 4, 30), rng.permutation(30).astype(float)
    judged = {"q": {f"d{i}": int(grade) for i, grade in enumerate(grades) if i < 25}}
    run = {"q": {f"d{i}": score for i, score in enumerate(scores)}}
    expected = pytrec_eval.RelevanceEvaluator(judged, {"bpref", "recall.5", "success.1"}, relevance_level=2).evaluate(
        run
    )
    y = np.where(np.arange(30) < 25, grades, np.nan)
    names = {"Bpref(rel=2)": "bpref", "R(rel=2)@5": "recall_5", "Success(rel=2)@1": "success_1"}
    docids = [f"d{i}" for i in range(30)]
    found = evaluate(y, scores, None, list(names), convention="trec_eval", docids=docids)
    for ours, theirs in names.items():
        assert found[ours].mean == pytest.approx(expected["q"][theirs])


def test_scores_are_compared_as_32_bit_numbers():
    judged, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0 + 1e-9, "b": 1.0}}
    assert pytrec_eval.RelevanceEvaluator(judged, {"P.1"}).evaluate(run)["q"]["P_1"] == 0.0
    found = evaluate([1, 0], [1.0 + 1e-9, 1.0], None, "P@1", convention="trec_eval", docids=["a", "b"])
    assert found["P@1"].mean == 0.0
    assert evaluate([1, 0], [1.0 + 1e-9, 1.0], None, "P@1")["P@1"].mean == 1.0
