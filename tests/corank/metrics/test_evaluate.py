from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.metrics import evaluate
from corank.metrics.names import METRICS
from helpers.page_reader import Page

ALL = [f"{name}@3" if measure.cut == "needed" else name for name, measure in METRICS.items()]
rows = st.lists(
    st.tuples(st.one_of(st.just(np.nan), st.integers(0, 3)), st.integers(0, 4), st.sampled_from("abc")),
    min_size=1,
    max_size=20,
)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_names_of_queries_change_nothing(rows, random):
    y, scores, qid = zip(*rows, strict=True)
    found = evaluate(y, scores, qid, ALL)
    shuffled = list(rows)
    random.shuffle(shuffled)
    y, scores, qid = zip(*shuffled, strict=True)
    other = evaluate(y, scores, [(query, 1) for query in qid], ALL)
    for name in ALL:
        ours = dict(zip(found.query_ids.tolist(), found[name].values, strict=True))
        theirs = {query[0]: value for query, value in zip(other.query_ids, other[name].values, strict=True)}
        assert ours.keys() == theirs.keys()
        for query, value in ours.items():
            assert value == pytest.approx(theirs[query], nan_ok=True), name


@given(rows)
def test_unjudged_rows_are_as_if_they_were_not_there(rows):
    y, scores, qid = zip(*rows, strict=True)
    found = evaluate(y, scores, qid, ALL)
    judged = [row for row in rows if not np.isnan(row[0])]
    assert found.n_unjudged_rows == len(rows) - len(judged)
    assert found.n_unjudged_queries == len(set(qid)) - len({query for *_, query in judged})
    if not judged:
        assert all(np.isnan(mean) for mean in found.means.values())
        return
    y, scores, qid = zip(*judged, strict=True)
    for name, result in evaluate(y, scores, qid, ALL).items():
        assert result.mean == pytest.approx(found[name].mean, nan_ok=True)
        assert result.n_used == found[name].n_used
        assert result.n_empty == found[name].n_empty


def test_one_row_one_query_float32_and_lists():
    y, scores = np.array([2], dtype=np.int32), np.array([[0.5]], dtype=np.float32)
    found = evaluate(y, scores, metrics=ALL)
    assert found.n_single_grade == 1
    assert found["nDCG"].mean == found["AP"].mean == found["RR"].mean == 1.0
    assert found["MSE"].mean == 2.25


def test_a_metric_is_found_under_any_spelling():
    found = evaluate([1, 0], [1, 0], metrics=["map", "ndcg@5"])
    assert list(found) == ["AP", "nDCG@5"]
    assert found["MAP"] is found["AP"]
    assert len(found) == 2
    assert found.means == {"AP": 1.0, "nDCG@5": 1.0}
    with pytest.raises(KeyError, match="RR was not evaluated, only AP, nDCG@5"):
        found["RR"]
    with pytest.raises(InputError, match="not a known metric"):
        found["nonsense"]


def test_values_cannot_be_changed():
    found = evaluate([1, 0], [1, 0])
    with pytest.raises(ValueError, match="read-only"):
        found["AP"].values[0] = 2
    with pytest.raises(TypeError):
        found.results["AP"] = None


def test_no_metric_is_an_error():
    with pytest.raises(InputError, match="metrics is empty; pass at least one"):
        evaluate([1], [1], metrics=[])


def test_the_input_is_left_as_it_was():
    y, scores, qid = np.array([1.0, np.nan, 0.0]), np.array([1.0, 2.0, 3.0]), np.array([2, 1, 2])
    copies = y.copy(), scores.copy(), qid.copy()
    evaluate(y, scores, qid, ALL)
    for one, other in zip((y, scores, qid), copies, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_left_out_by_a_ranking_count_against_it():
    found = evaluate([1, 1], [1, 0], None, ["AP", "nDCG", "AUC"], retrieved=[True, False])
    assert found["AP"].mean == 0.5
    assert found["nDCG"].mean == pytest.approx(1 / (1 + 1 / np.log2(3)))


def test_it_becomes_a_frame_of_means_or_of_queries():
    y, scores, qid = [2, 0, 1, 0, 0, 1], [0.9, 0.5, 0.5, 0.1, 0.2, 0.3], ["a", "a", "a", "b", "b", "c"]
    found = evaluate(y, scores, qid, ["nDCG@2", "disagreement"])
    means = found.to_frame()
    assert means["mean"].to_dict() == found.means
    assert means["queries"].to_dict() == {name: one.n_used for name, one in found.items()}
    assert means.loc["disagreement", "micro"] == found["disagreement"].micro
    assert np.isnan(means.loc["nDCG@2", "micro"])
    assert "micro" not in evaluate(y, scores, qid, "nDCG@2").to_frame()  # no metric there has one
    values = found.to_frame(per_query=True)
    assert values.index.tolist() == ["a", "b", "c"]
    for name, one in found.items():
        np.testing.assert_array_equal(values[name], one.values)
        assert values[name].mean() == pytest.approx(one.mean)
    tuples = evaluate(y, scores, [(query, 1) for query in qid], "RR").to_frame(per_query=True)
    assert tuples.index.tolist() == [("a", 1), ("b", 1), ("c", 1)]
    assert tuples.index.nlevels == 1


def test_it_becomes_latex_and_html_with_its_convention():
    found = evaluate([2, 0], [0.9, 0.5], metrics=["nDCG@2", "RR"], convention="letor4")
    page = Page(f"<div>{found._repr_html_()}</div>")
    assert page.tables[0].rows == [["nDCG@2", "1.0000", "1", "0"], ["RR", "1.0000", "1", "0"]]
    assert "convention letor4; 1 queries" in page.text_of("p")[0]
    assert "nDCG@2 & 1.0000 & 1 & 0" in found.to_latex()
    assert r"\caption{convention letor4" in found.to_latex()
