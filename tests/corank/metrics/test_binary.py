from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.metrics import bpref, evaluate, rank_biased_precision, recall, success

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12)


@given(rows, st.integers(-1, 4))
def test_a_threshold_is_the_same_as_grades_cut_there(rows, rel):
    y, scores = np.array(rows, dtype=float).T
    cut = (y >= rel).astype(float)
    for name in ("AP", "P@3", "R@3", "Success@2", "RR", "BEP", "Bpref", "RBP@3", "AUC"):
        bare, _, depth = name.partition("@")
        full = f"{bare}(rel={rel})" + (f"@{depth}" if depth else "")
        np.testing.assert_array_equal(
            evaluate(y, scores, None, full)[full].values, evaluate(cut, scores, None, name)[name].values
        )


@given(rows)
def test_at_rank_r_precision_is_recall(rows):
    y, scores = np.array(rows, dtype=float).T
    big_r = int((y >= 1).sum())
    if big_r:
        found = evaluate(y, scores, None, ["BEP", f"P@{big_r}"])
        assert found["BEP"].mean == pytest.approx(found[f"P@{big_r}"].mean)


def test_precision_deeper_than_any_list():
    assert evaluate([1, 0, 1], [3, 2, 1], None, "P@100")["P@100"].mean == pytest.approx(0.02)


def test_average_precision_cut_at_k_divides_as_the_convention_says():
    y, scores = [1, 0, 1, 1], [4, 3, 2, 1]
    assert evaluate(y, scores, None, "AP@2")["AP@2"].mean == pytest.approx(1 / 3)
    assert evaluate(y, scores, None, "AP@2", convention="lightgbm")["AP@2"].mean == pytest.approx(1 / 2)
    with pytest.raises(InputError, match="AP@2 is undefined in the convention"):
        evaluate(y, scores, None, "AP@2", convention="sklearn")


def test_a_query_without_relevant_rows_is_skipped_zero_or_one():
    y, scores, qid = [1, 0, 0, 0], [2, 1, 2, 1], [1, 1, 2, 2]
    for name in ("AP", "P@1", "R@1", "Success@1", "RR", "BEP", "Bpref"):
        means = [evaluate(y, scores, qid, name, convention=c)[name].mean for c in ("corank", "letor4", "lightgbm")]
        assert means == [1.0, 0.5, 1.0]
    assert evaluate(y, scores, qid, "AUC", convention="letor4")["AUC"].n_used == 1


def over_orders(rows, value):
    """Mean of `value`, which reads who is relevant, best first, over every order that keeps to the scores."""
    orders = [
        order for order in itertools.permutations(rows) if all(a[1] >= b[1] for a, b in itertools.pairwise(order))
    ]
    return np.mean([value([grade >= 1 for grade, _ in order]) for order in orders])


few = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6)


@given(few, st.integers(1, 7), st.sampled_from([0.0, 0.3, 0.8, 0.99]))
def test_recall_success_and_rbp_are_expectations_over_the_orders_of_ties(rows, k, p):
    y, scores = np.array(rows, dtype=float).T
    big_r = int((y >= 1).sum())
    if big_r == 0:
        for value in (
            recall(y, scores, k=k),
            success(y, scores, k=k),
            rank_biased_precision(y, scores),
            bpref(y, scores),
        ):
            assert np.isnan(value)
        return
    assert recall(y, scores, k=k) == pytest.approx(over_orders(rows, lambda hits: sum(hits[:k]) / big_r))
    assert success(y, scores, k=k) == pytest.approx(over_orders(rows, lambda hits: float(any(hits[:k]))))
    weights = [(1 - p) * p**i for i in range(len(rows))]

    def biased(hits):
        return sum(weight for weight, hit in zip(weights, hits, strict=True) if hit)

    assert rank_biased_precision(y, scores, p=p) == pytest.approx(over_orders(rows, biased))
    cut = over_orders(rows, lambda hits: biased([hit and i < k for i, hit in enumerate(hits)]))
    assert rank_biased_precision(y, scores, k=k, p=p) == pytest.approx(cut)


def test_rank_biased_precision_of_a_list_longer_than_the_selection():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, 300), rng.permutation(300)
    hits = y[np.argsort(-scores)]
    assert rank_biased_precision(y, scores, p=0.97) == pytest.approx(0.03 * (hits * 0.97 ** np.arange(300)).sum())
    assert rank_biased_precision(y, scores, p=0) == hits[0]
    for p in (-0.1, 1.0):
        with pytest.raises(InputError, match=r"RBP has p .*; pass a number from 0 up to"):
            rank_biased_precision(y, scores, p=p)


def test_bpref_passes_over_unjudged_rows_in_every_convention():
    y, scores = np.array([np.nan, 0, 1, np.nan, 0, 1]), np.arange(6.0, 0, -1)
    # judged rows, best first: no, yes, no, yes; one and then two irrelevant rows above, R = N = 2
    for convention in ("corank", "trec_eval", "letor4", "lightgbm"):
        found = evaluate(y, scores, None, ["Bpref", "Success@2"], convention=convention, docids=list("abcdef"))
        assert found["Bpref"].mean == pytest.approx((1 / 2 + 0) / 2)
        assert found["Success@2"].mean == (0.0 if convention == "trec_eval" else 1.0)
    alone = evaluate([np.nan, 1], [2, 1], ["q", "q"], "Bpref", convention="trec_eval", docids=["a", "b"])
    assert alone["Bpref"].mean == 1.0
