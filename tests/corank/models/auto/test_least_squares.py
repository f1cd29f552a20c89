"""Least squares without each fold, from shared sums, against RankRLS fitted to the other folds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.models.auto import trials as least_squares
from corank.models.auto.left_out import ValidationFolds
from corank.models.auto.trials import SharedLeastSquares
from corank.models.rls import RankRLS

PROBLEM = make_ranking(12, (2, 9), random_state=3)
X, QID = np.asarray(PROBLEM.X), PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=1)
RNG = np.random.default_rng(0)
PAIRS = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])
PRIOR = RNG.normal(size=len(Y))
WEIGHTS = RNG.integers(1, 4, len(Y)).astype(float)
PROBLEMS = {
    "scores": RankingData.of(X, Y, QID),
    "weights": RankingData.of(X, Y, QID, weights=WEIGHTS),
    "prior": RankingData.of(X, Y, QID).with_prior(PRIOR),
    "preferences": RankingData.of_pairs(X, PAIRS, QID),
}


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "gaussian", "laplacian"])
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_scores_of_a_fold_are_those_of_a_model_fitted_without_it(name, kernel, is_small, monkeypatch):
    monkeypatch.setattr(least_squares, "_SMALL", np.inf if is_small else 0.0)
    data, model = PROBLEMS[name], RankRLS(0.3, kernel, random_state=0)
    left_out = ValidationFolds.of(data, None, np.random.default_rng(0))
    shared = SharedLeastSquares.of(model, left_out, None)
    slopes = np.linspace(0.2, 1.0, left_out.n_folds)
    found = shared.left_out_scores(0.3, slopes)
    for (part, out), slope in zip(left_out.parts(), slopes, strict=True):
        prior = None if data.prior is None else slope * data.prior
        one = RankRLS(0.3, kernel).fit(replace(part, prior=prior))
        expected = one._score_rows(X[left_out.rows[out]])
        # scores of a query are determined up to a constant
        for query in np.unique(left_out.lists[out]):
            own = left_out.lists[out] == query
            gap = (found[out] - expected)[own]
            np.testing.assert_allclose(gap - gap.mean(), 0.0, atol=1e-7)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_the_model_of_all_judgements_is_that_of_fit(name):
    data, model = PROBLEMS[name], RankRLS(0.3, "gaussian", random_state=0)
    shared = SharedLeastSquares.of(model, ValidationFolds.of(data, None, np.random.default_rng(0)), None)
    prior = None if data.prior is None else 0.5 * data.prior
    expected = RankRLS(0.3, "gaussian").fit(replace(data, prior=prior))._score_rows(X)
    np.testing.assert_allclose(shared.fit(model, 0.5).predict(X), expected, atol=1e-7)


def test_parts_of_one_query_and_many_features_are_fitted_one_by_one(monkeypatch):
    one = ValidationFolds.of(RankingData.of(X[:20], np.arange(20.0)), None, np.random.default_rng(0))
    assert SharedLeastSquares.of(RankRLS(0.3), one, None) is None
    monkeypatch.setattr(least_squares, "_MAX_FEATURES", 5)
    several = ValidationFolds.of(PROBLEMS["scores"], None, np.random.default_rng(0))
    assert SharedLeastSquares.of(RankRLS(0.3), several, None) is None
