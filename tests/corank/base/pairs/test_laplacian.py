"""Properties of Laplacians besides their identities (tests/identities): types, out=, idle rows, bad input."""

import numpy as np
import pytest
from scipy import sparse

from corank.base.pairs import Laplacian
from corank.base.pairs.losses import drawn_weight, query_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError

QID = np.array([2, 0, 2, 1, 0, 2])
LAPLACIANS = [
    Laplacian.per_query(Queries.of(QID, 6)),
    Laplacian.per_query(Queries.of(QID, 6), "equal", weights=np.arange(6.0)),
    Laplacian.one_query(6),
    Laplacian.from_pairs([[0, 1], [4, 1], [0, 1]], 6),
    Laplacian.from_graph(np.ones((6, 6))),
]


@pytest.mark.parametrize("L", LAPLACIANS)
@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 3), (6, 0)])
def test_out_may_be_fresh_given_or_the_operand(L, shape):
    V = np.random.default_rng(0).standard_normal(shape)
    kept, expected = V.copy(), L.toarray() @ V
    np.testing.assert_allclose(L @ V, expected, atol=1e-12)
    assert (kept == V).all()
    out = np.full(shape, np.nan)
    assert L.apply(V, out=out) is out
    np.testing.assert_allclose(out, expected, atol=1e-12)
    assert L.apply(V, out=V) is V
    np.testing.assert_allclose(V, expected, atol=1e-12)


@pytest.mark.parametrize("L", LAPLACIANS)
def test_float32_stays_float32_and_other_orders_and_types_are_taken(L):
    V = np.random.default_rng(1).standard_normal((6, 2))
    narrow = V.astype(np.float32)
    assert (L @ narrow).dtype == np.float32
    np.testing.assert_allclose(L @ narrow, L @ V, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(L @ np.asfortranarray(V), L @ V)
    assert (L @ np.arange(6)).dtype == np.float64
    assert L.quad(narrow).dtype == np.float64
    assert isinstance(L.quad(V[:, 0]), float)
    assert L.quad(V, V[:, 0]).shape == (2,)
    assert L.quad(V[:, 0], V).shape == (2,)
    assert L.shape == (6, 6)


def test_rows_that_are_compared_with_nobody_give_zero():
    y = [1, np.nan, 2, 5, np.nan, 3]
    data = RankingData.of(np.zeros((6, 1)), y, QID)
    V = np.arange(6.0) ** 2
    scored = Laplacian.per_query(data, rows="scored") @ V
    assert (scored != 0).tolist() == [True, False, True, False, False, True]
    unscored = Laplacian.per_query(data, rows="unscored") @ V
    np.testing.assert_allclose(unscored, [0, -15, 0, 0, 15, 0])
    empty = Laplacian.per_query(Queries.of(np.arange(6), 6), "equal")
    assert not empty.toarray().any()
    assert empty.quad(V) == 0
    weights = np.where(QID == 2, 0.0, 1.0)
    assert not (Laplacian.per_query(data, weights=weights) @ V)[QID == 2].any()
    assert not (Laplacian.per_query(data.weighted(weights)) @ V)[QID == 2].any()
    # the three scored rows of query 2 are of two grades, those of equal score in query 0 of one
    graded = RankingData.of(np.zeros((6, 1)), [1, 4, 2, 5, 4, 1], QID)
    np.testing.assert_allclose(Laplacian.per_query(graded, rows="scored") @ V, [-4, 0, 4 - 21, 0, 0, 21])


def test_an_empty_problem_has_an_empty_laplacian():
    for L in (Laplacian.one_query(0), Laplacian.from_pairs(np.empty((0, 2), dtype=int), 0)):
        assert (L @ np.empty((0, 2))).shape == (0, 2)
        assert L.quad(np.empty((0, 2))).tolist() == [[0, 0], [0, 0]]


def test_queries_of_one_row_have_no_factor():
    assert query_factors([0, 1, 3], "rows").tolist() == [0, 0, 1 / 3]
    assert query_factors([0, 1, 3], "equal").tolist() == [0, 0, 1 / 6]
    assert query_factors([0, 1, 3], "pairs").tolist() == [1, 1, 1]


@pytest.mark.parametrize("query_weight", ["pairs", "rows"])
def test_the_weight_of_drawn_pairs_is_that_of_rows_written_twice(query_weight):
    y, w = np.array([1, 4, np.nan, np.nan, 4, 1]), np.array([1, 2, 3, 1, 0, 2])
    rows = np.repeat(np.arange(6), w)
    once = RankingData.of(np.zeros((6, 1)), y, QID, w)
    twice = RankingData.of(np.zeros((9, 1)), y[rows], QID[rows])
    for chosen in ("scored", "unscored"):
        assert drawn_weight(once, query_weight, chosen) == pytest.approx(drawn_weight(twice, query_weight, chosen))
        both_ways = [
            (query_weight == "pairs") + (query_weight == "rows") / np.sum(QID[kept] == QID[i])
            for kept in [rows[np.isnan(y[rows]) == (chosen == "unscored")]]
            for i in kept
            for j in kept
            if QID[i] == QID[j]
        ]
        assert drawn_weight(once, query_weight, chosen) == pytest.approx(sum(both_ways) / 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda L: Laplacian.per_query(Queries.of(QID, 6), "pair"),
            "query_weight is 'pair'; choose one of pairs, equal",
        ),
        (lambda L: Laplacian.per_query(Queries.of(QID, 6), rows="some"), "rows is 'some'; choose one of all, scored"),
        (lambda L: Laplacian.per_query(Queries.of(QID, 6), rows="scored"), "Queries have no scores; pass RankingData"),
        (lambda L: Laplacian.one_query(3, weights=[1, 2]), r"weights has shape \(2,\) for 3 rows"),
        (lambda L: Laplacian.from_pairs([[0, 6]], 6), "pairs names row 6, but there are rows 0 to 5"),
        (lambda L: Laplacian.from_pairs([[-1, 2]], 6), "pairs names row -1"),
        (lambda L: Laplacian.from_pairs([[0.0, 1.0]], 6), "type float64; pass integers"),
        (lambda L: Laplacian.from_pairs([[0, 1]], 6, [-1.0]), "weights is -1.0 at pair 0"),
        (lambda L: Laplacian.from_graph(np.ones((2, 3))), "square matrix"),
        (lambda L: Laplacian.from_graph([[0, 1], [2, 0]]), "not symmetric"),
        (lambda L: Laplacian.from_graph([[0, -1], [-1, 0]]), "negative"),
        (lambda L: L @ np.zeros(5), r"the operand has shape \(5,\); pass a vector or block of 6 rows"),
        (lambda L: L.quad(np.zeros((5, 2))), r"the operand has shape \(5, 2\)"),
        (lambda L: L @ sparse.eye_array(6).tocsr(), "the operand is sparse"),
        (lambda L: L.apply(np.zeros(6), out=np.zeros(6, dtype=np.float32)), "out has shape"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make(LAPLACIANS[0])
