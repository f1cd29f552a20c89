from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

from corank.base.pairs import Laplacian, Moments
from corank.base.pairs import moments as walk
from corank.base.pairs.losses import weigh_queries
from corank.base.pairs.moments import dense, pair_squares
from corank.core.rows.access import ScaledRows
from corank.data.ranking import RankingData
from corank.errors import InputError


def problem(seed, n=30):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n).astype(float)
    y[rng.random(n) < 0.3] = np.nan
    X = rng.normal(size=(n, 4)) + 50
    return X, y, rng.integers(0, 5, n), rng.random(n) * 2


def by_enumeration(X, y, qid, w, *, ties, unscored, query_weight):
    """Sum over every pair, one at a time."""
    d = X.shape[1]
    total, weight = np.zeros((d + 1, d + 1)), 0.0
    for q in set(qid):
        rows = [i for i in range(len(y)) if qid[i] == q and np.isnan(y[i]) == unscored]
        pairs = [(i, j) for i, j in itertools.combinations(rows, 2) if unscored or ties or y[i] != y[j]]
        mass = sum(w[i] * w[j] for i, j in pairs)
        c = {"pairs": 1.0, "equal": 1 / (2 * mass) if mass else 0.0, "rows": 1 / sum(w[rows]) if pairs else 0.0}
        for i, j in pairs:
            target = 0.0 if unscored else y[i] - y[j]
            p = np.append(X[i] - X[j], target)
            total += c[query_weight] * w[i] * w[j] * np.outer(p, p)
        weight += c[query_weight] * mass
    return total, weight


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize(("ties", "unscored"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("block", [1, 3, 7, 8192])
def test_one_pass_equals_the_sum_over_pairs(query_weight, ties, unscored, block):
    for seed in range(3):
        X, y, qid, w = problem(seed)
        rows = "unscored" if unscored else "scored"
        found = Moments.of(RankingData.of(X, y, qid, w), rows=rows, ties=ties, query_weight=query_weight, block=block)
        want, weight = by_enumeration(X, y, qid, w, ties=ties, unscored=unscored, query_weight=query_weight)
        np.testing.assert_allclose(found.pair, want, rtol=1e-9, atol=1e-9)
        assert found.pair_weight == pytest.approx(weight)


def test_ties_give_the_laplacian_of_all_pairs():
    X, y, qid, _ = problem(1)
    data = RankingData.of(X, y, qid)
    L = Laplacian.per_query(data, rows="scored", ties=True).toarray()
    Z = np.column_stack([X, np.nan_to_num(y)])
    np.testing.assert_allclose(Moments.of(data, ties=True).pair, Z.T @ L @ Z, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 100))
def test_parts_add_up_to_the_whole(seed):
    X, y, qid, _ = problem(seed)
    first = qid < 2
    parts = [Moments.of(RankingData.of(X[p], y[p], qid[p]), plain=True) for p in (first, ~first) if p.any()]
    total = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    whole = Moments.of(RankingData.of(X, y, qid), plain=True)
    np.testing.assert_allclose(total.pair, whole.pair, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(total.plain, whole.plain, rtol=1e-12)
    assert total.pair_weight == whole.pair_weight


def test_plain_sums_and_csr_and_float32():
    X, y, qid, w = problem(2)
    scored = ~np.isnan(y)
    F = np.column_stack([X, y, np.ones(len(y))])[scored]
    found = Moments.of(RankingData.of(X, y, qid, w), plain=True)
    np.testing.assert_allclose(found.plain, F.T @ (F * w[scored, None]), rtol=1e-12)
    csr = Moments.of(RankingData.of(sparse.csr_array(X), y, qid, w), plain=True)
    np.testing.assert_allclose(csr.pair, found.pair, rtol=1e-12)
    single = Moments.of(RankingData.of(X.astype(np.float32), y, qid, w))
    np.testing.assert_allclose(single.pair, found.pair, rtol=1e-4, atol=1e-4)


def test_a_large_offset_does_not_cancel():
    X, y, qid, _ = problem(3)
    near = Moments.of(RankingData.of(X - 50, y, qid)).pair
    far = Moments.of(RankingData.of(X + 1e8, y, qid), block=3).pair
    np.testing.assert_allclose(far, near, rtol=1e-6, atol=1e-5)


def test_any_feature_map():
    X, y, qid, _ = problem(4)
    found = Moments.of(RankingData.of(X, y, qid), features=lambda rows: np.tanh(rows[:, :2] - 50))
    want = Moments.of(RankingData.of(np.tanh(X[:, :2] - 50), y, qid))
    np.testing.assert_allclose(found.pair, want.pair)
    assert found.n_features == 2


def test_preferences_ask_for_a_difference_of_one():
    X, _, _, w = problem(5)
    pairs = np.array([[0, 1], [2, 3], [0, 1], [5, 4]])
    D = np.column_stack([X[pairs[:, 0]] - X[pairs[:, 1]], np.ones(4)])
    scale = w[pairs[:, 0]] * w[pairs[:, 1]]
    found = Moments.of(RankingData.of_pairs(X, pairs, weights=w), block=3)
    np.testing.assert_allclose(found.pair, D.T @ (D * scale[:, None]))
    assert found.pair_weight == pytest.approx(scale.sum())


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
def test_preferences_weighed_by_query(query_weight):
    X, _, qid, w = problem(5)
    pairs, v = preferences(qid, 12)
    found = Moments.of(RankingData.of_pairs(X, pairs, qid, w, v), query_weight=query_weight, block=3)
    want, weight = np.zeros((5, 5)), 0.0
    for q in set(qid[pairs[:, 0]]):
        mine = qid[pairs[:, 0]] == q
        of_pairs = (v * w[pairs].prod(axis=1))[mine]
        c = {"pairs": 1.0, "equal": 1 / (2 * of_pairs.sum()), "rows": 1 / w[np.unique(pairs[mine])].sum()}[query_weight]
        for (a, b), each in zip(pairs[mine], of_pairs, strict=True):
            p = np.append(X[a] - X[b], 1.0)
            want += c * each * np.outer(p, p)
            weight += c * each
    np.testing.assert_allclose(found.pair, want, rtol=1e-9, atol=1e-9)
    assert found.pair_weight == pytest.approx(weight)


def preferences(qid, n):
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i, j in itertools.permutations(range(len(qid)), 2) if qid[i] == qid[j]]
    return np.array(pairs)[rng.choice(len(pairs), n)], rng.random(n) + 0.1


@pytest.mark.thin(3)
@pytest.mark.parametrize("kind", ["scores", "ties", "preferences", "wide"])
def test_threads_do_not_change_a_byte(kind, monkeypatch):
    rng = np.random.default_rng(8)
    n, d = 700, 192 if kind == "wide" else 5
    X, y, qid = rng.normal(size=(n, d)) + 3, rng.integers(0, 4, n).astype(float), rng.integers(0, 60, n)
    data = RankingData.of(X, y, qid, rng.random(n))
    if kind == "preferences":
        data = of_preferences(X, qid, n)
    monkeypatch.setattr(walk, "LEAF", 37)
    found = []
    for threads in (1, 2, 10):
        monkeypatch.setattr("corank.core.threads.n_threads", lambda n_jobs=None, threads=threads: n_jobs or threads)
        sums = Moments.of(data, ties=kind == "ties", plain=True, block=11)
        squares, _ = pair_squares(data, ties=kind == "ties")
        found.append([each.tobytes() for each in (sums.pair, sums.plain, squares) if each is not None])
    assert found[0] == found[1] == found[2]
    monkeypatch.setattr(walk, "LEAF", 1 << 16)
    np.testing.assert_allclose(sums.pair, Moments.of(data, ties=kind == "ties").pair, rtol=1e-9, atol=1e-9)


def test_threads_of_blas_change_wide_sums_by_rounding_alone(monkeypatch):
    rng = np.random.default_rng(8)
    data = RankingData.of(rng.normal(size=(700, 260)) + 3, rng.integers(0, 4, 700), rng.integers(0, 60, 700))
    monkeypatch.setattr(walk, "LEAF", 100)
    found = []
    for threads in (1, 2):
        monkeypatch.setattr("corank.core.threads.n_threads", lambda n_jobs=None, threads=threads: n_jobs or threads)
        with threadpool_limits(threads, "blas"):
            found.append(Moments.of(data).pair)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12, atol=1e-12 * np.abs(found[0]).max())


def of_preferences(X, qid, n):
    pairs, v = preferences(qid, n)
    return RankingData.of_pairs(X, pairs, qid, pair_weights=v)


def test_leaves_are_whole_queries_and_cover_all_rows(monkeypatch):
    X, y, qid, _ = problem(9, n=200)
    monkeypatch.setattr(walk, "LEAF", 20)
    passed = walk.prepare_pass(RankingData.of(X, y, qid), None, "scored", False, "pairs")
    ends = [end for _, end in passed.leaves]
    assert [0, *ends[:-1]] == [start for start, _ in passed.leaves]
    assert ends[-1] == np.sum(~np.isnan(y))
    assert all(passed.slots.query[end - 1] != passed.slots.query[end] for end in ends[:-1])


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_squares_are_the_diagonal(query_weight, ties, kind, monkeypatch):
    monkeypatch.setattr(walk, "LEAF", 7)
    X, y, qid, w = problem(10)
    X[:, 3] = 7.0
    for data in (RankingData.of(kind(X), y, qid, w), replace(of_preferences(kind(X), qid, 15), weights=w)):
        squares, weight = pair_squares(data, ties=ties, query_weight=query_weight)
        whole = Moments.of(data, ties=ties, query_weight=query_weight)
        np.testing.assert_allclose(squares, np.diag(whole.pair)[:-1], rtol=1e-7, atol=1e-9)
        assert squares[3] == pytest.approx(0.0, abs=1e-20)
        assert weight == whole.pair_weight


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_sums_of_rows_far_from_the_origin_are_those_of_explicit_pairs(kind, dtype, ties):
    rng = np.random.default_rng(0)
    # single precision has steps of 1/16 there, double precision of 1e-7
    offset = 2.0 ** (20 if dtype is np.float32 else 30)
    X, y, qid = (rng.normal(size=(60, 3)) + offset).astype(dtype), rng.integers(0, 3, 60) * 1.0, np.repeat(range(6), 10)
    X[:, 2] = offset + qid
    F = np.column_stack([X, y]).astype(np.longdouble)
    pairs = [(i, j) for i in range(60) for j in range(i) if qid[i] == qid[j] and (ties or y[i] != y[j])]
    expected = sum(np.outer(F[i] - F[j], F[i] - F[j]) for i, j in pairs).astype(float)
    data = RankingData.of(kind(X), y, qid)
    np.testing.assert_allclose(Moments.of(data, ties=ties).pair, expected, rtol=1e-12, atol=1e-10)
    squares, _ = pair_squares(data, ties=ties)
    np.testing.assert_allclose(squares, np.diag(expected)[:-1], rtol=1e-7)
    # a column that is constant inside queries leaves nothing at all
    assert squares[2] == Moments.of(data, ties=ties).pair[2, 2] == 0.0


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_scaled_columns_are_columns_multiplied_by_hand(kind):
    X, y, qid, w = problem(11)
    factors = np.array([1e-6, 1.0, 30.0, 1e5])
    data = RankingData.of(kind(X), y, qid, w)
    lazy, by_hand = replace(data, X=ScaledRows(data.X, factors)), RankingData.of(X * factors, y, qid, w)
    one, other = (Moments.of(each, plain=True) for each in (lazy, by_hand))
    np.testing.assert_allclose(one.pair, other.pair, rtol=1e-9)
    np.testing.assert_allclose(one.plain, other.plain, rtol=1e-12)
    np.testing.assert_allclose(pair_squares(lazy)[0], pair_squares(by_hand)[0], rtol=1e-7)
    mapped = Moments.of(lazy, features=lambda rows: np.tanh(dense(rows)))
    np.testing.assert_allclose(mapped.pair, Moments.of(RankingData.of(np.tanh(X * factors), y, qid, w)).pair, rtol=1e-9)


@pytest.mark.parametrize("query_weight", ["equal", "rows"])
def test_a_query_weighs_what_its_name_says(query_weight):
    X, y, qid, w = problem(12)
    for rows in ("scored", "unscored"):
        weighed = weigh_queries(RankingData.of(X, y, qid, w), query_weight, rows=rows)
        for q in set(qid):
            alone = RankingData.of(X[qid == q], y[qid == q], None, w[qid == q])
            of_query = RankingData.of(X[qid == q], y[qid == q], None, weighed.weights[qid == q] + 1e-30)
            before, after = (Moments.of(each, rows=rows).pair_weight for each in (alone, of_query))
            members = (np.isnan(y) == (rows == "unscored")) & (qid == q)
            want = 0.5 if query_weight == "equal" else before / w[members].sum() if members.any() else 0.0
            assert after == pytest.approx(want if before else 0.0, abs=1e-12)


def test_nothing_to_compare_gives_zeros():
    X, y, qid, _ = problem(6)
    data = RankingData.of(X, np.where(np.isnan(y), 1.0, y), qid)
    none = Moments.of(data, rows="unscored", plain=True)
    assert not none.pair.any()
    assert none.plain.shape == (6, 6)
    alone = Moments.of(RankingData.of(X, y, np.arange(len(y))))
    assert not alone.pair.any()
    assert alone.pair_weight == 0


def test_bad_settings_get_one_sentence():
    X, y, qid, _ = problem(7)
    data = RankingData.of(X, y, qid)
    with pytest.raises(InputError, match="query_weight is 'size'"):
        Moments.of(data, query_weight="size")
    with pytest.raises(InputError, match="moments have different shapes"):
        Moments.of(data) + Moments.of(data, plain=True)
