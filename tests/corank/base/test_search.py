"""QuerySearchCV against scikit-learn's GridSearchCV with metadata routing on."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from corank import CRR, QueryKFold, QueryScaler, QuerySearchCV, RankRLS, make_ranking
from corank.data import QueryShuffleSplit
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import evaluate, scorer

PROBLEM = make_ranking(n_queries=12, rows_per_query=8, random_state=0)
X, Y, QID = PROBLEM.X + 10 * PROBLEM.qid[:, None], PROBLEM.utility, np.array([f"q{q}" for q in PROBLEM.qid])
PIPELINE = make_pipeline(QueryScaler("zscore"), Ridge())
GRID = {"ridge__alpha": [0.01, 1.0, 1000.0]}


@pytest.mark.thin(5)
@pytest.mark.parametrize("metric", ["kendall", "disagreement"])
@pytest.mark.parametrize("cv", [4, None, QueryShuffleSplit(3, random_state=1)], ids=["folds", "default", "splitter"])
@pytest.mark.parametrize(
    ("estimator", "grid"),
    [(PIPELINE, GRID), (CRR(random_state=0), {"alpha": [0.1, 10.0]}), (Ridge(), {"alpha": [0.1, 10.0]})],
    ids=["pipeline", "ranker", "regressor"],
)
def test_it_is_a_grid_search_with_routing_on(metric, cv, estimator, grid):
    ours = QuerySearchCV(estimator, grid, metric=metric, cv=cv).fit(X, Y, qid=QID)
    folds = cv if isinstance(cv, QueryShuffleSplit) else QueryKFold(cv or 5)
    with sklearn.config_context(enable_metadata_routing=True):
        theirs = GridSearchCV(estimator, grid, scoring=scorer(metric), cv=folds).fit(X, Y, qid=QID)
        best = theirs.best_estimator_
        scores = best.predict(X, qid=QID) if estimator is PIPELINE else best.predict(X)
        score = theirs.score(X, Y, qid=QID)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(ours.predict(X, qid=QID), scores)
    np.testing.assert_array_equal(ours.rank(X, qid=QID), Queries.of(QID, len(QID)).ranks(scores))
    assert ours.score(X, Y, qid=QID) == score
    assert abs(score) == pytest.approx(evaluate(Y, scores, QID, metric)[metric].mean)


@pytest.mark.long
def test_it_leaves_the_configuration_alone_and_works_in_processes():
    before = sklearn.get_config()
    one = QuerySearchCV(PIPELINE, GRID, metric="kendall", cv=3).fit(X, Y, qid=QID)
    two = clone(one).set_params(n_jobs=2).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert sklearn.get_config() == before


def test_rows_that_are_also_columns_are_chosen_with_the_folds():
    K = X @ X.T
    search = QuerySearchCV(RankRLS(kernel="precomputed"), {"alpha": [0.1, 1.0]}, metric="disagreement", cv=np.int64(3))
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_val_score(search, K, Y, params={"qid": QID}, cv=QueryKFold(3), error_score="raise")
    for (train, test), score in zip(QueryKFold(3).split(K, qid=QID), found, strict=True):
        alone = clone(search).fit(K[np.ix_(train, train)], Y[train], qid=QID[train])
        assert alone.score(K[np.ix_(test, train)], Y[test], qid=QID[test]) == pytest.approx(score)


def test_what_is_missing_is_said():
    with pytest.raises(NotFittedError):
        QuerySearchCV(PIPELINE, GRID).predict(X, qid=QID)
    with pytest.raises(InputError, match="QueryKFold needs query ids"):
        QuerySearchCV(PIPELINE, GRID).fit(X, Y)
    with pytest.raises(InputError, match=r"X is a RankingData, .* pass its X, y and qid"):
        QuerySearchCV(PIPELINE, GRID).fit(RankingData.of(X, Y, QID))
    with pytest.raises(InputError, match="y is missing; pass one score per row"):
        QuerySearchCV(PIPELINE, GRID).fit(X, qid=QID)
    with pytest.raises(InputError, match="'nDGC' is not a known metric"):
        QuerySearchCV(PIPELINE, GRID, metric="nDGC").fit(X, Y, qid=QID)
    search = QuerySearchCV(PIPELINE, GRID, metric="AUC(rel=0)").fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="but these rows have no qid"):
        search.predict(X)
    with pytest.raises(InputError, match="but these rows have no qid"):
        search.rank(X)


def test_a_damaged_matrix_is_refused_before_folds_are_cut_from_it():
    class NoFolds(QueryKFold):
        def split(self, *args, **kwargs):
            pytest.fail("scipy would follow the pointers, and end the process")

    rows = sparse.csr_matrix(X)
    rows.indptr[3] = 10**6
    with pytest.raises(InputError, match="X is an invalid CSR matrix: row 2"):
        QuerySearchCV(RankRLS(), {"alpha": [1.0]}, cv=NoFolds(2)).fit(rows, Y, qid=QID)
