from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from corank import QueryScaler, QuerySearchCV, RankRLS, suggest
from corank.base import NeighborSmoother
from corank.base.suggestions import Pool, _unit_rows
from corank.errors import InputError

NAN = np.nan


class Known:
    """A model whose scores are the first column."""

    def predict(self, X):
        return np.asarray(X[:, [0]].toarray() if sparse.issparse(X) else X[:, [0]]).ravel()


def problem(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(rng.random(n) < 0.3, np.round(X[:, 0] > 0), NAN)
    return X, y


def unit(A):
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def greedy(values, X, y, n, similar):
    """Suggestions for one query by hand: the best row that is not a near-duplicate, else the best."""
    U, chosen = unit(X), []
    left = [i for i in np.argsort(-values, kind="stable") if np.isnan(y[i])]
    while left and len(chosen) < n:
        new = [i for i in left if all(U[i] @ U[j] < similar for j in chosen)]
        chosen.append((new or left)[0])
        left.remove(chosen[-1])
    return chosen


@pytest.mark.parametrize("similar", [0.3, 0.9, 2.0])
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_strategies_by_hand(n, similar):
    X, y = problem()
    f = X[:, 0]
    t = (f[y == 1].mean() + f[y == 0].mean()) / 2
    U, judged = unit(X), ~np.isnan(y)
    density = np.array([np.mean([u @ v for v in U]) - np.mean([u @ v for v in U[judged]]) for u in U])
    for strategy, values in {"uncertain": -np.abs(f - t), "top": f, "representative": density}.items():
        found = suggest(Known(), X, y, n=n, strategy=strategy, similar=similar)
        assert found.tolist() == greedy(values, X, y, n, similar)
        assert found.dtype == np.int64
    found = suggest(Known(), X, y, n=n, strategy="random", random_state=3, similar=similar)
    assert np.isnan(y[found]).all()
    assert len(set(found)) == min(n, np.isnan(y).sum())
    np.testing.assert_array_equal(
        found, suggest(Known(), X, y, n=n, strategy="random", random_state=3, similar=similar)
    )


def test_near_duplicates_come_last_within_their_query():
    X = np.array([[5.0, 1], [4.9, 1], [4.0, -3], [3.0, 2], [-9.0, 0], [-9.0, -1]])
    y = np.array([NAN, NAN, NAN, NAN, 0, 1])
    assert suggest(Known(), X, y, n=4, strategy="top", similar=0.99).tolist() == [0, 2, 3, 1]
    assert suggest(Known(), X, y, n=4, strategy="top", similar=2).tolist() == [0, 1, 2, 3]
    twice, y2, qid = np.vstack([X, X]), np.concatenate([y, y]), np.repeat(["a", "b"], 6)
    assert suggest(Known(), twice, y2, qid, n=2, strategy="top", similar=0.99).tolist() == [0, 6]


def test_grades_are_cut_in_the_middle():
    X = np.array([[0.0], [1], [2], [3], [4], [1.9], [3.1]])
    y = np.array([0, 1, 1, 3, 4, NAN, NAN])
    # good: above 2, so 3 and 4; bad: 0, 1 and 1; t = (3.5 + 1)/2
    assert suggest(Known(), X, y, n=1).tolist() == [5]
    y = np.array([0, 1, 3, 3, 4, NAN, NAN])
    # good: 2, 3 and 4; bad: 0 and 1; t = (3 + 0.5)/2
    assert suggest(Known(), X, y, n=2, similar=2).tolist() == [5, 6]


@pytest.mark.parametrize("grade", [0, 1])
def test_if_all_grades_agree_unjudged_rows_take_the_other_side(grade):
    X = np.array([[0.0], [1], [6], [10]])
    y = np.array([NAN, NAN, NAN, grade])
    # t = (10 + 7/3)/2
    assert suggest(Known(), X, y, n=1).tolist() == [2]


def test_nothing_judged_and_nothing_left_to_judge():
    X, _ = problem()
    nothing = np.full(len(X), NAN)
    want = greedy(np.array([np.mean(unit(X) @ u) for u in unit(X)]), X, nothing, 5, 0.9)
    for strategy in ("uncertain", "top", "representative"):
        assert suggest(None, X, nothing, n=5, strategy=strategy).tolist() == want
    # a fitted ranker gives scores without judgements
    assert suggest(Known(), X, nothing, n=1, strategy="top").tolist() == [X[:, 0].argmax()]
    assert suggest(Known(), X, np.zeros(len(X))).tolist() == []


def test_the_query_with_the_highest_priority_comes_first():
    """Brute force of the rule: of the open queries, one judged row first, then the fewest, then the first."""
    rng = np.random.default_rng(0)
    names = [f"q{i}" for i in range(6)]
    qid = np.append(rng.permutation(np.repeat(names, [1, 3, 4, 5, 6, 8])), "alone")
    y = np.where(rng.random(len(qid)) < 0.3, 1.0, NAN)
    y[-1] = NAN
    X = rng.normal(size=(len(qid), 3))
    found = suggest(Known(), X, y, qid.tolist(), n=100, strategy="top")
    appears = list(dict.fromkeys(qid))
    now = y.copy()
    for row in found:
        is_open = [q for q in appears if np.isnan(now[qid == q]).any()]
        size = {q: (qid == q).sum() for q in appears}
        count = {q: (~np.isnan(now[qid == q])).sum() for q in appears}
        assert qid[row] == min(is_open, key=lambda q: (size[q] == 1, count[q] != 1, count[q], appears.index(q)))
        now[row] = 0
    assert not np.isnan(now).any()


def test_a_custom_strategy_and_a_posterior():
    X, y = problem()
    seen: list[Pool] = []

    def widest(pool):
        seen.append(pool)
        return pool.std

    judged = ~np.isnan(y)
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1).fit(X[judged], y[judged])
    mean, std = model.predict(X, return_std=True)
    assert suggest(model, X, y, n=5, strategy=widest).tolist() == greedy(std, X, y, 5, 0.9)
    t = (mean[y == 1].mean() + mean[y == 0].mean()) / 2
    assert suggest(model, X, y, n=5).tolist() == greedy(-np.abs(mean - t) / std, X, y, 5, 0.9)
    np.testing.assert_array_equal(seen[0].scores, mean)
    assert suggest(Ridge().fit(X[judged], y[judged]), X, y, n=3).shape == (3,)


def test_a_pipeline_is_compared_in_the_space_of_its_last_step():
    # far apart in the input, equal for the ranker
    rng = np.random.default_rng(0)
    qid = np.repeat(["a", "b"], 20)
    X = rng.normal(size=(40, 3)) * np.repeat([1.0, 100.0], 20)[:, None]
    y = np.where(np.arange(40) % 5 < 2, (X[:, 0] > 0).astype(float), NAN)
    model = make_pipeline(QueryScaler("zscore"), RankRLS(scale=False))
    search = QuerySearchCV(model, {"rankrls__alpha": [0.1, 1.0]}, cv=2).fit(X, y, qid=qid)
    scaled = QueryScaler("zscore").fit_transform(X, qid=qid)
    last = search.best_estimator_[-1]
    found = suggest(search, X, y, qid, n=8, strategy="top", similar=0.5)
    np.testing.assert_array_equal(found, suggest(last, scaled, y, qid, n=8, strategy="top", similar=0.5))


def test_sparse_text_in_float32():
    rng = np.random.default_rng(0)
    X = sparse.random_array((50, 200), density=0.05, rng=rng, format="csr")
    y = np.where(np.arange(50) < 6, np.arange(50) % 2.0, NAN)
    model = make_pipeline(NeighborSmoother(n_components=5, random_state=0), RankRLS(scale=False)).fit(X, y)
    found = suggest(model, X, y, n=10)
    assert len(set(found)) == 10
    assert found.min() >= 6
    plain = RankRLS(scale=False).fit(X, y)
    np.testing.assert_array_equal(suggest(plain, X, y, n=5), suggest(plain, X.astype(np.float32), y, n=5))


def test_bad_input():
    X, y = problem()
    with pytest.raises(InputError, match="strategy is 'uncertian'"):
        suggest(Known(), X, y, strategy="uncertian")
    with pytest.raises(InputError, match="n is -1; pass a whole number of at least 0"):
        suggest(Known(), X, y, n=-1)
    with pytest.raises(InputError, match="strategy='top' needs scores"):
        suggest(None, X, y, strategy="top")
    with pytest.raises(InputError, match="<lambda> returned values of shape"):
        suggest(Known(), X, y, strategy=lambda pool: [1.0, 2.0])
    with pytest.raises(InputError, match="returned NaN for an unjudged row"):
        suggest(Known(), X, y, strategy=lambda pool: np.full(60, NAN))
    with pytest.raises(InputError, match="y has 3 scores for 60 rows"):
        suggest(Known(), X, [1, 0, NAN])


def test_a_column_that_is_constant_up_to_rounding_has_no_effect():
    X = np.random.default_rng(0).normal(size=(30, 3))
    for column in (np.full(30, 0.1), np.where(X[:, 0] > 0.0, 0.1 + 0.2, 0.3)):
        found = _unit_rows(np.column_stack([X, column]))
        np.testing.assert_array_equal(found[:, 3], 0.0)
        np.testing.assert_allclose(found[:, :3], _unit_rows(X))
