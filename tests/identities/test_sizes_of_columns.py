"""Columns of any size: the solution is that of explicit pairs, and no column drowns another."""

from __future__ import annotations

import numpy as np
import pytest

from corank.base.kernels.views import View
from corank.metrics import disagreement_error
from corank.models.rls import CoRankRLS, RankRLS
from helpers.explicit_rls import order_of_folds

RNG = np.random.default_rng(3)
SIZES = np.array([1e7, 1.0, 1e-7, 1.0])
UNIT = RNG.normal(size=(120, 4))
X, QID = UNIT * SIZES, np.repeat(np.arange(12), 10)
Y = np.digitize(UNIT @ [0.5, 1.0, 1.0, -0.5] + RNG.normal(size=120), [-1.0, 0.0, 1.0]).astype(float)


def by_pairs(rows, y, qid, alpha):
    """Weights by the singular values of all pair differences with the penalty as further rows, columns of one size."""
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]
    i, j = np.array(pairs).T
    D, t = (rows[i] - rows[j]) / np.sqrt(len(pairs)), (y[i] - y[j]) / np.sqrt(len(pairs))
    tall = np.vstack([D, np.sqrt(alpha) * np.eye(D.shape[1])])
    size = np.linalg.norm(tall, axis=0)
    return np.linalg.lstsq(tall / size, np.append(t, np.zeros(D.shape[1])), rcond=None)[0] / size


@pytest.mark.parametrize("alpha", [0.0, 1e-18, 1e-9, 1e-3, 1.0, 1e3, 1e16])
def test_every_column_has_the_weight_that_pairs_give_it(alpha):
    expected = by_pairs(X, Y, QID, alpha)
    for how in ({"alpha": alpha}, {"alphas": [alpha], "metric": "disagreement"}):
        for chosen in ({}, {"n_basis": 50, "random_state": 0}):
            model = RankRLS(scale=False, **how, **chosen).fit(X, Y, qid=QID)
            # against what each column says
            np.testing.assert_allclose(model.coef_ * SIZES, expected * SIZES, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
def test_scaled_columns_have_no_size(alpha):
    one, other = (RankRLS(alpha).fit(rows, Y, qid=QID) for rows in (UNIT, X))
    np.testing.assert_allclose(other.coef_ * SIZES, one.coef_, rtol=1e-9)
    assert other.jitter_ == pytest.approx(one.jitter_, rel=1e-6)


def test_leaving_out_is_refitting_whatever_the_sizes():
    alphas = np.array([0.0, 1e-12, 1e-3, 1.0])
    found = RankRLS(alphas=alphas, metric="disagreement", scale=False).fit(X, Y, qid=QID)
    for at, alpha in enumerate(alphas):
        held = np.empty(len(Y))
        for q in range(12):
            out = q == QID
            held[out] = X[out] @ by_pairs(X[~out], Y[~out], QID[~out], alpha)
        assert found.loo_scores_[at] == pytest.approx(disagreement_error(Y, held, QID), abs=1e-12)


@pytest.mark.parametrize("y", [UNIT[:14] @ [0.5, 1, 1, -0.5], np.arange(14) % 3], ids=["pairs", "tenths"])
def test_leaving_out_rows_of_one_query_is_refitting_whatever_the_sizes(y):
    alphas, rows = np.array([0.0, 1e-3, 1.0]), X[:14]
    y = np.asarray(y, dtype=float) + (0.3 * UNIT[14:28, 0] if len(np.unique(y)) > 3 else 0.0)
    found = RankRLS(alphas=alphas, metric="disagreement", scale=False).fit(rows, y)
    order = order_of_folds(rows, y)
    parts = [order[part::7] for part in range(7)]
    if found.alpha_from_.startswith("leave-pair-out"):
        parts = [np.array([i, j]) for i in range(14) for j in range(i)]
    for at, alpha in enumerate(alphas):
        wrong = []
        for out in parts:
            kept = np.delete(np.arange(14), out)
            f = rows @ by_pairs(rows[kept], y[kept], np.zeros(12), alpha)
            wrong += [f[i] < f[j] for i in out for j in out if y[i] > y[j]]
        assert found.loo_scores_[at] == pytest.approx(np.mean(wrong), abs=1e-12)


def test_views_of_columns_of_any_size_are_solved_alike():
    y = np.where(RNG.random(120) < 0.5, np.nan, Y)
    alphas = [1e-9, 1e-3]
    sized = [View([0, 1]), View([2, 3])]
    path = CoRankRLS(sized, 0.0, alphas=alphas, metric="disagreement", scale=False).fit(X, y, qid=QID)
    scored = ~np.isnan(y)
    for view, columns in zip(path.view_coefs_, ([0, 1], [2, 3]), strict=True):
        expected = by_pairs(X[scored][:, columns], y[scored], QID[scored], path.alpha_)
        np.testing.assert_allclose(view[columns] * SIZES[columns], expected * SIZES[columns], rtol=1e-6, atol=1e-9)
    one = CoRankRLS(sized, 0.0, alpha=path.alpha_, scale=False).fit(X, y, qid=QID)
    np.testing.assert_allclose(np.sum(one.view_coefs_, axis=0), np.sum(path.view_coefs_, axis=0), rtol=1e-6)
