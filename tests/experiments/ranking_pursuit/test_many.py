"""Many pursuits in one call equal single pursuits."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corank.base.kernels import GaussianKernel
from corank.base.kernels.views import View
from corank.models import pursuit
from experiments.ranking_pursuit.many import fit_many
from experiments.ranking_pursuit.many_views import fit_many_views

# columns as they are: these tests compute by hand
RankingPursuit = partial(pursuit.RankingPursuit, scale=False)
CoRankingPursuit = partial(pursuit.CoRankingPursuit, scale=False)

KERNEL = GaussianKernel(0.05)


def users(seed, n_items=20, n_users=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 5))
    sizes = rng.integers(8, 15, n_users)
    items = np.concatenate([rng.choice(n_items, size, replace=False) for size in sizes])
    user = np.repeat([f"user {u}" for u in range(n_users)], sizes)
    y = rng.normal(size=len(items))
    order = rng.permutation(len(items))
    return X, items[order], y[order], user[order], rng


@pytest.mark.long
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    fitting=st.sampled_from(["basic", "back", "pre"]),
    mix=st.sampled_from([0.0, 0.5, 1.0]),
    query_weight=st.sampled_from(["pairs", "rows"]),
)
def test_each_model_is_a_ranking_pursuit(seed, fitting, mix, query_weight):
    X, items, y, user, _ = users(seed)
    how = {"mix": mix, "fitting": fitting, "query_weight": query_weight}
    models = fit_many(X, items, y, user, n_basis=4, kernel=KERNEL, n_jobs=2, **how)
    scores = models.predict_path(items, user)
    for name in np.unique(user):
        rows = np.flatnonzero(user == name)
        model = RankingPursuit(4, KERNEL, **how).fit(X[items[rows]], y[rows])
        for p in range(len(model.terms_) + 1):
            expected = model.predict(X[items[rows]], n_terms=p)
            np.testing.assert_allclose(scores[rows, p], expected, rtol=1e-6, atol=1e-7 * (1 + abs(y).max()))
        assert models.n_terms[models.ids.tolist().index(name)] == len(model.terms_)


@pytest.mark.long
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    coupling=st.sampled_from([0.0, 0.1, 5.0]),
    residual=st.sampled_from(["shared", "separate"]),
)
def test_each_model_of_two_dictionaries_is_a_co_ranking_pursuit(seed, coupling, residual):
    X, items, y, user, rng = users(seed)
    y[rng.random(len(y)) < 0.4] = np.nan
    side = rng.integers(0, 2, len(y))
    models = fit_many_views(X, items, y, user, side, coupling=coupling, n_basis=3, kernel=KERNEL, residual=residual)
    scores = models.predict_path(items, user)
    for name in np.unique(user):
        rows = np.flatnonzero(user == name)
        known = y[rows][~np.isnan(y[rows])]
        # with fewer, many choices fit equally well
        if len(np.unique(known)) < 6 or np.bincount(side[rows], minlength=2).min() < 2:
            continue
        views = [View(None, KERNEL, np.flatnonzero(side[rows] == v)) for v in (0, 1)]
        model = CoRankingPursuit(3, views, coupling=coupling, residual=residual).fit(X[items[rows]], y[rows])
        for p in range(len(model.term_coefs_) + 1):
            expected = model.predict(X[items[rows]], n_terms=p)
            np.testing.assert_allclose(scores[rows, p], expected, rtol=1e-6, atol=1e-7 * (1 + abs(known).max()))


@pytest.mark.long
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), residual=st.sampled_from(["shared", "separate"]))
def test_views_may_have_different_features_of_the_same_items(seed, residual):
    X, items, y, user, rng = users(seed)
    y[rng.random(len(y)) < 0.3] = np.nan
    how = {"coupling": 0.3, "n_basis": 3, "residual": residual}
    scores = fit_many_views((X[:, :2], X[:, 2:]), items, y, user, kernel=KERNEL, **how).predict_path(items, user)
    for name in np.unique(user):
        rows = np.flatnonzero(user == name)
        known = y[rows][~np.isnan(y[rows])]
        if len(known) < 6:
            continue
        views = [View([0, 1], KERNEL), View([2, 3, 4], KERNEL)]
        model = CoRankingPursuit(views=views, **how).fit(X[items[rows]], y[rows])
        for p in range(len(model.term_coefs_) + 1):
            expected = model.predict(X[items[rows]], n_terms=p)
            np.testing.assert_allclose(scores[rows, p], expected, rtol=1e-6, atol=1e-7 * (1 + abs(known).max()))


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    fitting=st.sampled_from(["basic", "back", "pre"]),
    mix=st.sampled_from([0.0, 0.5]),
    gamma=st.sampled_from([2.0**-5, 2.0**-10, 2.0**-15]),
)
def test_the_objective_never_increases_with_wide_kernels_and_equal_rows(seed, fitting, mix, gamma):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 25))
    X, y = rng.integers(-2, 3, (n, 4)).astype(float), rng.integers(1, 6, n).astype(float)
    X[0] = X[1]
    every, user = np.arange(n), np.zeros(n, dtype=int)
    how = {"n_basis": 30, "kernel": GaussianKernel(gamma), "mix": mix, "fitting": fitting}
    scores = fit_many(X, every, y, user, **how).predict_path(every, user)
    A = mix * np.eye(n) + (1 - mix) * (n * np.eye(n) - 1.0)
    J = np.array([(y - f) @ A @ (y - f) for f in scores.T])
    assert (np.diff(J) <= 1e-5 * J[0]).all()


@pytest.mark.long
def test_a_view_without_items_leaves_the_other_alone():
    X, items, y, user, _ = users(3)
    y[::3] = np.nan
    models = fit_many_views(X, items, y, user, np.zeros(len(y)), coupling=0.0, n_basis=3, kernel=KERNEL)
    assert (models.chosen[:, :, 1] == -1).all()
    assert (models.n_terms == 3).all()
    rows = np.flatnonzero(user == "user 0")
    alone = RankingPursuit(1, KERNEL, dictionary="all").fit(X[items[rows]], y[rows])
    np.testing.assert_allclose(
        models.predict(items[rows], user[rows], n_terms=1), 0.5 * alone.predict(X[items[rows]]), rtol=1e-9
    )


def test_one_length_is_the_column_of_the_path():
    X, items, y, user, _ = users(5)
    for fitting in ("basic", "back"):
        models = fit_many(X, items, y, user, n_basis=6, kernel=KERNEL, fitting=fitting)
        path = models.predict_path(items, user)
        for p in (0, 1, 4, 6):
            np.testing.assert_array_equal(models.predict(items, user, n_terms=p), path[:, p])
    assert models.predict([], []).shape == (0,)


def test_users_with_nothing_to_learn_from_score_zero():
    X = np.eye(4)
    models = fit_many(X, [0, 1, 2, 3, 0], [1.0, 1.0, 2.0, np.nan, 3.0], ["a", "a", "b", "c", "d"], n_basis=3)
    assert models.n_terms.tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(models.predict([0, 1, 2, 3], ["a", "b", "c", "d"]), np.zeros(4))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: fit_many(np.eye(3), [0, 5], [1.0, 2.0], [0, 0]), "items contains row 5; pass rows of X, from 0 to 2"),
        (lambda: fit_many(np.eye(3), [0.5], [1.0], [0]), "pass one row of X for each score"),
        (lambda: fit_many(np.eye(3), [], [], []), "items is empty"),
        (lambda: fit_many_views(np.eye(3), [], [], [], coupling=1.0), "items is empty"),
        (lambda: fit_many(np.eye(3), [0, 1], [1e160, 2e160], [0, 0]), "too large or too small to be squared"),
        (lambda: fit_many_views(np.eye(3), [0, 1], [1e-170, 0.0], [0, 0], coupling=1.0), "reach 1e-170"),
        (
            lambda: fit_many(np.eye(3), [0, 1], [1.0, 2.0], [0, 0], fitting="best"),
            r"fitting is .*; pass ",
        ),
        (lambda: fit_many(np.eye(3), [0, 1], [1.0, 2.0], [0, 0], mix=2.0), r"mix is .*; pass "),
        (
            lambda: fit_many(np.eye(3), [0, 1], [1.0, 2.0], [0, 0], n_basis=2.7),
            r"n_basis is .*; pass ",
        ),
        (lambda: fit_many(np.eye(3), [0, 1], [1.0, 2.0], [0, 0]).predict([0], [0], True), "n_terms is True"),
        (lambda: fit_many(np.eye(3), [0, 1], [1.0, 2.0], [0, 0], tol=np.nan), r"tol is .*; pass "),
        (
            lambda: fit_many_views(np.eye(3), [0], [1.0], [0], coupling=1.0, tol="a"),
            r"tol is .*; pass ",
        ),
        (lambda: fit_many(np.eye(2), [0], [1.0], [0], kernel=lambda A, B: np.full((2, 2), np.nan)), "NaN or infinity"),
        (lambda: fit_many(np.ones((2, 3)), [0, 1], [1.0, 2.0], [0, 0], kernel="precomputed"), "pass a square matrix"),
        (lambda: fit_many_views(np.eye(3), [0, 1], [1.0, 2.0], [0, 0], [0, 2], coupling=1.0), "pass 0 or 1 for each"),
        (
            lambda: fit_many_views(np.eye(3), [0, 1], [1.0, 2.0], [0, 0], [0, 1], coupling=-1.0),
            r"coupling is .*; pass ",
        ),
        (lambda: fit_many_views((np.eye(3),), [0], [1.0], [0], coupling=1.0), "X is a tuple of 1"),
        (
            lambda: fit_many_views(np.eye(3), [0], [1.0], [0], coupling=1.0, residual="none"),
            r"residual is .*; pass ",
        ),
        (
            lambda: fit_many_views((np.eye(3), np.eye(2)), [0], [1.0], [0], coupling=1.0, kernel="linear"),
            "the views have 3 and 2 items",
        ),
        (
            lambda: fit_many(np.eye(3), [0, 1], [1.0, 2.0], [0, 0]).predict([0], ["x"]),
            "problem contains 'x', which has no fitted model",
        ),
        (lambda: fit_many(np.eye(3), [0, 1], [1.0, 2.0], [0, 0], n_basis=2).predict([0], [0], 3), "n_terms is 3"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
