from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from corank.base.transformers import QueryScaler
from corank.errors import InputError

RNG = np.random.default_rng(0)
QID = RNG.integers(0, 5, 60)
X = RNG.normal(size=(60, 3)) * 100 + 1e6
X[:, 2] = QID


def scales_by_the_rows_of_the_query(estimator):
    return {"check_methods_subset_invariance": "a query is scaled by all its rows, so a part of it scales otherwise"}


@pytest.mark.filterwarnings("ignore:QueryScaler scales all rows as one query")
@parametrize_with_checks([QueryScaler(), QueryScaler("zscore")], expected_failed_checks=scales_by_the_rows_of_the_query)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("method", "reference"), [("minmax", MinMaxScaler), ("zscore", StandardScaler)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equals_scikit_learn_query_by_query(method, reference, dtype):
    rows = X.astype(dtype)
    scaled = QueryScaler(method).fit_transform(rows, qid=QID)
    assert scaled.dtype == dtype
    for q in range(5):
        want = reference().fit_transform(rows[q == QID].astype(np.float64))
        np.testing.assert_allclose(scaled[q == QID], want, rtol=1e-5, atol=1e-6)
    assert (scaled[:, 2] == 0).all()


def test_an_unseen_query_is_scaled_by_itself():
    scaler = QueryScaler().fit(X)
    alone = scaler.transform(X[QID == 3], qid=["new"] * (QID == 3).sum())
    np.testing.assert_array_equal(alone, scaler.transform(X, qid=QID)[QID == 3])


def test_bad_input_gets_one_sentence():
    with pytest.raises(InputError, match="X is sparse, but scaling inside queries does"):
        QueryScaler().fit(sparse.eye_array(3))
    with pytest.raises(InputError, match="method is 'max'; pass 'minmax' or 'zscore'"):
        QueryScaler("max").fit(X)


def test_rows_without_query_ids_are_refused_after_queries_warned_of_when_untold_and_taken_after_one():
    scaler = QueryScaler().fit(X, qid=QID)
    with pytest.raises(InputError, match="fitted with 5 queries"):
        scaler.transform(X[:2])
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(InputError, match="one query id per row"),
    ):
        scaler.transform(X)
    with pytest.warns(UserWarning, match="QueryScaler scales all rows as one") as caught:
        together = QueryScaler().fit_transform(X)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_allclose(together, MinMaxScaler().fit_transform(X), atol=1e-9)
    np.testing.assert_array_equal(scaler.transform(X, qid=np.zeros(60)), together)
    np.testing.assert_array_equal(QueryScaler().fit(X, qid=["all"] * 60).transform(X), together)


def test_a_fit_that_fails_changes_nothing():
    scaler = QueryScaler().fit(X, qid=QID)
    with pytest.raises(InputError):
        scaler.fit(X[:, :2], qid=QID[:7])
    assert (scaler.n_features_in_, scaler.n_queries_) == (3, 5)


def test_a_pipeline_hands_query_ids_on():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(QueryScaler(), Ridge()).fit(X, X[:, 0], qid=QID)
        scores = pipeline.predict(X, qid=QID)
        with pytest.raises(InputError, match="but these rows have no qid"):
            pipeline.predict(X)
    scaled = QueryScaler().fit_transform(X, qid=QID)
    np.testing.assert_array_equal(scores, Ridge().fit(scaled, X[:, 0]).predict(scaled))


def test_columns_keep_their_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    scaler = QueryScaler().set_output(transform="pandas")
    scaled = scaler.fit_transform(frame, qid=QID)
    assert scaled.columns.tolist() == scaler.get_feature_names_out().tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(scaled, QueryScaler().fit_transform(X, qid=QID))
    with pytest.raises(ValueError, match="feature names should match"):
        scaler.transform(frame[["b", "a", "c"]], qid=QID)
