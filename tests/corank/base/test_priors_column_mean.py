"""ColumnMean: against the mean written out, query by query."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank.base import ColumnMean
from corank.data.synthetic import make_ranking
from corank.errors import InputError

PROBLEM = make_ranking(8, (1, 7), random_state=0)
X, QID = PROBLEM.X, PROBLEM.qid


@pytest.mark.thin(5)
@parametrize_with_checks([ColumnMean([0], method=None)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def by_hand(method):
    out = np.zeros(len(X))
    for q in np.unique(QID):
        rows = X[q == QID][:, [3, 1]]
        if method == "zscore":
            spread = rows.std(axis=0)
            rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1)
        if method == "minmax":
            spread = np.ptp(rows, axis=0)
            rows = (rows - rows.min(axis=0)) / np.where(spread > 0, spread, 1)
        out[q == QID] = (rows[:, 0] - rows[:, 1]) / 2
    return out


@pytest.mark.parametrize("method", ["zscore", "minmax", None])
@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array, np.float32], ids=["dense", "csr", "float32"])
@pytest.mark.parametrize("y", [None, np.full(len(X), np.nan), PROBLEM.y], ids=["none", "nan", "scores"])
def test_it_is_the_mean_of_columns_scaled_inside_queries(method, as_given, y):
    rows = as_given(X)
    model = ColumnMean([3, 1], [1, -1], method=method).fit(rows, y, qid=[f"q{q}" for q in QID])
    found = model.predict(rows, qid=QID)
    np.testing.assert_allclose(found, by_hand(method), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.rank(rows, QID), corank.data.queries.Queries.of(QID, len(X)).ranks(found))
    assert model.score(rows, PROBLEM.y, QID) == pytest.approx(
        1 - corank.metrics.disagreement_error(PROBLEM.y, found, QID)
    )


def test_rows_of_several_queries_without_their_ids_are_refused():
    with pytest.raises(InputError, match="but these rows have no qid"):
        ColumnMean([0]).fit(X, qid=QID).predict(X)
    assert ColumnMean([0]).fit(X, qid=QID).predict(X[:1]).tolist() == [0.0]
    assert ColumnMean([0]).fit(X).predict(X).shape == (len(X),)


def test_it_is_saved(tmp_path):
    model = ColumnMean([3, 1], [1, -1]).fit(X, qid=QID)
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X, qid=QID), model.predict(X, qid=QID))


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (ColumnMean([]), "columns is .*; pass one or more column numbers from 0 to 19"),
        (ColumnMean([20]), "columns is .*; pass one or more column numbers from 0 to 19"),
        (ColumnMean([-1]), "columns is .*; pass one or more column numbers from 0 to 19"),
        (ColumnMean([0.5]), "columns is .*; pass one or more column numbers from 0 to 19"),
        (ColumnMean([0, 1], [1]), "signs is .* for 2 columns; pass one finite number for each"),
        (ColumnMean([0], [np.nan]), "signs is .* for 1 columns; pass one finite number for each"),
        (ColumnMean([0], ["up"]), "signs is .* for 1 columns; pass one finite number for each"),
        (ColumnMean("0"), "columns"),
        (ColumnMean([0], method="query"), "method"),
    ],
    ids=str,
)
def test_bad_parameters_get_one_sentence(model, sentence):
    with pytest.raises(InputError, match=sentence):
        model.fit(X, qid=QID)


def test_missing_values_get_the_mean_of_their_column():
    X = np.array([[1.0, np.nan], [3.0, 4.0], [2.0, 8.0]])
    model = ColumnMean([0, 1], method=None).fit(X)
    np.testing.assert_allclose(model.predict(X), [(1.0 + 6.0) / 2, 3.5, 5.0])
    with pytest.raises(InputError, match="from 0 to 1"):
        ColumnMean([2]).fit(X)
    with pytest.raises(InputError, match="X contains NaN"):
        ColumnMean([0], missing="error").fit(X)
