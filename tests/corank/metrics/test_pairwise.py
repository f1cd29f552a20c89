from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.metrics import evaluate

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=15)


def wrong_pairs(rows, alpha):
    """Σ weight·[wrong + ½ tie] and number of pairs by a loop, for each query in order of appearance."""
    found = {query: [0.0, 0] for _, _, query in rows}
    for (y, s, q), (z, t, p) in itertools.combinations(rows, 2):
        if q == p and y != z:
            right = (y - z) * (s - t)
            found[q][0] += abs(y - z) ** alpha * (0.5 if right == 0 else float(right < 0))
            found[q][1] += 1
    return list(found.values())


@given(rows, st.sampled_from([0, 1, 2, 0.5]))
def test_macro_and_micro_averages_of_the_k_partite_error(rows, alpha):
    y, scores, qid = zip(*rows, strict=True)
    name = f"kpartite(alpha={alpha})"
    found = evaluate(y, scores, qid, name)[name]
    counts = [(loss, pairs) for loss, pairs in wrong_pairs(rows, alpha) if pairs]
    if not counts:
        assert found.n_used == 0
        assert np.isnan([found.mean, found.micro]).all()
        return
    assert found.mean == pytest.approx(np.mean([loss / pairs for loss, pairs in counts]))
    assert found.micro == pytest.approx(sum(loss for loss, _ in counts) / sum(pairs for _, pairs in counts))


@given(rows)
def test_disagreement_is_k_partite_with_alpha_zero_and_turns_around(rows):
    y, scores, qid = map(np.array, zip(*rows, strict=True))
    found = evaluate(y, scores, qid, ["disagreement", "kpartite(alpha=0)"])
    np.testing.assert_array_equal(found["disagreement"].values, found["kpartite(alpha=0)"].values)
    turned = evaluate(y, -scores, qid, "disagreement")["disagreement"]
    np.testing.assert_allclose(turned.values, 1 - found["disagreement"].values)


@pytest.mark.parametrize("convention", ["letor4", "sklearn", "lightgbm"])
def test_queries_without_a_pair_are_left_out_in_every_convention(convention):
    for name in ("disagreement", "kpartite", "kendall", "AUC"):
        found = evaluate([1, 0, 1, 1], [1, 2, 3, 4], [1, 1, 2, 2], name, convention=convention)[name]
        assert (found.n_used, found.n_empty) == (1, 1)


def test_equal_scores_have_no_correlation():
    assert evaluate([0, 1, 2], [5, 5, 5], None, "kendall")["kendall"].mean == 0.0


def test_alpha_must_be_a_number_from_zero():
    with pytest.raises(InputError, match="kpartite has alpha -1; pass a number >= 0"):
        evaluate([0, 1], [0, 1], None, "kpartite(alpha=-1)")


def test_errors_of_rows_by_query_and_over_all_rows():
    y, scores, qid = np.array([1.0, 2.0, 4.0]), np.array([0.0, 4.0, 4.0]), [1, 1, 2]
    found = evaluate(y, scores, qid, ["MSE", "MAE"])
    assert found["MSE"].values.tolist() == [2.5, 0.0]
    assert found["MSE"].micro == pytest.approx(np.mean((y - scores) ** 2))
    assert found["MAE"].micro == pytest.approx(np.mean(np.abs(y - scores)))
    with pytest.raises(InputError, match="need a score for every row"):
        evaluate(y, scores, qid, "MSE", retrieved=[True, False, True])
