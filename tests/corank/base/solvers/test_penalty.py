from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from corank.base.solvers.penalty import default_alpha
from corank.core.rows.access import ScaledRows
from corank.data.ranking import RankingData
from corank.errors import InputError
from helpers.explicit_pairs import KINDS, QUERY_WEIGHTS, pairs_of, problem, rows_of


@pytest.mark.parametrize("query_weight", QUERY_WEIGHTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_rule_from_every_pair(kind, query_weight):
    data = problem(kind)
    X, (P, _, v) = rows_of(data), pairs_of(data, query_weight)
    A = (X[P[:, 0]] - X[P[:, 1]]).T @ (v[:, None] * (X[P[:, 0]] - X[P[:, 1]]))
    free, queries = 0.0, set(data.queries.codes[P[v > 0, 0]])
    for q in set(data.queries.codes[P[v > 0, 0]]):
        rows = data.scored_rows[data.queries.codes[data.scored_rows] == q]
        weight = data.weights[rows].sum()
        free += weight - 1 if weight > 2 else weight / 2
    want = (10 if len(queries) > 1 else 1) * np.trace(A) / max(free, 4)
    assert default_alpha(data, query_weight) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("query_weight", QUERY_WEIGHTS)
def test_a_weight_of_two_is_the_row_twice_and_order_does_not_matter(kind, query_weight):
    data = problem("scores", 1)
    X, y, qid = rows_of(data), data.y, data.queries.codes
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = default_alpha(RankingData.of(kind(X), y, qid, times.astype(float)), query_weight)
    again = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), times))
    assert weighted == pytest.approx(default_alpha(RankingData.of(kind(X[again]), y[again], qid[again]), query_weight))


def test_many_columns_are_not_punished_for_few_rows():
    X, y = np.random.default_rng(4).normal(size=(5, 30)), np.arange(5)
    twice = np.hstack([X, X])
    assert default_alpha(RankingData.of(X, y)) == pytest.approx(default_alpha(RankingData.of(twice, y)))
    differences = [X[i] - X[j] for i, j in itertools.combinations(range(5), 2)]
    as_kernel = default_alpha(RankingData.of(X, y), n_columns=0)
    assert as_kernel == pytest.approx(np.mean(np.square(differences).sum(axis=1)) / 4)


def test_it_follows_units_and_ignores_offsets_inside_queries():
    data = problem("scores", 2)
    X, y, qid = rows_of(data), data.y, data.queries.codes
    alpha = default_alpha(RankingData.of(X, y, qid))
    assert default_alpha(RankingData.of(100 * X, y, qid)) == pytest.approx(1e4 * alpha)
    assert default_alpha(RankingData.of(X + 1e6 * qid[:, None], y, qid)) == pytest.approx(alpha, rel=1e-6)
    scaled = replace(RankingData.of(X, y, qid), X=ScaledRows(X, np.full(4, 100.0)))
    assert default_alpha(scaled) == pytest.approx(1e4 * alpha)


def test_ties_are_pairs_where_asked():
    X, y = np.array([[0.0], [1.0], [5.0]]), [0, 0, 1]
    assert default_alpha(RankingData.of(X, y)) == pytest.approx((25 + 16) / 2 / 2)
    assert default_alpha(RankingData.of(X, y), ties=True) == pytest.approx((25 + 16 + 1) / 3 / 2)


def test_without_pairs_rows_are_compared_and_without_differences_anything_will_do():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 2))
    alone = RankingData.of(X, rng.normal(size=6), np.arange(6))
    assert default_alpha(alone) == pytest.approx(default_alpha(RankingData.of(X, np.ones(6)), ties=True))
    assert default_alpha(RankingData.of(np.ones((4, 2)), [0, 1, 2, 3])) == 1.0
    with pytest.raises(InputError, match="products overflow"):
        default_alpha(RankingData.of([[1e200], [-1e200]], [0, 1]))
