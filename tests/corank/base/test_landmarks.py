from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from corank.base.kernels import GaussianKernel
from corank.base.transformers import Landmarks
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.linear import SPD


@pytest.mark.thin(3)
@parametrize_with_checks([Landmarks(5), Landmarks(3, "linear", basis="kmeans++", random_state=0)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("selection", ["random", "kmeans++"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_it_is_the_kernel_against_chosen_rows(selection, kind):
    X = np.random.default_rng(0).normal(size=(50, 3))
    found = Landmarks(7, GaussianKernel(0.3), basis=selection, scale=False, random_state=1).fit(kind(X))
    chosen = X[found.basis_.numbers]
    want = np.exp(-0.3 * ((X[:, None, :] - chosen[None, :, :]) ** 2).sum(axis=2))
    np.testing.assert_allclose(found.transform(kind(X)), want, rtol=1e-10)
    assert len(np.unique(found.basis_.numbers)) == 7
    again = Landmarks(7, GaussianKernel(0.3), basis=selection, scale=False, random_state=1).fit(kind(X))
    np.testing.assert_array_equal(again.basis_.numbers, found.basis_.numbers)


def test_spread_out_landmarks_reach_every_cluster():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [100.0], [200.0]], [980, 10, 10], axis=0) + rng.normal(size=(1000, 1))
    found = Landmarks(3, "linear", basis="kmeans++", scale=False, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(found.basis_.rows[:, 0]), [0, 100, 200], atol=5)


def test_fewer_rows_than_landmarks_and_equal_rows():
    assert Landmarks(100).fit_transform(np.arange(6.0)[:, None]).shape == (6, 6)
    for selection in ("random", "kmeans++"):
        np.testing.assert_allclose(Landmarks(3, "gaussian", basis=selection).fit_transform(np.ones((5, 2))), 1.0)


def test_float32_stays_float32():
    X = np.random.default_rng(0).normal(size=(20, 3))
    found = Landmarks(4, random_state=0).fit(X)
    assert found.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(found.transform(X.astype(np.float32)), found.transform(X), rtol=1e-4)


def test_a_linear_ranker_learns_a_curve():
    rng = np.random.default_rng(0)
    X, qid = rng.uniform(-2, 2, (400, 1)), np.repeat(np.arange(40), 10)
    y = -np.abs(X[:, 0])
    scores = []
    for steps in ([], [Landmarks(20, random_state=0)]):
        model = make_pipeline(*steps, SPD(loss="squared", alpha=1e-3))
        model.fit(X, y, spd__qid=qid)
        scores.append(model[-1].score(model[:-1].transform(X) if steps else X, y, qid=qid))
    assert scores[0] < 0.7 < 0.95 < scores[1]


def test_bad_parameters():
    X = make_ranking(2, 5, random_state=0).X
    with pytest.raises(ValueError, match="n_basis is 0; pass a whole number of at"):
        Landmarks(0).fit(X)
    with pytest.raises(InputError, match="precomputed kernel has similarities"):
        Landmarks(2, "precomputed").fit(X)
    with pytest.raises(InputError, match="X is sparse"):
        Landmarks(2, "laplacian").fit(sparse.csr_array(X)).transform(sparse.csr_array(X))


def test_columns_of_any_size_are_seen_alike():
    X = np.random.default_rng(0).normal(size=(30, 3))
    units = np.array([1e-6, 1.0, 1e9])
    one, other = (Landmarks(5, random_state=0).fit(rows) for rows in (X, X * units))
    np.testing.assert_allclose(one.transform(X), other.transform(X * units), rtol=1e-8)
    assert not hasattr(Landmarks(5, "cosine").fit(X), "column_scale_")


def test_a_failed_fit_leaves_the_old_landmarks():
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = Landmarks(5, random_state=0).fit(X)
    before = model.transform(X)
    with pytest.raises(InputError):
        model.fit(X[:1, :2])
    np.testing.assert_array_equal(model.transform(X), before)


def test_objects_are_compared_by_a_function():
    words = ["abc", "bcd", "xyz", "ab", "cd", "yz"]

    def shared(A, B):
        return [[len(set(a) & set(b)) for b in B] for a in A]

    model = Landmarks(3, shared, basis=[0, 2, 4]).fit(words)
    np.testing.assert_array_equal(model.transform(["ax", "cdz"]), shared(["ax", "cdz"], ["abc", "xyz", "cd"]))
    table = np.random.default_rng(0).normal(size=(8, 3))
    assert model.set_params(kernel="linear").fit(table).n_features_in_ == 3
    assert not hasattr(model.set_params(kernel=shared).fit(words), "n_features_in_")
