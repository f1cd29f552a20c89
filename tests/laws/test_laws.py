"""What every Ranker promises, run on every Ranker."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank.base.transformers import QueryScaler
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.splits import QueryKFold, mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.metrics import disagreement_error
from helpers.estimators import LAWFUL, over

PROBLEM = make_ranking(12, (2, 9), random_state=3)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=1)


every = over()


# one of each way to learn and predict; what they inherit from `Ranker` is the same
CHECKED = (
    "SPD",
    "RankRLS",
    "RankingPursuit",
    "LambdaRank trees",
    "OrdinalGP",
    "PDGD",
)


@parametrize_with_checks([LAWFUL[name]() for name in CHECKED])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([make() for name, make in LAWFUL.items() if name not in CHECKED])
def test_scikit_learn_accepts_the_others(estimator, check):
    check(estimator)


@every
def test_order_of_rows_and_queries_changes_nothing(make):
    shuffled = np.random.default_rng(0).permutation(len(Y))
    one = make().fit(X, Y, qid=QID).predict(X)
    other = make().fit(X[shuffled], Y[shuffled], qid=QID[shuffled]).predict(X)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@every
def test_names_of_queries_change_nothing(make):
    one = make().fit(X, Y, qid=QID).predict(X)
    other = make().fit(X, Y, qid=[f"query {q}" for q in QID]).predict(X)
    np.testing.assert_array_equal(one, other)


@every
def test_a_constant_added_to_a_query_changes_no_order(make):
    if not make()._learns_from_differences:
        pytest.skip("this ranker also fits the level of the scores")
    shift = np.random.default_rng(0).integers(-3, 4, QID.max() + 1)[QID]
    one = make().fit(X, Y, qid=QID).predict(X)
    other = make().fit(X, Y + shift, qid=QID).predict(X)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@every
def test_a_fitted_model_predicts_by_what_was_fitted(make):
    model = make().fit(X, Y, qid=QID)
    before, ranks, given = model.predict(X), model.rank(X, qid=QID), model.get_params(deep=False)
    for name in given:
        for other in (7, ["precomputed"]) if name == "views" else (None, "precomputed", 7, object()):
            model.set_params(**{name: other})
            np.testing.assert_array_equal(model.predict(X), before, err_msg=f"{name}={other!r}")
            np.testing.assert_array_equal(model.rank(X, qid=QID), ranks, err_msg=f"{name}={other!r}")
        model.set_params(**given)


@pytest.mark.thin(5)
@every
@pytest.mark.parametrize("scale", [1e-200, 1e160, 1e300])
def test_scores_of_any_size_give_the_same_order_or_one_sentence(make, scale):
    model, plain = make(), make().fit(X, Y, qid=QID).predict(X)
    with np.errstate(all="raise", under="ignore"):
        if model._learns_sizes:
            with pytest.raises(InputError, match="too large or too small to be squared"):
                model.fit(X, scale * Y, qid=QID)
        else:
            model.fit(X, scale * Y, qid=QID)
            np.testing.assert_array_equal(model.rank(X, qid=QID), Queries.of(QID, len(QID)).ranks(plain))


@every
def test_rank_is_the_order_of_predict(make):
    model = make().fit(X, Y, qid=QID)
    scores, ranks = model.predict(X), model.rank(X, qid=QID)
    for q in np.unique(QID):
        rows = np.flatnonzero(q == QID)
        assert sorted(ranks[rows]) == list(range(1, len(rows) + 1))
        assert (np.diff(scores[rows][np.argsort(ranks[rows])]) <= 0).all()


@every
def test_score_is_one_minus_disagreement(make):
    model = make().fit(X, Y, qid=QID)
    assert model.score(X, Y, qid=QID) == pytest.approx(1 - disagreement_error(Y, model.predict(X), QID))
    assert model.score(X, PROBLEM.y, qid=QID) > 0.6


@every
def test_dense_and_csr_give_one_model(make):
    if not make()._accepts_sparse:
        with pytest.raises(InputError, match=r"X is sparse, but .* needs dense rows"):
            make().fit(sparse.csr_array(X), Y, qid=QID)
        return
    dense = make().fit(X, Y, qid=QID)
    csr = make().fit(sparse.csr_array(X), Y, qid=QID)
    np.testing.assert_allclose(dense.predict(X), csr.predict(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(dense.predict(X), csr.predict(sparse.csr_array(X)), rtol=1e-6, atol=1e-8)


@every
def test_float32_rows_give_nearly_the_same_model(make):
    one = make().fit(X, Y, qid=QID).predict(X)
    other = make().fit(X.astype(np.float32), Y, qid=QID).predict(X)
    assert other.dtype == np.float64
    np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3)


@every
def test_an_indexed_problem_serves_as_well_as_arrays(make):
    one = make().fit(X, Y, qid=QID).predict(X)
    np.testing.assert_array_equal(one, make().fit(RankingData.of(X, Y, QID)).predict(X))
    with pytest.raises(InputError, match="y, qid or pairs was given with a RankingData"):
        make().fit(RankingData.of(X, Y, QID), Y)


@every
def test_qid_is_routed_by_scikit_learn(make):
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(QueryScaler(), make())
        scores = cross_val_score(pipeline, X, PROBLEM.y, params={"qid": QID}, cv=QueryKFold(2), error_score="raise")
        search = GridSearchCV(
            make(), {}, cv=QueryKFold(2), scoring=corank.metrics.scorer("nDCG@5"), error_score="raise"
        )
        search.fit(X, PROBLEM.y, qid=QID)
    assert np.isfinite(scores).all()
    assert 0 < search.best_score_ <= 1


@every
def test_weight_two_is_the_row_twice(make):
    weights = np.random.default_rng(0).integers(0, 3, len(Y))
    rows = np.repeat(np.arange(len(Y)), weights)
    one = make().fit(X, Y, qid=QID, sample_weight=weights).predict(X)
    other = make().fit(X[rows], Y[rows], qid=QID[rows]).predict(X)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@every
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.update(qid=QID[:-1]), r"qid has \d+ values for \d+ rows of X; pass one query id per row"),
        (lambda d: d.update(qid=np.bincount(QID)), r"look like group sizes, since they sum to"),
        (lambda d: d.update(y=np.full(len(Y), np.nan)), r"y is NaN for all \d+ rows"),
        (lambda d: d.update(y=np.ones(len(Y))), r"no two of the \d+ scored rows share a query and differ in score"),
        (lambda d: d["X"].__setitem__((5, 1), np.inf), r"X contains infinity at row 5, column 1"),
        (lambda d: d["y"].__setitem__(7, np.inf), r"y contains infinity at row 7"),
        (lambda d: d.update(y=Y[:-2]), r"y has \d+ scores for \d+ rows of X"),
    ],
)
def test_bad_input_gets_one_sentence(make, change, sentence):
    given = {"X": X.copy(), "y": Y.copy(), "qid": QID}
    change(given)
    with pytest.raises(InputError, match=sentence):
        make().fit(given["X"], given["y"], qid=given["qid"])
