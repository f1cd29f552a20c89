from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import corank
from corank import RankRLS, View, ViewRankRLS, make_ranking
from corank.base.kernels import GaussianKernel, LinearKernel, SumKernel
from corank.errors import InputError
from corank.models.rls.view_rankrls import climb

PROBLEM = make_ranking(12, 8, n_latent=4, n_views=1, features_per_view=4, view_noise=0.3, random_state=0)
NOISE = np.random.default_rng(1).normal(size=(len(PROBLEM.y), 12))
X = np.hstack([PROBLEM.X, NOISE])
VIEWS = [slice(4), slice(4, 16)]


def pairs_of(y, qid):
    return [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]


def sizes(X, y, qid):
    """Mean squared distance of compared rows, view by view, pair by pair."""
    i, j = np.transpose(pairs_of(y, qid))
    return [float(np.mean(np.sum((X[i, view] - X[j, view]) ** 2, axis=1))) for view in VIEWS]


@pytest.mark.long
def test_weights_are_those_of_a_search_with_models_fitted_anew():
    """Each query is left out by hiding its scores, and columns are weighted by hand."""
    alphas, y, qid = [0.01, 0.1, 1.0], PROBLEM.y, PROBLEM.qid
    model = ViewRankRLS(VIEWS, alphas=alphas, scale=False).fit(X, y, qid=qid)
    own = sizes(X, y, qid)

    def weighted(c):
        return X * np.sqrt(np.repeat(np.divide(c, own), [4, 12]))

    def judge(c):
        errors = np.zeros((len(alphas), len(np.unique(qid))))
        for q in np.unique(qid):
            rest = np.where(qid == q, np.nan, y)
            for a, alpha in enumerate(alphas):
                # the whole problem's alpha beside the mean over the pairs that are left
                share = len(pairs_of(y, qid)) / len(pairs_of(rest, qid))
                f = RankRLS(alpha * share, scale=False).fit(weighted(c), rest, qid=qid).predict(weighted(c))
                errors[a, q] = np.mean([f[i] <= f[j] for i, j in pairs_of(np.where(qid == q, y, np.nan), qid)])
        return -errors.mean(axis=1).min()

    m = len(y) - len(np.unique(qid))
    c = (m * climb(judge, np.full(2, 0.5)) + 5 * 0.5) / (m + 5)
    np.testing.assert_allclose(model.view_weights_, c, rtol=1e-12)
    assert c[0] > 0.8
    same = RankRLS(model.alpha_, scale=False).fit(weighted(c), y, qid=qid)
    np.testing.assert_allclose(model.predict(X), same.predict(weighted(c)), rtol=1e-8)


def test_a_useless_view_costs_little_and_columns_and_kernels_agree():
    y, qid = PROBLEM.y, PROBLEM.qid
    linear = ViewRankRLS(VIEWS, alphas=[0.1], metric="evidence").fit(X, y, qid=qid)
    # a sum of kernels in the dual is the same model
    first = View(slice(4), SumKernel((LinearKernel(),), (7.0,)))
    kernels = ViewRankRLS([first, VIEWS[1]], alphas=[0.1], metric="evidence").fit(X, y, qid=qid)
    np.testing.assert_allclose(kernels.view_weights_, linear.view_weights_, rtol=1e-9)
    assert linear.view_weights_[0] > 0.85
    assert not hasattr(kernels, "coef_")
    # alpha of the linear one stands beside a mean squared distance of 1, that of the other beside closed rules of 1
    assert np.corrcoef(kernels.predict(X), linear.predict(X))[0, 1] > 0.9


@pytest.mark.parametrize("views", [VIEWS, [GaussianKernel(0.1), View(slice(4), "linear")]])
def test_saved_sparse_and_with_basis_rows(views, tmp_path):
    y, qid = PROBLEM.y, PROBLEM.qid
    model = ViewRankRLS(views, n_basis=30, random_state=0).fit(X, y, qid=qid)
    corank.save(model, tmp_path / "model")
    np.testing.assert_array_equal(corank.load(tmp_path / "model").predict(X), model.predict(X))
    again = ViewRankRLS(views, n_basis=30, random_state=0).fit(sparse.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(again.predict(sparse.csr_array(X)), model.predict(X), rtol=1e-6, atol=1e-9)


def test_objects_have_views_by_functions():
    words = np.array(["aab", "abc", "bcd", "cde", "dde", "abd"], dtype=object)

    def shared(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A])

    def lengths(A, B):
        return np.array([[a.count("d") * b.count("d") for b in B] for a in A])

    model = ViewRankRLS([View(None, shared), View(None, lengths)]).fit(words, [0, 1, 2, 3, 4, 2])
    assert model.predict(words).shape == (6,)
    assert model.view_weights_.sum() == pytest.approx(1.0)
    with pytest.raises(InputError, match="give each view a kernel function"):
        ViewRankRLS(2, kernel=shared).fit(words, np.arange(6))


def test_few_rows_constant_views_and_what_is_refused():
    # two rows: nothing tells views apart
    model = ViewRankRLS([[0], [1]]).fit([[0.0, 1.0], [1.0, 3.0]], [0, 1])
    np.testing.assert_allclose(model.view_weights_, 0.5)
    # a view that is the same for all rows
    constant = ViewRankRLS([[0], [1]]).fit([[0.0, 1.0], [1.0, 1.0], [3.0, 1.0], [2.0, 1.0]], [0, 1, 3, 2])
    assert constant.predict([[0.0, 1.0], [3.0, 1.0]]) @ [-1, 1] > 0
    with pytest.raises(InputError, match="which a summary does not hold"):
        ViewRankRLS().pair_sums(X, PROBLEM.y, qid=PROBLEM.qid)
    with pytest.raises(InputError, match="cannot be part of a sum"):
        ViewRankRLS([LinearKernel(), View(None, "precomputed")]).fit(np.eye(4), np.arange(4))


TARGET = np.array([0.6, 0.3, 0.1, 0.0])


def nearness(c):
    return -float(np.sum((c - TARGET) ** 2))


def neighbours(c):
    """The weights that one step can reach: one view dropped, divided or multiplied by three."""
    for v in range(len(c)):
        for factor in (0, 1 / 3, 3):
            changed = [factor * weight if u == v else weight for u, weight in enumerate(c)]
            yield np.array(changed) / sum(changed)


def test_the_search_ends_at_what_no_step_betters():
    path = []

    def judge(c):
        path.append(c)
        return nearness(c)

    found = climb(judge, np.full(4, 0.25))
    assert found.sum() == pytest.approx(1.0)
    assert nearness(found) == max(map(nearness, path))
    # it ended by itself, not after its last step, at a local maximum
    assert len(path) < 1 + 8 * 12
    assert all(nearness(c) <= nearness(found) + 1e-8 for c in neighbours(found))
    # the same maximum as a search written out
    here = np.full(4, 0.25)
    while nearness(best := max(neighbours(here), key=nearness)) > nearness(here) + 1e-8:
        here = best
    np.testing.assert_allclose(found, here, rtol=1e-12)
    assert found[3] == 0.0


def test_the_search_ends_after_eight_steps():
    """Each step triples the first weight against the second: 3^8 to 1."""
    found = climb(lambda c: float(c[0]) if c[1] else 0.0, np.full(2, 0.5))
    np.testing.assert_allclose(found, np.array([3.0**8, 1.0]) / (3.0**8 + 1.0), rtol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_a_view_in_which_nothing_differs_has_no_weight(constant):
    made = make_ranking(20, 10, n_views=1, random_state=0)
    X = np.hstack([made.X, np.full((len(made.X), 3), constant)])
    model = ViewRankRLS([slice(10), slice(10, 13)]).fit(X, made.y, qid=made.qid)
    np.testing.assert_array_equal(model.view_weights_, [1.0, 0.0])
