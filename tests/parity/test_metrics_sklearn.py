"""The convention `sklearn` against scikit-learn itself, and against scipy for Kendall's τ-b."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.metrics import (
    average_precision_score,
    dcg_score,
    mean_absolute_error,
    mean_squared_error,
    ndcg_score,
    roc_auc_score,
)

from corank.metrics import Convention, evaluate

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=15)
IN_ORDER = Convention("sklearn without ties", gain="linear", ties="input", empty="zero")


@given(rows, st.one_of(st.none(), st.integers(1, 20)))
def test_ndcg_and_dcg_with_ties_short_lists_and_no_relevant_row(rows, k):
    y, scores = np.array(rows, float).T
    at = "" if k is None else f"@{k}"
    found = evaluate(y, scores, None, [f"nDCG{at}", f"DCG{at}"], convention="sklearn")
    assert found[f"nDCG{at}"].mean == pytest.approx(ndcg_score([y], [scores], k=k), abs=1e-9)
    assert found[f"DCG{at}"].mean == pytest.approx(dcg_score([y], [scores], k=k), abs=1e-9)


def test_ndcg_without_averaging_ties():
    # scikit-learn's ignore_ties sorts without a promise about ties, so scores differ here
    rng = np.random.default_rng(3)
    y, scores = rng.integers(0, 5, (50, 30)), rng.permutation(1500).reshape(50, 30).astype(float)
    qid = np.repeat(np.arange(50), 30)
    for k in (1, 5, 10, 70, None):
        name = "nDCG" if k is None else f"nDCG@{k}"
        value = evaluate(y.ravel(), scores.ravel(), qid, name, convention=IN_ORDER)[name].mean
        assert value == pytest.approx(ndcg_score(y, scores, k=k, ignore_ties=True), abs=1e-9)


def test_mean_over_queries_counts_empty_ones_as_zero():
    rng = np.random.default_rng(4)
    y, scores = rng.integers(0, 3, (40, 8)), rng.integers(0, 4, (40, 8)).astype(float)
    y[::3] = 0
    qid = np.repeat(np.arange(40), 8)
    found = evaluate(y.ravel(), scores.ravel(), qid, "nDCG@5", convention="sklearn")["nDCG@5"]
    assert found.mean == pytest.approx(ndcg_score(y, scores, k=5), abs=1e-9)
    assert found.n_used == 40
    assert found.n_empty == 14


@given(rows)
def test_average_precision_and_auc(rows):
    y, scores = np.array(rows, float).T
    relevant = y >= 1
    found = evaluate(y, scores, None, ["AP", "AUC", "MSE", "MAE"], convention="sklearn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ap = average_precision_score(relevant, scores)
    assert found["AP"].mean == pytest.approx(ap, abs=1e-9)
    if 0 < relevant.sum() < len(y):
        assert found["AUC"].mean == pytest.approx(roc_auc_score(relevant, scores), abs=1e-9)
    else:
        assert found["AUC"].n_used == 0
    assert found["MSE"].mean == pytest.approx(mean_squared_error(y, scores), abs=1e-9)
    assert found["MAE"].mean == pytest.approx(mean_absolute_error(y, scores), abs=1e-9)


@given(rows)
def test_kendall_tau_b_is_scipys(rows):
    y, scores = np.array(rows, float).T
    found = evaluate(y, scores, None, "kendall")["kendall"]
    expected = kendalltau(y, scores).statistic
    if np.isnan(expected):
        # scipy gives up on constant scores too; here only constant grades leave nothing to measure
        assert np.isnan(found.mean) if len(set(y)) == 1 else found.mean == 0.0
    else:
        assert found.mean == pytest.approx(expected, abs=1e-9)
