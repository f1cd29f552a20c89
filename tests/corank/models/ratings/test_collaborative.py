"""Collaborative against dense solves per user, and with unusual ratings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from corank import Collaborative, RankingData, evaluate, load, save
from corank.errors import InputError, UsageWarning
from corank.metrics import disagreement_error
from corank.models import ItemMean
from helpers.ratings import draw_ratings, events

BOTH = pytest.mark.parametrize(
    "make", [lambda: Collaborative(1.5, 1.5, 8), ItemMean], ids=["Collaborative", "ItemMean"]
)
R = draw_ratings()


def brute_force(ratings, user, alpha, power, n_basis, shrink=2.0):
    """All scores of one user by dense matrices: joint normal equations, eigenvectors, a bordered system."""
    dense = np.full(ratings.shape, np.nan)
    cells = ratings.tocoo()
    dense[cells.row, cells.col] = cells.data
    n_users, n_items = dense.shape
    A = np.zeros((ratings.nnz, n_users + n_items))
    A[np.arange(ratings.nnz), cells.row] = A[np.arange(ratings.nnz), n_users + cells.col] = 1.0
    both = np.linalg.solve(A.T @ A + np.diag([0.0] * n_users + [shrink] * n_items), A.T @ cells.data)
    m = both[n_users:]
    E = np.nan_to_num(dense - both[:n_users, None] - m)
    e, V = np.linalg.eigh(E.T @ E)
    kept = np.argsort(-e)[:n_basis]
    K = (V[:, kept] * e[kept] ** power) @ V[:, kept].T
    K /= np.diag(K) @ (~np.isnan(dense)).mean(axis=0) / (~np.isnan(dense)).mean(axis=0).sum()
    J = np.flatnonzero(~np.isnan(dense[user]))
    k = len(J)
    bordered = np.block([[K[np.ix_(J, J)] + alpha * np.eye(k), np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    solution = np.linalg.solve(bordered, np.append(dense[user, J] - m[J], 0.0))
    return m + K[:, J] @ solution[:-1] + solution[-1]


@pytest.mark.parametrize(("alpha", "power", "n_basis"), [(1.5, 1.5, 8), (0.2, 1.0, 3), (10.0, 2.0, 15)])
def test_scores_are_those_of_dense_solves(alpha, power, n_basis):
    model = Collaborative(alpha, power, n_basis).fit(R)
    scores = model.predict_users(R)
    for user in (0, 7, 39):
        expected = brute_force(R, user, alpha, power, n_basis)
        np.testing.assert_allclose(scores[user], expected, rtol=1e-6, atol=1e-7)
        own = R[[user]]
        np.testing.assert_allclose(model.predict_user(own.indices, own.data), expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(model.predict(np.arange(15), np.full(15, user)), expected, rtol=1e-6, atol=1e-7)


def test_personal_scores_order_held_out_ratings_better_than_means():
    R, rng = draw_ratings(400, 40, seed=5), np.random.default_rng(0)
    items, y, user = events(R)
    test = rng.random(len(y)) < 0.3
    found = {}
    for model in (ItemMean(), Collaborative(random_state=0)):
        model.fit(items[~test], y[~test], qid=user[~test])
        found[type(model)] = model.score(items[test], y[test], qid=user[test])
        error = disagreement_error(y[test], model.predict(items[test], user[test]), user[test])
        assert found[type(model)] == 1.0 - error
    assert found[Collaborative] > found[ItemMean] + 0.1


@BOTH
def test_rows_a_matrix_and_ranking_data_give_the_same_model(make):
    items, y, user = events(R)
    shuffled = np.random.default_rng(0).permutation(len(y))
    one = make().fit(R)
    for other in (
        make().fit(items[shuffled], y[shuffled], qid=user[shuffled]),
        make().fit(items[:, None], y, qid=user),
        make().fit(RankingData.of(items[:, None].astype(float), y, user)),
        make().fit(R.tocsc()),
        make().fit(sparse.csr_matrix(R).astype(np.float32)),
        make().fit(np.append(items, 3), np.append(y, np.nan), qid=np.append(user, 77)),
    ):
        np.testing.assert_array_equal(other.predict(items, user), one.predict(items, user))


@BOTH
def test_names_and_order_of_users_and_items_change_nothing(make):
    items, y, user = events(R)
    one = make().fit(R).predict(items, user)
    rng = np.random.default_rng(1)
    item_names = np.array([f"item {i}" for i in rng.permutation(15)])
    user_names = [f"user {u}" for u in rng.permutation(40)]
    named, whose = item_names[items], [user_names[u] for u in user]
    model = make().fit(list(named), y, qid=whose)
    np.testing.assert_allclose(model.predict(list(named), whose), one, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.predict(named.astype(object), whose), one, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_change_nothing(n_jobs, monkeypatch):
    items, _, user = events(R)
    one = Collaborative(random_state=0).fit(R)
    monkeypatch.setattr("corank.models.ratings.ranker._AT_ONCE", 20)
    many = Collaborative(random_state=0, n_jobs=n_jobs).fit(R)
    np.testing.assert_array_equal(many.predict(items, user), one.predict(items, user))
    np.testing.assert_array_equal(many.predict_users(R), one.predict_users(R))


@BOTH
def test_users_with_no_rating_one_rating_and_equal_ratings(make):
    model = make().fit(R)
    nobody = model.predict_user([], [])
    np.testing.assert_allclose(nobody, model.level_ + model.item_means_)
    np.testing.assert_array_equal(model.predict(np.arange(15)), nobody)
    np.testing.assert_array_equal(model.predict(np.arange(15), ["a stranger"] * 15), nobody)
    np.testing.assert_array_equal(model.predict_user([2], [np.nan]), nobody)
    one = model.predict_user([2], [7.0])
    assert one[2] == pytest.approx(7.0)
    np.testing.assert_allclose(one - one[0], nobody - nobody[0], atol=1e-9)  # a single rating sets the level only
    alike = model.predict_user([2, 3, 4], [1.0, 1.0, 1.0])
    assert np.isfinite(alike).all()
    shifted = model.predict_user([2, 3, 4], [6.0, 6.0, 6.0])
    np.testing.assert_allclose(shifted, alike + 5.0)


@BOTH
def test_unrated_items_score_like_an_item_of_mean_zero(make):
    wide = sparse.csr_array((R.data, R.indices, R.indptr), shape=(40, 18))
    model = make().fit(wide)
    np.testing.assert_allclose(model.predict_users(wide)[:, :15], make().fit(R).predict_users(R), atol=1e-9)
    known = R[[4]]
    scores = model.predict_user(known.indices, known.data)
    assert scores[15] == scores[17]
    np.testing.assert_allclose(model.predict([16, 99], [4, 4]), scores[[16, 17]])
    again = model.predict_user(np.append(known.indices, 1000), np.append(known.data, 9.0))
    np.testing.assert_array_equal(again, scores)


@BOTH
def test_users_without_ratings_have_no_effect(make):
    gaps = sparse.vstack([sparse.csr_array((1, 15)), R[:20], sparse.csr_array((2, 15)), R[20:]]).tocsr()
    model = make().fit(gaps)
    np.testing.assert_array_equal(model.predict_users(R), make().fit(R).predict_users(R))
    np.testing.assert_allclose(model.predict([4, 5], [0, 21]), model.level_ + model.item_means_[[4, 5]])


@BOTH
def test_nothing_to_score_and_ids_of_other_types(make):
    model = make().fit(R)
    assert model.predict([]).shape == (0,)
    assert model.predict_users(R[:0]).shape == (0, 15)
    one = model.predict([3, 4], [1, 2])
    for items, users in (
        (np.array([3, 4], dtype=object), np.array([1, 2], dtype=object)),
        (np.array([3.0, 4.0], dtype=np.float32), [1.0, 2.0]),
        (np.array([3, 4], dtype=np.uint8), np.array([1, 2], dtype=np.uint8)),
    ):
        np.testing.assert_array_equal(model.predict(items, users), one)


@BOTH
def test_zeros_are_ratings(make):
    dense = np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0], [1.0, 0.0, 2.0]])
    cells = np.indices(dense.shape).reshape(2, -1)
    stored = sparse.csr_array((dense.ravel(), cells), shape=dense.shape)
    assert stored.nnz == 9
    higher = sparse.csr_array((dense.ravel() + 5.0, cells), shape=dense.shape)
    scores = make().fit(stored).predict_users(stored)
    np.testing.assert_allclose(make().fit(higher).predict_users(higher), scores + 5.0)


@BOTH
def test_it_recommends_the_best_that_was_not_rated(make):
    model = make().fit(R)
    scores = model.predict_users(R)[3]
    rated = set(R[[3]].indices.tolist())
    expected = [i for i in np.argsort(-scores, kind="stable") if i not in rated]
    np.testing.assert_array_equal(model.recommend(3, n=4), expected[:4])
    np.testing.assert_array_equal(model.recommend(3, n=100), expected)
    np.testing.assert_array_equal(model.recommend_user(R[[3]].indices, R[[3]].data, n=4), expected[:4])
    np.testing.assert_array_equal(model.recommend("a stranger", 15), np.argsort(-model.item_means_, kind="stable"))
    ranks = model.rank(np.arange(15), np.full(15, 3))
    np.testing.assert_array_equal(ranks, np.argsort(np.argsort(-scores, kind="stable")) + 1)


@BOTH
def test_save_and_load(make, tmp_path):
    items, y, user = events(R)
    names, whose = [f"item {i}" for i in items], [f"user {u}" for u in user]
    for at, (X, qid) in enumerate(((items, user), (names, whose))):
        model = make().fit(X, y, qid=qid)
        save(model, tmp_path / f"{at}.safetensors")
        loaded = load(tmp_path / f"{at}.safetensors")
        np.testing.assert_array_equal(loaded.predict(X, qid), model.predict(X, qid))
        np.testing.assert_array_equal(loaded.predict_user(X[:3], [1, 2, 3]), model.predict_user(X[:3], [1, 2, 3]))
        assert loaded.recommend(qid[0], 3).tolist() == model.recommend(qid[0], 3).tolist()


@BOTH
def test_metrics_and_scikit_learn_understand_it(make):
    from sklearn import config_context
    from sklearn.model_selection import KFold, cross_val_score

    from corank.metrics import scorer

    items, y, user = events(R)
    with config_context(enable_metadata_routing=True):
        cv = KFold(3, shuffle=True, random_state=0)
        scores = cross_val_score(make(), items, y, cv=cv, scoring=scorer("disagreement"), params={"qid": user})
    assert len(scores) == 3
    assert np.isfinite(scores).all()
    model = clone(make()).fit(items, y, qid=user)
    assert evaluate(y, model.predict(items, user), user, metrics=["disagreement"]) is not None


@BOTH
def test_bad_input_gets_one_sentence(make):
    items, y, user = events(R)
    fits = (
        (lambda m: m.fit(items, y), "qid is None; pass the user of each rating"),
        (lambda m: m.fit(R, y), "y or qid was given with a csr_array, which holds the ratings; leave both out"),
        (lambda m: m.fit(R.toarray(), y[:40], qid=user[:40]), r"X has shape \(40, 15\); pass one item id per row, or"),
        (lambda m: m.fit(items, y[:-1], qid=user), r"y has \d+ scores for \d+ rows"),
        (lambda m: m.fit(items, np.where(y == y[0], np.inf, y), qid=user), "y contains infinity at row 0"),
        (lambda m: m.fit([1.0, np.nan], [1, 2], qid=[0, 0]), "X is missing .* at row 1; every row needs an item id"),
        (lambda m: m.fit([(1, 2), (3, 4)], [1, 2], qid=[0, 0]), "pass one item id per row|use numbers or strings"),
        (lambda m: m.fit(["a", "b", "a"], [1, 2, 3], qid=[7, 7, 7]), "user 7 rated item a more than once"),
        (lambda m: m.fit(items, y, qid=user, sample_weight=y * 0 + 2), "all ratings have equal weight"),
        (lambda m: m.fit(RankingData.of(items[:, None], y, user, y * 0 + 2)), "sample_weight was given"),
        (lambda m: m.fit(items, pairs=[[0, 1]], qid=user), "pairs were given, but this ranker learns from ratings"),
        (lambda m: m.fit(items, np.ones(len(y)), qid=user), "no two|nothing|pair"),
        (lambda m: m.fit(sparse.csr_array(([np.inf], ([0], [0])), shape=(2, 2))), "ratings contains infinity"),
    )  # fmt: skip
    model = make()
    for bad, said in fits:
        with pytest.raises(InputError, match=said):
            bad(model)
        with pytest.raises(NotFittedError):
            model.predict(items)
    model.fit(R)
    uses = (
        (lambda m: m.predict_user([1, 2], [1.0]), "ratings has 1 values for 2 items"),
        (lambda m: m.predict_user([1, 1], [1.0, 2.0]), "items contains an item more than once"),
        (lambda m: m.predict_user([1, 2], [1.0, np.inf]), "ratings contains infinity"),
        (lambda m: m.predict_users(R[:, :3]), "a column for each of the 15 items"),
        (lambda m: m.predict_users(R.toarray()), "pass a scipy.sparse matrix"),
        (lambda m: m.predict(items, user[:-1]), "qid has"),
        (lambda m: m.recommend(0, n=0), "n is 0; pass a whole number of at least 1"),
        (lambda m: m.fit(sparse.coo_array([1.0, 2.0])), "X is sparse and has shape"),
        (lambda m: m.score(items, y, user, sample_weight=y), "score counts pairs unweighted"),
        (lambda m: m.predict_users(sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 15))), "more than once"),
    )  # fmt: skip
    for bad, said in uses:
        with pytest.raises(InputError, match=said):
            bad(model)
    with pytest.warns(
        UsageWarning,
        match="none of the 1 items of X was rated in fit",
    ):
        model.predict(["a"], [0])


def test_a_failed_fit_leaves_the_old_model():
    model = Collaborative(1.0, 1.0).fit(R)
    before = dict(vars(model))
    with pytest.raises(InputError):
        model.fit([1, 1], [1, 2], qid=[0, 0])
    assert vars(model) == before


def test_parameters_are_checked():
    for wrong in ({"alpha": 0.0}, {"power": -1.0}, {"n_basis": 0}, {"shrink": -1.0}, {"n_jobs": 0}):
        (name,) = wrong
        with pytest.raises(InputError, match=f"{name} is "):
            Collaborative(**wrong).fit(R)


@BOTH
def test_a_prior_is_subtracted_from_the_ratings(make):
    items, ratings, users = events(R)
    prior = np.random.default_rng(0).normal(size=len(ratings))
    less = make().fit(items, ratings - prior, qid=users)
    model = make().fit(items, ratings, qid=users, prior=prior)
    np.testing.assert_allclose(model.predict(items, users, prior=prior), less.predict(items, users) + prior)
    packed = RankingData.of(np.asarray(items, dtype=float)[:, None], ratings, users).with_prior(prior)
    np.testing.assert_allclose(make().fit(packed).item_means_, model.item_means_)
    with pytest.raises(InputError, match="fitted with a prior, but prior is missing"):
        model.recommend(users[0])
