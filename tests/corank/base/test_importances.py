"""Importances of linear rankers are |weight| times deviation, relative to their sum."""

from __future__ import annotations

import numpy as np
import pytest

from corank import SPD, LambdaRank, RankRLS, make_ranking

PROBLEM = make_ranking(40, 10, random_state=0)


def deviations(X, qid):
    squares = sum((part - part.mean(axis=0)).__pow__(2).sum(axis=0) for part in (X[qid == q] for q in np.unique(qid)))
    return np.sqrt(squares / len(X))


@pytest.mark.parametrize("make", [SPD, RankRLS, lambda: LambdaRank(n_steps=20, random_state=0)])
def test_importances_are_weights_times_deviations(make):
    model = make().fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)
    expected = np.abs(model.coef_) * deviations(PROBLEM.X, PROBLEM.qid)
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), rtol=1e-9)


def test_an_indicator_counts_for_its_column():
    X = PROBLEM.X.copy()
    X[PROBLEM.y > 1, 3] = np.nan
    model = SPD().fit(X, PROBLEM.y, qid=PROBLEM.qid)
    assert model.feature_importances_.shape == (X.shape[1],)
    parts = np.abs(model.coef_) / model.column_scale_
    expected = np.append(parts[:3], [parts[3] + parts[-1], *parts[4:-1]]) / parts.sum()
    np.testing.assert_allclose(model.feature_importances_, expected)


def test_there_are_none_without_a_scale_or_with_a_kernel():
    for model in (SPD(scale=False), RankRLS(kernel="gaussian")):
        fitted = model.fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)
        assert not hasattr(fitted, "feature_importances_")
