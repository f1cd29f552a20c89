"""NaN in X is filled, or refused; it never becomes a score that is not a number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import corank
from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from helpers.estimators import over

PROBLEM = make_ranking(12, (2, 9), random_state=3)
QID = PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=1)
X = PROBLEM.X.copy()
X[np.random.default_rng(0).random(len(X)) < 0.3, 2] = np.nan
X[7, 5] = np.nan

filling = over(lambda model: model._missing != "error")
refusing = over(lambda model: model._missing == "error")


@refusing
def test_other_rankers_refuse_missing_values(make):
    for given in ((X, Y, QID), (RankingData.of(X, Y, QID), None, None)):
        with pytest.raises(InputError, match="X contains NaN at row"):
            make().fit(given[0], given[1], qid=given[2])
    with pytest.raises(InputError, match="X contains NaN at row"):
        make().fit(PROBLEM.X, Y, qid=QID).predict(X)


@filling
def test_missing_values_are_filled_and_saved(make, tmp_path):
    model = make().fit(X, Y, qid=QID)
    scores = model.predict(X)
    assert np.isfinite(scores).all()
    assert model.missing_columns_.tolist() == [2, 5]
    corank.save(model, tmp_path / "model")
    np.testing.assert_array_equal(corank.load(tmp_path / "model").predict(X), scores)
    # a column without missing values in fit gets its mean; in trees it counts as zero, as in LightGBM
    one, other = X.copy(), X.copy()
    one[:, 0], other[:, 0] = np.nan, 0.0 if model._missing == "keep" else np.nanmean(X[:, 0])
    np.testing.assert_allclose(model.predict(one), model.predict(other), rtol=1e-12, atol=1e-12)


@filling
def test_infinity_is_refused_and_so_is_nan_where_nothing_was_learnt_about_it_except_by_trees(make):
    bad = X.copy()
    bad[7, 5] = np.inf
    with pytest.raises(InputError, match="X contains infinity at row 7, column 5"):
        make().fit(bad, Y, qid=QID)
    if make()._missing == "keep":
        model = make().fit(PROBLEM.X, Y, qid=QID)
        np.testing.assert_array_equal(model.predict(X), model.predict(np.nan_to_num(X)))
    else:
        with pytest.raises(InputError, match="X contains NaN at row"):
            make().fit(PROBLEM.X, Y, qid=QID).predict(X)
    # a ranker around another one takes its parameter
    name = "missing" if hasattr(make(), "missing") else "ranker__missing"
    with pytest.raises(InputError, match="X contains NaN at row"):
        make().set_params(**{name: "error"}).fit(X, Y, qid=QID)


@filling
def test_filling_by_hand_gives_the_same_order(make):
    """Fill in column means and append the indicator columns; trees, which keep NaN, are left out."""
    model = make()
    if model._missing == "keep":
        pytest.skip("trees need no filling")
    marks = np.isnan(X[:, [2, 5]]).astype(float)
    filled = np.column_stack([np.where(np.isnan(X), np.nanmean(X, axis=0), X), marks])
    np.testing.assert_allclose(
        model.fit(X, Y, qid=QID).predict(X), make().fit(filled, Y, qid=QID).predict(filled), rtol=1e-6, atol=1e-8
    )


@filling
def test_a_problem_and_a_sparse_matrix_teach_the_same(make):
    scores = make().fit(X, Y, qid=QID).predict(X)
    np.testing.assert_array_equal(make().fit(RankingData.of(X, Y, QID)).predict(X), scores)
    if make()._accepts_sparse:
        rows = sparse.csr_array(X)
        np.testing.assert_allclose(make().fit(rows, Y, qid=QID).predict(rows), scores, rtol=1e-6, atol=1e-7)


@filling
def test_a_column_of_one_value_and_gaps_is_used_as_its_indicator(make):
    """Such as "1 or empty": weights stay small, and the order is that of a constant column and an indicator."""
    present = np.random.default_rng(4).random(len(Y)) < 0.4
    rows = np.column_stack([PROBLEM.X, np.where(present, 0.1, np.nan)])
    model = make().fit(rows, Y, qid=QID)
    scores = model.predict(rows)
    assert np.ptp(scores) < 1e3
    for name in ("coef_", "dual_coef_", "column_scale_"):
        assert np.abs(getattr(model, name, 0.0)).max() < 1e4
    if model._missing != "keep":  # trees need no filling
        by_hand = np.column_stack([PROBLEM.X, np.full(len(Y), 0.1), ~present])
        np.testing.assert_allclose(scores, make().fit(by_hand, Y, qid=QID).predict(by_hand), rtol=1e-6, atol=1e-8)
