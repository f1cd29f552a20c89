"""L against its definition as a sum over pairs, its halves, and its forms against each other."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corank.base.pairs import Laplacian
from corank.base.pairs import laplacian as query
from corank.base.pairs.losses import weigh_queries
from corank.data.queries import Queries
from corank.data.ranking import RankingData

WEIGHTINGS = ["pairs", "equal", "rows"]


def by_pairs(qid, query_weight, is_in, w, y=None):
    """Σ over pairs of one query (of different y) of c_q w_i w_j (e_i − e_j)(e_i − e_j)ᵀ."""
    n = len(qid)
    L = np.zeros((n, n))
    for q in set(qid.tolist()):
        rows = np.flatnonzero((qid == q) & is_in)
        pairs = [(i, j) for i, j in combinations(rows, 2) if y is None or y[i] != y[j]]
        both_ways = 2 * sum(w[i] * w[j] for i, j in pairs)
        c = {"pairs": 1.0, "equal": 1 / both_ways, "rows": 1 / w[rows].sum()}[query_weight] if both_ways else 0.0
        for i, j in pairs:
            e = np.zeros(n)
            e[i], e[j] = 1, -1
            L += c * w[i] * w[j] * np.outer(e, e)
    return L


problems = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([np.nan, 0.0, 1.0, 2.0]), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    min_size=1, max_size=15,
)  # fmt: skip


@pytest.mark.long
@given(
    problems,
    st.sampled_from(WEIGHTINGS),
    st.sampled_from(["all", "scored", "unscored"]),
    st.booleans(),
    st.booleans(),
)
def test_per_query_equals_its_definition_and_its_halves(table, query_weight, rows, weighted, ties):
    qid, y, w = (np.array(column) for column in zip(*table, strict=True))
    n, rng = len(qid), np.random.default_rng(0)
    weighted = weighted and w.any()
    w = w if weighted else np.ones(n)
    data = RankingData.of(np.zeros((n, 1)), y, qid, w if weighted else None)
    L = Laplacian.per_query(data, query_weight, rows, ties=ties)
    is_in = {"all": np.ones(n, dtype=bool), "scored": ~np.isnan(y), "unscored": np.isnan(y)}[rows]
    expected = by_pairs(qid, query_weight, is_in, w, y if rows == "scored" and not ties else None)
    np.testing.assert_allclose(L.toarray(), expected, atol=1e-12)
    np.testing.assert_allclose(L.pair_weight.sum(), np.trace(expected) / 2, atol=1e-12)
    H, H_t = L.half(np.eye(n)), L.half_t(np.eye(n))
    np.testing.assert_allclose(H_t, H.T, atol=1e-12)
    np.testing.assert_allclose(H.T @ H, expected, atol=1e-12)
    if not weighted:
        np.testing.assert_allclose(H, H.T, atol=1e-12)
    V = rng.standard_normal((n, 3))
    np.testing.assert_allclose(L.quad(V), V.T @ expected @ V, atol=1e-10)
    np.testing.assert_allclose(L.quad(V, V[:, 1]), V.T @ expected @ V[:, 1], atol=1e-10)
    np.testing.assert_allclose(L.quad(sparse.csr_matrix(V)), V.T @ expected @ V, atol=1e-10)
    again = L.half_inverse(L.half(V))
    for first in range(len(L.scale)):
        own = L.order[L.starts[first] : L.starts[first + 1]]
        np.testing.assert_allclose(again[own], V[own] - np.average(V[own], axis=0, weights=w[own]), atol=1e-9)
        np.testing.assert_allclose(L.of_queries(first, first + 1).toarray(), expected[np.ix_(own, own)], atol=1e-12)


@given(problems, st.sampled_from(WEIGHTINGS), st.booleans())
def test_weights_of_queries_fold_into_those_of_rows(table, query_weight, ties):
    qid, y, w = (np.array(column) for column in zip(*table, strict=True))
    data = RankingData.of(np.zeros((len(qid), 1)), y, qid, np.where(w.any(), w, 1.0))
    for rows in ("scored", "unscored"):
        folded = weigh_queries(data, query_weight, ties=ties, rows=rows)
        one, other = (
            Laplacian.per_query(folded, "pairs", rows, ties=ties),
            Laplacian.per_query(data, query_weight, rows, ties=ties),
        )
        np.testing.assert_allclose(one.toarray(), other.toarray(), atol=1e-12)


@pytest.mark.parametrize("query_weight", WEIGHTINGS)
def test_preferences_weigh_by_query_too(query_weight):
    qid, w = np.array([0, 0, 0, 1, 1, 1, 2]), np.array([1, 2, 0.5, 3, 1, 1, 1.0])
    pairs, v = np.array([[0, 1], [1, 2], [0, 1], [5, 3]]), np.array([1.0, 0.5, 2.0, 4.0])
    found = weigh_queries(RankingData.of_pairs(np.zeros((7, 1)), pairs, qid, w, v), query_weight).pair_weight
    own = v * w[pairs].prod(axis=1)
    c = {
        "pairs": np.ones(2),
        "equal": 1 / (2 * np.array([own[:3].sum(), own[3]])),
        # row 4 is named by no preference
        "rows": 1 / np.array([w[:3].sum(), w[3] + w[5]]),
    }[query_weight]
    np.testing.assert_allclose(found, own * c[[0, 0, 0, 1]])


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_the_quadratic_form_is_a_sum_over_queries_and_over_pieces(monkeypatch, as_rows):
    rng = np.random.default_rng(3)
    qid = np.repeat([0, 1, 2, 3], [30, 1, 50, 7])
    X = rng.standard_normal((len(qid), 5)) + 100.0
    whole = Laplacian.per_query(Queries.of(qid, len(qid))).quad(as_rows(X))
    parts = [Laplacian.one_query((qid == q).sum()).quad(X[qid == q]) for q in range(4)]
    np.testing.assert_allclose(whole, sum(parts), rtol=1e-9)
    # pieces of four rows: most queries span several
    monkeypatch.setattr(query, "_PIECE", 20)
    order = rng.permutation(len(qid))
    pieces = Laplacian.per_query(Queries.of(qid[order], len(qid)))
    np.testing.assert_allclose(pieces.quad(as_rows(X[order])), whole, rtol=1e-9)
    np.testing.assert_allclose(pieces.quad(as_rows(X[order]), X[order][:, 0]), whole[:, 0], rtol=1e-9)


def test_all_pairs_of_each_query_as_pairs_or_as_a_graph_are_the_same_laplacian():
    rng = np.random.default_rng(4)
    qid = rng.integers(0, 4, 20)
    w = rng.random(20)
    pairs = np.array([(i, j) for i, j in combinations(range(20), 2) if qid[i] == qid[j]])
    V = rng.standard_normal((20, 3))
    W = np.where(qid[:, None] == qid, np.outer(w, w), 0.0)
    per_query = Laplacian.per_query(Queries.of(qid, 20), weights=w)
    for other in (
        Laplacian.from_pairs(pairs, 20, w[pairs[:, 0]] * w[pairs[:, 1]]),
        Laplacian.from_pairs(pairs[:, ::-1], 20, w[pairs].prod(axis=1)),
        Laplacian.from_graph(W),
        Laplacian.from_graph(sparse.csr_matrix(W)),
    ):
        np.testing.assert_allclose(other @ V, per_query @ V, atol=1e-12)
        np.testing.assert_allclose(other.quad(V), per_query.quad(V), atol=1e-12)
        np.testing.assert_allclose(other.quad(sparse.csr_array(V)), per_query.quad(V), atol=1e-12)
        np.testing.assert_allclose(other.half_t(other.half(V)), other @ V, atol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(0.01, 9)), min_size=1, max_size=20))
def test_from_pairs_is_the_sum_over_pairs(given_pairs):
    pairs = np.array([(a, b) for a, b, _ in given_pairs])
    weights = np.array([w for _, _, w in given_pairs])
    expected = np.zeros((7, 7))
    for (a, b), w in zip(pairs, weights, strict=True):
        e = np.eye(7)[a] - np.eye(7)[b]
        expected += w * np.outer(e, e)
    L = Laplacian.from_pairs(pairs, 7, weights)
    assert pairs.tolist() == [[a, b] for a, b, _ in given_pairs]
    np.testing.assert_allclose(L.toarray(), expected, atol=1e-12)
    v = np.arange(7.0) ** 2
    np.testing.assert_allclose(L.quad(v), weights @ (v[pairs[:, 0]] - v[pairs[:, 1]]) ** 2)
    assert L.half(v).shape == (len(pairs),)


def test_a_graph_laplacian_is_degree_minus_weights():
    rng = np.random.default_rng(5)
    W = sparse.random_array((12, 12), density=0.3, rng=rng)
    W = (W + W.T).tocsr()
    expected = np.diag(W.sum(axis=1)) - W.toarray()
    np.testing.assert_allclose(Laplacian.from_graph(W).toarray(), expected, atol=1e-12)


def test_integer_weights_repeat_rows():
    w = np.array([1, 2, 3])
    V = np.array([4.0, 1.0, -2.0])
    repeated = Laplacian.one_query(6).quad(np.repeat(V, w))
    np.testing.assert_allclose(Laplacian.one_query(3, weights=w).quad(V), repeated)
