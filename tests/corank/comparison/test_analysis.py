from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.comparison import DataSummary
from corank.comparison.problem import InputRows, make_problem


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_counts(kind):
    X = kind(np.array([[0.0, 5], [-0.0, 5], [1, 5], [2, 5], [2, 5], [7, 5], [0, 5]]))
    y, qid = np.array([0.0, 1, 1, 1, np.nan, np.nan, 2]), np.array(["a", "a", "a", "b", "b", "c", "d"])
    pool = InputRows(X[:3], None, np.array(["a", "x", "x"]))
    problem, _ = make_problem(InputRows(X, y, qid), pool, 2, 0)
    found = DataSummary.of(problem, "some.csv")
    assert (found.name, found.n_rows, found.n_features, found.n_queries) == ("some.csv", 7, 2, 4)
    assert found.grades == ((0.0, 1), (1.0, 3), (2.0, 1))
    assert (found.n_unscored_rows, found.n_unscored_queries) == (2, 1)
    assert (found.n_single_grade_queries, found.n_pool_rows) == (2, 3)


def test_many_different_scores_are_no_grades():
    y = np.linspace(0, 1, 60)
    problem, _ = make_problem(InputRows(np.eye(60), y, None), None, 2, 0)
    assert DataSummary.of(problem, "x").grades == ()
