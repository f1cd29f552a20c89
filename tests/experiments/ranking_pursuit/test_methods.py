"""Scores of each method for all users are those of the library's estimators, user by user."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from corank.models.linear import RankSVM
from corank.models.pursuit import RankingPursuit
from corank.models.rls import RankRLS
from experiments.ranking_pursuit.grams import Grams
from experiments.ranking_pursuit.methods import METHODS, PENALTIES, SVM_PENALTIES


def few(n):
    return np.arange((n + 1) // 2)


def rank_rls(c, n, **how):
    """(y − f)ᵀC(y − f) is n times the mean of half squares over two ratings drawn, be they one and the same."""
    return RankRLS(2.0 * PENALTIES[c] / n, "precomputed", ties=True, **how)


ESTIMATORS = {
    "RLS": lambda c, n: KernelRidge(alpha=PENALTIES[c], kernel="precomputed"),
    "RankRLS": rank_rls,
    "Sparse RankRLS": lambda c, n: rank_rls(c, n, basis=few(n)),
    "RankSVM": lambda c, n: RankSVM(SVM_PENALTIES[c], "precomputed", tol=1e-20),
    "Matching pursuit": lambda c, n: RankingPursuit(c + 1, "precomputed", mix=1.0, fit_intercept=False),
    "Ranking pursuit": lambda c, n: RankingPursuit(c + 1, "precomputed"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_method_scores_as_the_estimator_does(name, drawn):
    grams, users = Grams(drawn, 8.0), drawn.held_out
    scores, shares = METHODS[name].scores(grams, users)
    assert scores.shape == (len(users.test), len(METHODS[name].grid))
    assert shares.shape == (len(users), len(METHODS[name].grid))
    for b in (0, 3, 11):
        own, asked = (slice(starts[b], starts[b + 1]) for starts in (users.train_starts, users.test_starts))
        train, y = users.train[own], users.y[own]
        seen = grams.whole[np.ix_(users.test[asked], train)]
        for c in (1, 5):
            model = ESTIMATORS[name](c, len(train)).fit(grams.whole[np.ix_(train, train)], y)
            np.testing.assert_allclose(scores[asked, c], model.predict(seen), rtol=0, atol=1e-8)
            if name == "RankSVM":
                assert shares[b, c] == len(model.support_) / len(train)
            if name == "Sparse RankRLS":
                assert shares[b, c] == len(few(len(train))) / len(train)


@pytest.mark.parametrize("name", ["Item mean", "Collaborative"])
def test_what_others_like_is_asked_for_each_user(name, drawn, monkeypatch):
    monkeypatch.setattr("experiments.ranking_pursuit.methods._USERS_AT_ONCE", 5)
    model = drawn.item_mean if name == "Item mean" else drawn.collaborative
    users = drawn.held_out
    scores, shares = METHODS[name].scores(Grams(drawn, 8.0), users)
    assert shares.shape == (len(users), 1)
    for b in range(len(users)):
        own, asked = (slice(starts[b], starts[b + 1]) for starts in (users.train_starts, users.test_starts))
        expected = model.predict_user(users.train[own], users.y[own])[users.test[asked]]
        np.testing.assert_allclose(scores[asked, 0], expected, atol=1e-9)
