"""PairwiseLabelRanker against one scikit-learn classifier per pair, and votes counted one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from corank.errors import InputError
from corank.models.labels import CalibratedLabelRanker, LabelPreferences, PairwiseLabelRanker, kendall_tau

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
U = X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(90, 4))
RANKS = np.argsort(np.argsort(-U, axis=1), axis=1) + 1


def brute_utilities(levels, x, alpha):
    """
    Votes of a logistic regression for each pair, fitted by scikit-learn.

    levels (n, d): higher is preferred; NaN is not compared, and equal levels are not either.
    """
    d = levels.shape[1]
    votes = np.zeros(d)
    for r, s in combinations(range(d), 2):
        with np.errstate(invalid="ignore"):
            rows = (levels[:, r] > levels[:, s]) | (levels[:, r] < levels[:, s])
            won = levels[rows, r] > levels[rows, s]
        if len(set(won)) < 2:
            p = (won.sum() + 1) / (len(won) + 2)
        else:
            one = LogisticRegression(C=1 / (alpha * rows.sum()), tol=1e-10, max_iter=10_000).fit(X[rows], won)
            p = one.predict_proba(x[None])[0, 1]
        votes[r] += p
        votes[s] += 1 - p
    return votes


@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_utilities_are_the_votes_of_all_pairs(hidden):
    ranks = np.where(RNG.random(RANKS.shape) < hidden, np.nan, RANKS)
    model = PairwiseLabelRanker(0.05, "ranks", scale=False).fit(X, ranks)
    for x in RNG.normal(size=(4, 3)):
        np.testing.assert_allclose(model.utilities(x[None])[0], brute_utilities(-ranks, x, 0.05) - 1.5, atol=1e-5)


def test_the_zero_point_is_one_more_label():
    sets = (U > 0.3).astype(int)
    model = PairwiseLabelRanker(0.05, scale=False).fit(X, sets)
    levels = np.hstack([sets, np.full((90, 1), 0.5)])
    for x in RNG.normal(size=(4, 3)):
        votes = brute_utilities(levels, x, 0.05)
        np.testing.assert_allclose(model.utilities(x[None])[0], votes[:4] - votes[4], atol=1e-5)
        np.testing.assert_array_equal(model.predict(x[None])[0], votes[:4] > votes[4])


def test_pairs_with_one_outcome_or_none_get_the_rule_of_succession():
    pairs = [[(0, 1)]] * 3 + [[(1, 0)], [(0, 2)]]
    model = PairwiseLabelRanker().fit(X[:5], LabelPreferences.from_pairs(pairs, 3))
    p_01 = model.utilities(X[:5])[:, 0] + 1.0 - 2 / 3  # label 0 has the votes p_01 and 2/3
    np.testing.assert_allclose(model.utilities(X[:5])[:, 2], 1 / 3 + 1 / 2 - 1.0)
    assert ((p_01 > 0) & (p_01 < 1)).all()


def test_pairs_learn_what_one_utility_per_label_cannot():
    # linear utilities of labels 0, 1 and of 0, 2 that cross at 0.3 make those of 1 and 2 cross there too, not at -0.3
    x = np.linspace(-1, 1, 60)[:, None]
    ranks = np.where(x < -0.3, [[1, 2, 3]], np.where(x < 0.3, [[1, 3, 2]], [[3, 2, 1]]))
    model = PairwiseLabelRanker(1e-4, "ranks").fit(x, ranks)
    linear = CalibratedLabelRanker(alpha=1e-4, targets="ranks").fit(x, ranks)
    assert kendall_tau(ranks, linear.predict(x)).mean() < 0.96 < kendall_tau(ranks, model.predict(x)).mean()


def test_targets_without_order_are_refused():
    with pytest.raises(InputError, match="orders no two labels in any of the 4 rows"):
        PairwiseLabelRanker(targets="ranks").fit(X[:4], np.ones((4, 3)))
