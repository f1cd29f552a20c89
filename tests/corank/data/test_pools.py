from __future__ import annotations

import numpy as np
import pytest

from corank import RankRLS
from corank.data import PoolPolicy, presumed_negatives
from corank.data.pools import estimated_depths, one_source
from corank.errors import InputError

NAN = np.nan


def test_the_law_of_the_draw_is_uniform_inside_each_judged_query():
    qid = np.array(["a"] * 6 + ["b"] * 4 + ["c"] * 3)
    y = np.array([1, NAN, NAN, NAN, NAN, NAN, 2, 0, NAN, NAN, NAN, NAN, NAN])
    counts = np.zeros(len(y))
    for seed in range(400):
        rows = PoolPolicy("irrelevant", weight=0.25, max_rows=2, random_state=seed).apply(y, qid=qid)
        drawn = np.isnan(y) & ~np.isnan(rows.y)
        assert [drawn[qid == q].sum() for q in "abc"] == [2, 2, 0]
        np.testing.assert_array_equal(rows.weights, np.where(drawn, 0.25, 1.0))
        np.testing.assert_array_equal(rows.y, np.where(drawn, 0.0, y))
        counts += drawn
    # each of five rows in 2 of 5 draws, six deviations wide
    np.testing.assert_allclose(counts[1:6] / 400, 0.4, atol=6 * np.sqrt(0.24 / 400))


def test_rows_that_agree_are_learnt_from_as_if_lightly_judged():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.full(30, NAN)
    y[:3] = 1.0
    rows = PoolPolicy("irrelevant", weight=0.2, max_rows=10, random_state=1).apply(y)
    model = RankRLS(alpha=0.5, scale=False).fit(X, rows.y, sample_weight=rows.weights)
    drawn = np.flatnonzero(rows.weights < 1)
    # each judged row against each presumed one, explicitly: all such pairs weigh the same
    D = (X[:3, None] - X[None, drawn]).reshape(-1, 4)
    w = np.linalg.solve(D.T @ D / len(D) + 0.5 * np.eye(4), D.mean(axis=0))
    np.testing.assert_allclose(model.coef_, w, rtol=1e-10)


def test_the_old_name_warns_and_gives_the_same_rows():
    y = np.array([1, NAN, NAN, NAN])
    with pytest.warns(FutureWarning, match="PoolPolicy"):
        scores, weights = presumed_negatives(y, n=2, weight=0.5, random_state=3)
    rows = PoolPolicy("irrelevant", weight=0.5, max_rows=2, random_state=3).apply(y)
    np.testing.assert_array_equal(scores, rows.y)
    np.testing.assert_array_equal(weights, rows.weights)


RANKS = np.array([[1, 3], [2, 0], [3, 1], [0, 2], [1, 0], [0, 1]])
QID = ["a", "a", "a", "a", "b", "b"]
GRADES = np.array([1.0, NAN, NAN, NAN, 1.0, NAN])


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (2, [1, 0, 0, 0, 1, 0]),
        ({"bm25": 2, "vectors": 0}, [1, 0, NAN, NAN, 1, NAN]),
        ([("a", "vectors", 1), ("b", "bm25", 5)], [1, NAN, 0, NAN, 1, NAN]),
    ],
)
def test_unjudged_rows_are_irrelevant_where_the_pool_reached_them(pool, expected):
    rows = PoolPolicy("pooled", pool=pool).apply(GRADES, qid=QID, ranks=RANKS, retrievers=["bm25", "vectors"])
    np.testing.assert_array_equal(rows.y, expected)
    assert "given" in rows.sentence


def test_inverse_probabilities_give_unbiased_sums_of_grades():
    rng = np.random.default_rng(0)
    truth, ranks = rng.integers(0, 3, 40).astype(float), np.column_stack([np.arange(1, 41), rng.permutation(40) + 1])
    pool = [("q", "x", 40, 0.5), ("q", "y", 20, 0.25)]
    chance = 1 - 0.5 * np.where(ranks[:, 1] <= 20, 0.75, 1.0)
    sums = []
    for _ in range(2000):
        y = np.where(rng.random(40) < chance, truth, NAN)
        rows = PoolPolicy("pooled", pool=pool).apply(y, qid=["q"] * 40, ranks=ranks, retrievers=["x", "y"])
        np.testing.assert_array_equal(np.isnan(rows.y), np.isnan(y))  # rows that were not drawn stay unjudged
        sums.append(np.nansum(rows.y * rows.weights))
    assert abs(np.mean(sums) - truth.sum()) < 5 * np.std(sums) / np.sqrt(len(sums))


def test_depths_and_the_one_source_are_found():
    rng = np.random.default_rng(1)
    ranks = np.column_stack(
        [np.tile(np.arange(1, 51), 20), np.concatenate([rng.permutation(50) + 1 for _ in range(20)])]
    )
    y = np.where(ranks[:, 0] <= 10, 1.0, NAN)
    assert estimated_depths(ranks, ~np.isnan(y), np.full(1000, True))[0] == 10
    source = one_source(ranks, y)
    assert (source.retriever, source.depth, source.n_judged) == (0, 10, 200)
    assert source.sentence(["bm25", "vectors"]).startswith("all 200 judged documents come from the top 10 of bm25;")
    assert one_source(ranks, np.where((ranks <= 10).any(axis=1), 1.0, NAN)) is None


@pytest.mark.parametrize(
    ("policy", "given", "words"),
    [
        ({"unjudged": "irrelevant"}, {"y": [0.0, NAN]}, "no judged row has a grade above 0"),
        ({"unjudged": "pooled"}, {"y": [1.0, NAN]}, "needs ranks"),
        ({"pool": {"x": 1}}, {"y": [1.0, NAN], "ranks": [[1, 0], [2, 1]]}, "names the retriever 'x'"),
        ({"pool": {"r1": 1}}, {"y": [1.0, NAN], "ranks": [[1, 0], [2, 1]]}, "no depth for 'r2'"),
        ({"pool": -1}, {"y": [1.0, NAN], "ranks": [[1], [2]]}, "depth -1"),
        ({"pool": [("q", "r1", 2, 0.0)]}, {"y": [1.0], "qid": ["q"], "ranks": [[1]]}, "probability 0"),
        ({"pool": [("p", "r1", 2)]}, {"y": [1.0], "qid": ["q"], "ranks": [[1]]}, "none of the queries"),
        ({"pool": "top"}, {"y": [1.0], "ranks": [[1]]}, "pool must be"),
        ({"pool": 2}, {"y": [1.0], "ranks": [[1.5]]}, "not a rank"),
    ],
)
def test_what_is_not_understood_is_refused(policy, given, words):
    with pytest.raises(InputError, match=words):
        PoolPolicy(**policy).apply(**given)


def test_parameters_are_checked():
    with pytest.raises(InputError, match="weight is 0"):
        PoolPolicy(weight=0)
    with pytest.raises(InputError, match="unjudged is 'zero'"):
        PoolPolicy("zero")
