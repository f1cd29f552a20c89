"""ResidualRanker: against a prior made and scaled by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline

import corank
from corank.base import Calibrated, ColumnMean, ResidualRanker
from corank.base.search import QuerySearchCV
from corank.base.transformers import QueryScaler
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.linear import CRR, SPD, RankSVM
from corank.models.rls import RankRLS

PROBLEM = make_ranking(12, (2, 9), random_state=3)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=1)
GOOD = [int(np.argmax(PROBLEM.X.T @ (PROBLEM.utility - PROBLEM.utility.mean())))]
PRIOR = ColumnMean(GOOD).fit(X, qid=QID).predict(X, qid=QID)
PAIRS = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])


def slope(gaps):
    known = PRIOR[PAIRS[:, 0]] - PRIOR[PAIRS[:, 1]]
    return known @ gaps / (known @ known)


@pytest.mark.parametrize("ranker", [RankRLS(), SPD("squared"), CRR(mix=0.5), SPD("logistic"), RankSVM()], ids=str)
@pytest.mark.parametrize("by_pairs", [False, True])
def test_it_is_the_ranker_with_the_scaled_prior(ranker, by_pairs):
    if by_pairs and getattr(ranker, "mix", 0):
        pytest.skip("preferences hold no scores")
    given = {"pairs": PAIRS} if by_pairs else {"y": Y}
    model = ResidualRanker(ColumnMean(GOOD), ranker).fit(X, qid=QID, **given)
    grades = Y
    if isinstance(ranker, RankSVM):
        grades = np.array([np.sum(np.unique(Y[(q == QID) & ~np.isnan(Y)]) < y) for q, y in zip(QID, Y, strict=True)])
    gaps = np.ones(len(PAIRS)) if by_pairs else (grades[PAIRS[:, 0]] - grades[PAIRS[:, 1]]).astype(float)
    assert model.slope_ == pytest.approx(slope(gaps))
    known = model.slope_ * PRIOR
    alone = type(ranker)(**ranker.get_params()).fit(X, qid=QID, prior=known, **given)
    np.testing.assert_allclose(model.predict(X, qid=QID), alone.predict(X, prior=known), rtol=1e-9)
    np.testing.assert_array_equal(model.rank(X, QID), alone.rank(X, QID, prior=known))


def test_a_prior_that_judgements_contradict_is_left_out():
    model = ResidualRanker(ColumnMean(GOOD, [-1]), RankRLS()).fit(X, Y, qid=QID)
    assert model.slope_ == 0.0
    np.testing.assert_allclose(model.predict(X, qid=QID), RankRLS().fit(X, Y, qid=QID).predict(X), rtol=1e-9)


def test_a_prior_that_says_nothing_is_left_out():
    constant = np.hstack([X, np.ones((len(X), 1))])
    assert ResidualRanker(ColumnMean([20]), RankRLS()).fit(constant, Y, qid=QID).slope_ == 0.0


def test_under_a_heavy_penalty_the_prior_decides():
    model = ResidualRanker(ColumnMean(GOOD), RankRLS(1e9)).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X, qid=QID), model.slope_ * PRIOR, atol=1e-6)


def test_another_prior_may_lie_below():
    below = np.random.default_rng(0).normal(size=len(Y))
    model = ResidualRanker(ColumnMean(GOOD), RankRLS()).fit(X, Y, qid=QID, prior=below)
    gaps = (Y - below)[PAIRS[:, 0]] - (Y - below)[PAIRS[:, 1]]
    assert model.slope_ == pytest.approx(max(0.0, slope(gaps)))
    known = model.slope_ * PRIOR + below
    alone = RankRLS().fit(X, Y, qid=QID, prior=known)
    np.testing.assert_allclose(model.predict(X, QID, prior=below), alone.predict(X, prior=known), rtol=1e-9)
    with pytest.raises(InputError, match="prior is missing"):
        model.predict(X, QID)


def test_on_top_of_on_top():
    inner = ResidualRanker(ColumnMean([1]), RankRLS())
    model = ResidualRanker(ColumnMean(GOOD), inner).fit(X, Y, qid=QID)
    assert np.isfinite(model.predict(X, qid=QID)).all()


def test_it_is_saved_with_both_its_rankers(tmp_path):
    model = ResidualRanker(ColumnMean(GOOD), RankRLS(kernel="gaussian", random_state=0)).fit(X, Y, qid=QID)
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X, qid=QID), model.predict(X, qid=QID))


def test_it_stands_in_a_pipeline_and_in_a_search():
    model = ResidualRanker(ColumnMean(GOOD), RankRLS())
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(QueryScaler("zscore"), model).fit(X, PROBLEM.y, qid=QID)
        found = pipeline.predict(X, qid=QID)
    scaled = QueryScaler("zscore").fit_transform(X, qid=QID)
    np.testing.assert_allclose(found, model.fit(scaled, PROBLEM.y, qid=QID).predict(scaled, QID))
    search = QuerySearchCV(model, {"ranker__alpha": [0.1, 10.0]}, cv=3).fit(X, PROBLEM.y, qid=QID)
    assert search.predict(X, QID).shape == Y.shape


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            ResidualRanker(RankRLS(), RankRLS()),
            "prior_ranker is a RankRLS, which learns from judgements; pass a ranker without",
        ),
        (ResidualRanker(ColumnMean([0]), QueryScaler()), "ranker"),
        (ResidualRanker(Calibrated(SPD()), SPD()), "prior_ranker is a Calibrated, which learns from judgements"),
    ],
    ids=str,
)
def test_bad_rankers_get_one_sentence(model, sentence):
    with pytest.raises(InputError, match=sentence):
        model.fit(X, Y, qid=QID)
