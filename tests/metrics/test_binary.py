from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.metrics import evaluate

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12)


@given(rows, st.integers(-1, 4))
def test_a_threshold_is_the_same_as_grades_cut_there(rows, rel):
    y, scores = np.array(rows, dtype=float).T
    cut = (y >= rel).astype(float)
    for name in ("AP", "P@3", "RR", "BEP", "AUC"):
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
    with pytest.raises(InputError, match=r"AP@2 is not defined by the convention 'sklearn'"):
        evaluate(y, scores, None, "AP@2", convention="sklearn")


def test_a_query_without_relevant_rows_is_skipped_zero_or_one():
    y, scores, qid = [1, 0, 0, 0], [2, 1, 2, 1], [1, 1, 2, 2]
    for name in ("AP", "P@1", "RR", "BEP"):
        means = [evaluate(y, scores, qid, name, convention=c)[name].mean for c in ("corank", "letor4", "lightgbm")]
        assert means == [1.0, 0.5, 1.0]
    assert evaluate(y, scores, qid, "AUC", convention="letor4")["AUC"].n_used == 1
