from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from corank import QuerySearchCV, RankRLS, load, save
from corank.base.smooth import NeighborSmoother
from corank.errors import InputError, UsageWarning


@pytest.mark.thin(3)
@parametrize_with_checks([NeighborSmoother(), NeighborSmoother(1.0, 2, 3, random_state=0)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def texts(n, seed=0):
    """Rows of norm 1 about five topics of twenty words each; every tenth is empty."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 100))
    for i in range(n):
        if i % 10:
            np.add.at(X[i], 20 * rng.integers(5) + rng.integers(20, size=8), 1.0)
            np.add.at(X[i], rng.integers(100, size=2), 1.0)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return sparse.csr_array(np.divide(X, norms, where=norms > 0, out=X))


def unit(A):
    norms = np.linalg.norm(A, axis=1, keepdims=True)
    return np.divide(A, norms, where=norms > 1e-9, out=np.zeros_like(A))


def by_hand(fitted, new, weight, k, r, same=None):
    """z·z' does not depend on the signs of the directions: similarities of all pairs of new rows, by a dense SVD."""
    V = np.linalg.svd(fitted)[2][:r].T
    u, places = unit(new @ V), unit(fitted @ V)
    z = np.zeros_like(u)
    for i, row in enumerate(u):
        if row.any():
            others = [j for j in range(len(places)) if places[j].any() and (same is None or j != same[i])]
            near = sorted(others, key=lambda j: -(row @ places[j]))[:k]
            z[i] = 0.5 * row + 0.5 * places[near].mean(axis=0)
    z = unit(z)
    return (1 - weight) * new @ new.T + weight * z @ z.T


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, np.asarray])
@pytest.mark.parametrize("block", [1, 1 << 22])
def test_it_is_the_mean_of_the_nearest_rows_by_brute_force(kind, block, monkeypatch):
    monkeypatch.setattr("corank.base.smooth._BLOCK", block)
    A, new = texts(60).toarray(), texts(30, seed=1).toarray()
    # as many dimensions as columns would leave the randomised decomposition nothing to miss
    model = NeighborSmoother(0.4, 3, 95, random_state=0).fit(kind(A))
    r = len(model.components_)
    assert r == 30
    V = np.linalg.svd(A)[2][:r]
    np.testing.assert_allclose(np.abs(np.diag(model.components_ @ V.T)[:5]), 1.0, atol=1e-6)
    found = model.transform(kind(A))
    dense = found.toarray() if sparse.issparse(found) else found
    assert type(found) is type(kind(A))
    # the directions it found, so that the rest is compared exactly
    monkeypatch.setattr(np.linalg, "svd", lambda _: (None, None, model.components_))
    np.testing.assert_allclose(dense @ dense.T, by_hand(A, A, 0.4, 3, r, same=range(60)), atol=1e-10)
    later = model.transform(kind(new))
    dense = later.toarray() if sparse.issparse(later) else later
    np.testing.assert_allclose(dense @ dense.T, by_hand(A, new, 0.4, 3, r), atol=1e-10)


def test_few_columns_are_decomposed_exactly():
    A = unit(np.random.default_rng(0).normal(size=(40, 8)))
    found = NeighborSmoother(0.5, 4, 5, random_state=0).fit_transform(A)
    np.testing.assert_allclose(found @ found.T, by_hand(A, A, 0.5, 4, 5, same=range(40)), atol=1e-9)


def test_a_fitted_row_is_transformed_alike_whenever_it_comes():
    X = texts(80)
    model = NeighborSmoother(n_components=20, random_state=0)
    whole = model.fit_transform(X).toarray()
    alone = np.vstack([model.transform(X[[i]]).toarray() for i in range(80)])
    np.testing.assert_allclose(alone, whole, atol=1e-12)
    # a repeated row has its duplicate as a neighbour, whichever of the two is transformed
    twice = sparse.vstack([X, X[[1]]], format="csr")
    found = NeighborSmoother(n_components=20, random_state=0).fit_transform(twice).toarray()
    np.testing.assert_allclose(found[1], found[80], atol=1e-12)


def test_empty_rows_stay_zero_and_are_nobodys_neighbours():
    X = texts(80)
    empty = np.diff(X.indptr) == 0
    model = NeighborSmoother(n_components=10, random_state=0)
    found = model.fit_transform(X).toarray()
    assert empty.sum() == 8
    assert not found[empty].any()
    assert len(model.embedding_) == 72
    np.testing.assert_allclose(np.linalg.norm(found[~empty], axis=1), 1.0)
    nothing = sparse.csr_array((5, 4))
    assert not NeighborSmoother().fit_transform(nothing).toarray().any()
    # a word that no fitted row has
    wide = sparse.hstack([X, sparse.csr_array((80, 1))], format="csr")
    new = sparse.csr_array(([1.0], ([0], [100])), shape=(1, 101))
    found = NeighborSmoother(0.5, 3, 10, random_state=0).fit(wide).transform(new).toarray()
    np.testing.assert_allclose(found[0, :101], new.toarray()[0] * np.sqrt(0.5))
    assert not found[0, 101:].any()


def test_float32_stays_float32():
    X = texts(60)
    model = NeighborSmoother(n_components=10, random_state=0).fit(X)
    found = model.transform(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), model.transform(X).toarray(), atol=1e-5)
    small = NeighborSmoother(n_components=10, random_state=0).fit(X.astype(np.float32))
    assert small.components_.dtype == small.embedding_.dtype == np.float32


def test_it_warns_where_it_was_found_to_hurt():
    X = texts(1200)
    full = X[np.diff(X.indptr) > 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UsageWarning)
        NeighborSmoother(n_components=5).fit(X)
    with pytest.warns(UsageWarning, match="X has 900 rows"):
        NeighborSmoother(n_components=5).fit(X[:900])
    with pytest.warns(UsageWarning, match="X is dense, but NeighborSmoother"):
        NeighborSmoother(n_components=5).fit(X.toarray())
    with pytest.warns(UsageWarning, match="norm is not 1"):
        NeighborSmoother(n_components=5).fit(3.0 * full)


def test_bad_input():
    with pytest.raises(InputError, match="weight is 2; pass a number of at least 0 and"):
        NeighborSmoother(2).fit(texts(20))
    with pytest.raises(InputError, match="n_neighbors is 0"):
        NeighborSmoother(n_neighbors=0).fit(texts(20))
    with pytest.raises(InputError, match="1 sample"):
        NeighborSmoother().fit(texts(1))


def test_names_of_columns():
    vectoriser = TfidfVectorizer().fit(["tin mine", "corn", "tin", "mine of corn"])
    model = NeighborSmoother(n_components=2).fit(vectoriser.transform(["tin mine", "corn", "tin", "mine of corn"]))
    names = model.get_feature_names_out(vectoriser.get_feature_names_out())
    assert names.tolist() == ["corn", "mine", "of", "tin", "smooth0", "smooth1"]


def test_it_joins_words_that_never_met_in_a_judged_row():
    """Four judged rows show 24 of a topic's 200 words: only unjudged rows say which others belong to it."""
    rng = np.random.default_rng(0)
    topic = rng.integers(2, size=1500)
    A = np.zeros((1500, 400))
    for i, t in enumerate(topic):
        A[i, 200 * t + rng.choice(200, 6, replace=False)] = 1.0
    X = sparse.csr_array(unit(A))
    y = np.where(np.arange(1500) < 4, topic, np.nan)
    assert 0 < topic[:4].sum() < 4
    plain = RankRLS(scale=False).fit(X, y)
    smooth = make_pipeline(NeighborSmoother(n_components=20, random_state=0), RankRLS(scale=False)).fit(X, y)
    assert smooth.score(X, topic) > 0.99 > plain.score(X, topic) + 0.1


def test_a_search_chooses_its_weight_and_the_best_is_saved(tmp_path):
    X, rng = texts(120), np.random.default_rng(0)
    y, qid = np.asarray(X @ rng.normal(size=100)) > 0, np.repeat([f"q{i}" for i in range(12)], 10)
    model = make_pipeline(NeighborSmoother(n_components=10, random_state=0), RankRLS(scale=False))
    search = QuerySearchCV(model, {"neighborsmoother__weight": [0.0, 0.5]}, cv=3).fit(X, y.astype(float), qid=qid)
    save(search.best_estimator_, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(X), search.predict(X))


def test_parts_that_do_not_fit_together_show_when_a_file_is_read(tmp_path):
    X = texts(120)
    model = make_pipeline(NeighborSmoother(n_components=10, random_state=0), RankRLS(scale=False)).fit(
        X, np.arange(120) % 2.0
    )
    model[0].embedding_ = model[0].embedding_[:, :5].copy()
    save(model, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="whose parts do not fit together"):
        load(tmp_path / "model.safetensors")
