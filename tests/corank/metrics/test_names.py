from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.metrics import names
from corank.metrics.names import METRICS, parse_metric


@given(st.sampled_from(sorted(METRICS)), st.integers(1, 1000), st.integers(-3, 5), st.booleans())
def test_a_canonical_name_is_read_back_as_itself(name, cut, value, upper):
    measure = METRICS[name]
    params = ",".join(f"{key}={value}" for key, _ in measure.params)
    text = name + (f"({params})" if params else "") + ("" if measure.cut == "none" else f"@{cut}")
    metric = parse_metric(text.upper() if upper and not params else text)
    assert parse_metric(str(metric)) == metric
    assert metric.cut == (None if measure.cut == "none" else cut)
    assert all(number == value for _, number in metric.params)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("MAP", "AP"), ("mrr@5", "RR@5"), ("ndcg", "nDCG"), ("Rprec", "BEP"), ("k-partite", "kpartite"),
        ("kpartite(alpha=1)", "kpartite"), ("kpartite( alpha = 0 )", "kpartite(alpha=0)"), (" AP() ", "AP"),
        ("AP(rel=0.123456789)@7", "AP(rel=0.123456789)@7"),
        ("recall@10", "R@10"), ("Precision@5", "P@5"), ("average_precision", "AP"), ("RBP(p=0.8)@5", "RBP@5"),
        ("bpref", "Bpref"), ("RBP(rel=2,p=0.5)", "RBP(p=0.5,rel=2)"),
    ],
)  # fmt: skip
def test_aliases_defaults_and_blanks(text, canonical):
    assert str(parse_metric(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", r"'nDGC@10' is not a known metric; did you mean 'nDCG@10'\? Choose one of nDCG\[@k\], MeanNDCG"),
        ("", "'' is not a known metric; choose one of"),
        ("nDCG@", "not a known metric"),
        ("nDCG@10x", "not a known metric"),
        ("nDCG@0", "'nDCG@0' has the depth 0; pass a whole number of rows, 1 or more"),
        ("P", "'P' needs a depth; use P@10"),
        ("AUC@3", "'AUC@3' has a depth, but AUC has none; drop the depth 3"),
        ("AP(relevance=2)", "has the parameter 'relevance', which AP does not have; use rel"),
        ("nDCG(rel=2)", "it has no parameters"),
        ("AP(rel=two)", "has rel='two'; pass a finite number, such as rel=2"),
        ("AP(rel=nan)", "has rel=nan; pass a finite number"),
        ("kpartite(alpha=inf)", "has alpha=inf; pass a finite number"),
    ],
)
def test_invalid_names_raise_with_a_hint(text, message):
    with pytest.raises(InputError, match=message):
        parse_metric(text)


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("recal@10", "R@10"), ("presicion@5", "P@5"), ("sucess@1", "Success@1"), ("b-pref", "Bpref"),
        ("map_score", None), ("spearman", None), ("F1", None), ("ndgc@5", "nDCG@5"), ("kendal", "kendall"),
        ("averageprecision", "AP"), ("disagrement", "disagreement"), ("mrrr", "RR"), ("recal", "R@10"), ("@10", None),
        # by what it means: names of trec_eval and of recommenders
        ("recall_10", "R@10"), ("recall10", "R@10"), ("P_5", "P@5"),
        ("ndcg_cut_10", "nDCG@10"), ("ndcg_at_3", "nDCG@3"),
        ("hits@3", "Success@3"), ("HitRate@3", "Success@3"), ("tau", "kendall"), ("rec@10", "R@10"), ("prec@5", "P@5"),
        ("tau@10", "kendall"), ("pairwise_accuracy", "disagreement"), ("recip_rank", "RR"), ("rec(rel=2)", "R@10"),
    ],
)  # fmt: skip
def test_a_near_name_is_suggested_and_a_far_one_is_not(text, guess):
    with pytest.raises(InputError) as caught:
        parse_metric(text)
    found = re.search(r"did you mean '(.*?)'\?", str(caught.value))
    assert (found and found[1]) == guess


def test_a_name_may_contain_digits(monkeypatch):
    monkeypatch.setitem(names._BY_FOLDED_SPELLING, "f1", METRICS["P"])
    assert parse_metric("F1(rel=2)@3") == parse_metric("P(rel=2)@3")


def test_no_spelling_means_two_metrics():
    spellings = [s.casefold() for measure in METRICS.values() for s in set(map(str.casefold, measure.spellings))]
    assert len(spellings) == len(set(spellings))


def test_names_are_those_of_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    for text in (
        "nDCG@10",
        "AP",
        "AP(rel=2)@5",
        "P@5",
        "R@10",
        "Success@5",
        "RR@3",
        "Bpref",
        "RBP(p=0.5,rel=2)@9",
        "ERR@20",
    ):
        assert parse_metric(str(ir_measures.parse_measure(text))) == parse_metric(text)
