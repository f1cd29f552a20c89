from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from corank import ColumnMean, QueryScaler, RankRLS
from corank.base import ResidualRanker
from corank.comparison.plan import coefficients
from corank.comparison.problem import InputRows, make_problem
from corank.data.routing import fit_with_qid

COLUMNS = tuple("abcdef")


@pytest.fixture
def problem(made):
    X = made.X * np.array([1000.0, 1.0, 0.01, 1.0, 1.0, 1.0])
    return make_problem(InputRows(X, made.y, made.qid), None, 3, 0)[0]


def found(problem, model):
    fitted = fit_with_qid(model, problem.X, problem.y, problem.codes)
    return fitted, {one.column: one.weight for one in coefficients(problem, fitted, COLUMNS)}


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (StandardScaler(),),
        (StandardScaler(with_std=False), MinMaxScaler()),
        (MaxAbsScaler(), "passthrough", StandardScaler()),
    ],
)
def test_weights_are_what_a_step_in_the_given_column_adds(problem, steps):
    model, weights = found(problem, make_pipeline(*steps, RankRLS(alpha=1.0)))
    base = problem.X[:1]
    for at, column in enumerate(COLUMNS):
        step = np.zeros((1, 6))
        step[0, at] = problem.X[:, at].std()
        gain = (model.predict(base + step) - model.predict(base)) / step[0, at]
        assert weights[column] == pytest.approx(gain[0], rel=1e-6)


def test_weights_beside_a_prior_are_those_of_what_was_learnt(problem):
    model, weights = found(problem, ResidualRanker(ColumnMean([0]), RankRLS(alpha=1.0)))
    assert weights == dict(zip(COLUMNS, model.ranker_.coef_.tolist(), strict=True))


@pytest.mark.parametrize("step", [MinMaxScaler(clip=True), QueryScaler()])
def test_columns_that_are_no_longer_those_given_have_no_weights(problem, step):
    assert found(problem, make_pipeline(step, RankRLS(alpha=1.0)))[1] == {}
    assert coefficients(problem, None, COLUMNS) == ()
