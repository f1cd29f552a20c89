from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.metrics.names import MEASURES, parse_metric


@given(st.sampled_from(sorted(MEASURES)), st.integers(1, 1000), st.integers(-3, 5), st.booleans())
def test_a_canonical_name_is_read_back_as_itself(name, cut, value, upper):
    measure = MEASURES[name]
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
    ],
)  # fmt: skip
def test_aliases_defaults_and_blanks(text, canonical):
    assert str(parse_metric(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", r"'nDGC@10' is not a known metric; did you mean 'nDCG'\? known are nDCG\[@k\], MeanNDCG"),
        ("", "'' is not a known metric; known are"),
        ("nDCG@", "not a known metric"),
        ("nDCG@10x", "not a known metric"),
        ("nDCG@0", "looks at no row"),
        ("P", "'P' needs a depth; write P@10"),
        ("AUC@3", "'AUC@3' has a depth, but AUC reads whole lists; drop @3"),
        ("AP(relevance=2)", "has the parameter 'relevance', which AP does not know; it takes rel"),
        ("nDCG(rel=2)", "it takes none"),
        ("AP(rel=two)", "has rel='two'; pass a finite number, such as rel=2"),
        ("AP(rel=nan)", "has rel='nan'; pass a finite number"),
        ("kpartite(alpha=inf)", "has alpha='inf'; pass a finite number"),
    ],
)
def test_what_is_wrong_is_said(text, message):
    with pytest.raises(InputError, match=message):
        parse_metric(text)
