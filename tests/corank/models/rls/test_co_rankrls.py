from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import corank
from corank.base.kernels import GaussianKernel, PrecomputedKernel
from corank.base.kernels.views import View
from corank.data.io.stores import open_store, write_store
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.rls import CoRankRLS

PROBLEM = make_ranking(20, (3, 9), random_state=1)
X, QID = PROBLEM.X[:, :8], PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.6, random_state=0)
MIXED = [View([0, 1, 2, 3], GaussianKernel(0.1)), View(slice(4, 8)), View(None, "gaussian", [0, 5, 9])]


def test_views_of_columns_kernels_and_bases_mix():
    model = CoRankRLS(MIXED, coupling=0.01, random_state=0).fit(X, Y, qid=QID)
    assert [None if basis is None else basis.rows.shape for basis in model.view_bases_] == [
        (len(model.view_bases_[0]), 4),
        None,
        (3, 8),
    ]
    # a linear view has weights of all columns, as given, and sees some of them
    assert (model.view_coefs_[1] != 0).tolist() == [False] * 4 + [True] * 4
    np.testing.assert_allclose(model.predict_views(X)[:, 1], X @ model.view_coefs_[1])
    np.testing.assert_allclose(model.predict(X), model.predict_views(X).mean(axis=1))
    assert model.score(X, PROBLEM.y, qid=QID) > 0.6


@pytest.mark.parametrize("alpha", [0.0, 1e-14, 1.0, 1e9])
@pytest.mark.parametrize("coupling", [0.0, 1e-9, 1e9])
def test_any_weights_give_finite_scores(alpha, coupling):
    model = CoRankRLS(MIXED, coupling=coupling, alpha=alpha, random_state=0).fit(X, Y, qid=QID)
    assert np.isfinite(model.predict_views(X)).all()
    assert model.jitter_ >= 0


def test_each_view_draws_its_own_basis():
    kernel = GaussianKernel(0.1)
    model = CoRankRLS([kernel, kernel], n_basis=6, coupling=0.01, random_state=0).fit(X, Y, qid=QID)
    assert not np.array_equal(model.view_bases_[0].numbers, model.view_bases_[1].numbers)
    again = CoRankRLS([kernel, kernel], n_basis=6, coupling=0.01, random_state=0).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_dense_csr_and_store_are_one(tmp_path):
    write_store(tmp_path / "rows.store", X, Y, QID)
    models = [
        CoRankRLS(2, coupling=0.1, random_state=0).fit(*given)
        for given in ((X, Y), (sparse.csr_array(X), Y))
    ]  # fmt: skip
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X))
    stored = CoRankRLS(2, coupling=0.1, random_state=0).fit(open_store(tmp_path / "rows.store").data)
    np.testing.assert_allclose(
        stored.predict(X), CoRankRLS(2, coupling=0.1, random_state=0).fit(X, Y, qid=QID).predict(X)
    )


def test_mixed_views_are_saved(tmp_path):
    model = CoRankRLS(MIXED, coupling=0.01, random_state=0).fit(X, Y, qid=QID)
    corank.save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(corank.load(tmp_path / "model.safetensors").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("params", "qid", "sentence"),
    [
        ({"views": 9}, QID, "views=9 needs one column per view, but X has n_features = 8; pass 1 to 8"),
        ({"views": [[0], [8]]}, QID, "a view has column 8, but X has columns 0 to 7"),
        ({"couplings": [1.0, np.inf]}, QID, "couplings is .*; pass a list of one or more finite numbers"),
        ({"views": [PrecomputedKernel()] * 2}, QID, "needs the Gram matrix of the training rows, but X has shape"),
        ({"alphas": [1.0, 2.0]}, np.zeros(len(Y)), "only one query has scored rows to compare"),
    ],
)
def test_mistakes_get_one_sentence(params, qid, sentence):
    with pytest.raises(InputError, match=sentence):
        CoRankRLS(**params).fit(X, Y, qid=qid)


def test_a_summary_holds_no_rows_to_leave_out():
    model = CoRankRLS(2, random_state=0)
    summary = model.pair_sums(X, Y, qid=QID)
    with pytest.raises(InputError, match="couplings need rows to leave out"):
        model.set_params(couplings=[0.1]).fit_pair_sums(summary)


def test_a_grid_of_no_coupling_is_a_path():
    grid = CoRankRLS(2, couplings=[0], alphas=[10.0, 0.1], random_state=0).fit(X, Y, qid=QID)
    path = CoRankRLS(2, coupling=0.0, alphas=[10.0, 0.1], random_state=0).fit(X, Y, qid=QID)
    assert grid.coupling_ == 0.0
    np.testing.assert_array_equal(grid.loo_scores_, path.loo_scores_)
    one = CoRankRLS(2, coupling=0.0, alpha=grid.alpha_, random_state=0).fit(X, Y, qid=QID)
    np.testing.assert_allclose(grid.predict(X), one.predict(X), rtol=1e-8)
