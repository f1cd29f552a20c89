from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from corank.errors import InputError
from corank.models.labels import (
    average_precision,
    coverage,
    f1,
    footrule_distance,
    hamming_loss,
    kendall_distance,
    kendall_tau,
    one_error,
    ranking_loss,
    spearman_rho,
    subset_loss,
    top_positions,
)

RNG = np.random.default_rng(0)
A = RNG.integers(1, 5, size=(200, 6)).astype(float)
B = RNG.integers(1, 5, size=(200, 6)).astype(float)
TRUE = RNG.integers(0, 2, size=(200, 6))
TRUE[0], TRUE[1] = 0, 1
SET = RNG.integers(0, 2, size=(200, 6))
SET[0] = 0
U = RNG.integers(0, 8, size=(200, 6)).astype(float)


def test_correlations_are_scipys_with_ties():
    for ours, theirs in ((kendall_tau, stats.kendalltau), (spearman_rho, stats.spearmanr)):
        expected = [theirs(a, b).statistic for a, b in zip(A, B, strict=True)]
        np.testing.assert_allclose(ours(A, B), expected, atol=1e-12)
    assert np.isnan(kendall_tau([[1, 1]], [[1, 2]])).all()
    assert np.isnan(spearman_rho([[1, 1]], [[1, 2]])).all()


def test_distances_are_fagins_definitions():
    pairs = [(i, j) for i in range(6) for j in range(i)]
    for a, b, kendall, footrule in zip(A, B, kendall_distance(A, B), footrule_distance(A, B), strict=True):
        cost = 0.0
        for i, j in pairs:
            if (a[i] == a[j]) != (b[i] == b[j]):
                cost += 0.5
            elif (a[i] - a[j]) * (b[i] - b[j]) < 0:
                cost += 1.0
        assert kendall == pytest.approx(cost / 15)
        assert footrule == pytest.approx(np.abs(stats.rankdata(a) - stats.rankdata(b)).sum() / 18)


def test_distances_are_metrics_between_0_and_1():
    perms = np.array([RNG.permutation(5) + 1.0 for _ in range(30)] + [[1, 1, 1, 2, 2], [1, 1, 1, 1, 1]])
    for distance, largest in ((kendall_distance, 1.0), (footrule_distance, 1.0)):
        D = np.array([distance(np.tile(p, (len(perms), 1)), perms) for p in perms])
        np.testing.assert_allclose(D, D.T)
        np.testing.assert_allclose(np.diag(D), 0.0)
        assert (D[:, None] <= D[:, :, None] + D[None] + 1e-12).all()
        assert distance([[1, 2, 3, 4, 5]], [[5, 4, 3, 2, 1]]).tolist() == [largest]


def test_tau_of_permutations_is_one_less_twice_the_distance():
    a, b = (np.array([RNG.permutation(7) + 1 for _ in range(20)]) for _ in range(2))
    np.testing.assert_allclose(kendall_tau(a, b), 1 - 2 * kendall_distance(a, b))


def test_labels_that_are_not_ranked_are_left_out():
    nan = np.nan
    np.testing.assert_allclose(kendall_distance([[1, 2, nan, 3]], [[3, 1, 2, nan]]), [1.0])
    assert np.isnan(kendall_distance([[1, nan]], [[1, 2]])).all()


def test_top_lists_are_orders_whose_other_labels_are_tied_behind():
    # the list (a) against the list (b): the pair (a, b) is reversed, c is behind one of them in each order
    found = kendall_distance(top_positions([[1, 0, 0]]), top_positions([[0, 1, 0]]))
    assert found.tolist() == [pytest.approx((1 + 0.5 + 0.5) / 3)]
    np.testing.assert_array_equal(top_positions([[0, 2, np.nan, 1]]), [[5, 2, 5, 1]])


def test_sets_are_measured_as_scikit_learn_does():
    assert hamming_loss(TRUE, SET).mean() == pytest.approx(metrics.hamming_loss(TRUE, SET))
    assert subset_loss(TRUE, SET).mean() == pytest.approx(metrics.zero_one_loss(TRUE, SET))
    assert f1(TRUE, SET).mean() == pytest.approx(metrics.f1_score(TRUE, SET, average="samples", zero_division=1.0))


def test_utilities_are_measured_as_scikit_learn_does():
    assert ranking_loss(TRUE, U).mean() == pytest.approx(metrics.label_ranking_loss(TRUE, U))
    assert coverage(TRUE, U).mean() == pytest.approx(metrics.coverage_error(TRUE, U))
    precision = metrics.label_ranking_average_precision_score(TRUE, U)
    assert average_precision(TRUE, U).mean() == pytest.approx(precision)


def test_one_error_asks_whether_the_best_label_is_relevant():
    for i, (a, u) in enumerate(zip(TRUE, U, strict=True)):
        best = np.flatnonzero(u == u.max())
        expected = np.mean(a[best] == 0) if a.any() else np.nan
        np.testing.assert_equal(one_error(TRUE, U)[i], expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kendall_tau([[1, 2]], [[1, 2, 3]]), "the truth has shape"),
        (lambda: f1([[1, 2]], [[1, 0]]), "indicator is 2"),
        (lambda: f1([[1, np.nan]], [[1, 0]]), "contains NaN"),
        (lambda: coverage([[1, 0]], [[np.nan, 0]]), "contains NaN"),
        (lambda: kendall_tau([1, 2], [1, 2]), "a row per example"),
    ],
)
def test_bad_tables_get_a_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
