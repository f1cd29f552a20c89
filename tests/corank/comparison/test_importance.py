from __future__ import annotations

import numpy as np
import pytest

import corank
from corank.comparison import query_importance
from corank.errors import InputError


def by_hand(model, X, y, qid, column, order):
    """Loss of nDCG@10 for one permutation: row i of a query gets the value of row `order[i]` of the same query."""
    other = X.copy()
    other[:, column] = X[order, column]
    value = [corank.evaluate(y, model.predict(one), qid, "nDCG@10")["nDCG@10"].mean for one in (X, other)]
    return value[0] - value[1]


def test_the_mean_over_permutations_is_that_of_all_permutations():
    """Queries of two rows have two orders each; the mean over many draws approaches the mean over all of them."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(6, 2)), np.array([1.0, 0, 1, 0, 0, 1]), np.repeat([3, 1, 2], 2)
    model = corank.RankRLS(kernel="linear", alpha=0.1).fit(X, y, qid=qid)
    exact = []
    for column in range(2):
        swaps = [[a, 1 - a, 2 + b, 3 - b, 4 + c, 5 - c] for a in (0, 1) for b in (0, 1) for c in (0, 1)]
        exact.append(np.mean([by_hand(model, X, y, qid, column, swap) for swap in swaps]))
    found = dict(row[:2] for row in query_importance(model, X, y, qid, n_repeats=400, random_state=0).rows)
    assert found["f1"] == pytest.approx(exact[0], abs=0.03)
    assert found["f2"] == pytest.approx(exact[1], abs=0.03)


def test_a_feature_that_is_constant_inside_queries_has_none():
    problem = corank.make_ranking(n_queries=20, rows_per_query=8, n_latent=2, features_per_view=2, random_state=0)
    X = np.column_stack([problem.X, problem.qid])
    model = corank.RankRLS(kernel="linear").fit(X, problem.y, qid=problem.qid)
    table = query_importance(model, X, problem.y, problem.qid, random_state=0)
    assert dict(row[:2] for row in table.rows)["f5"] == 0
    assert table.rows[0][1] > 0.05
    assert [row[1] for row in table.rows] == sorted((row[1] for row in table.rows), reverse=True)


def test_names_of_columns_metrics_and_seeds():
    pandas = pytest.importorskip("pandas")
    problem = corank.make_ranking(n_queries=20, rows_per_query=8, n_latent=2, features_per_view=2, random_state=0)
    X = pandas.DataFrame(problem.X, columns=["a", "b", "c", "d"])
    model = corank.RankRLS(kernel="linear").fit(X, problem.y, qid=problem.qid)
    first, second = (
        query_importance(model, X, problem.y, problem.qid, metric="disagreement", random_state=1) for _ in range(2)
    )
    assert first == second
    assert {row[0] for row in first.rows} == {"a", "b", "c", "d"}
    assert first.rows[0][1] > 0  # disagreement rises: a loss
    with pytest.raises(ValueError, match="feature names"):
        query_importance(model, X[["b", "a", "c", "d"]], problem.y, problem.qid)
    with pytest.raises(InputError, match="no query has a value of nDCG@10"):
        query_importance(model, X, np.full(len(X), np.nan), problem.qid)
