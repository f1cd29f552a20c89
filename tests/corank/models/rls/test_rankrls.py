from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import corank
from corank.base.kernels import GaussianKernel
from corank.base.pairs import Moments
from corank.data.io.stores import open_store, write_store
from corank.data.ranking import RankingData
from corank.data.splits import QueryKFold
from corank.data.synthetic import make_ranking
from corank.errors import InputError, UsageWarning
from corank.models.rls import CoRankRLS, RankRLS, rankrls

PROBLEM = make_ranking(20, (2, 9), random_state=1)
X, Y, QID = PROBLEM.X[:, :8], PROBLEM.y, PROBLEM.qid
GAUSSIAN = GaussianKernel(0.1)
SETTINGS = {
    "primal": {},
    "dense": {"kernel": GAUSSIAN},
    "sparse": {"kernel": GAUSSIAN, "n_basis": 15, "random_state": 0},
}
settings = pytest.mark.parametrize("how", SETTINGS.values(), ids=SETTINGS.keys())


@settings
@pytest.mark.parametrize("alpha", [0.0, 1e-14, 1e-6, 1e-3, 1e3, 1e9])
def test_any_alpha_gives_finite_scores_of_a_sensible_size(how, alpha):
    # a constant column and repeated rows
    rows, y, qid = np.vstack([X, X[:30]]), np.concatenate([Y, Y[:30]]), np.concatenate([QID, QID[:30]])
    rows = np.column_stack([rows, np.ones(len(rows))])
    one = RankRLS(alpha, scale=False, **how).fit(rows, y, qid=qid)
    path = RankRLS(alphas=[alpha], metric="disagreement", scale=False, **how).fit(rows, y, qid=qid)
    for model in (one, path):
        scores = model.predict(rows)
        assert np.isfinite(scores).all()
        assert np.abs(scores).max() < 100
        assert model.score(rows, y, qid=qid) > 0.6
        assert model.jitter_ >= 0
    assert 0.0 <= path.loo_scores_[0] < 0.6
    assert (one.jitter_ > 0) == (alpha < 1e-12)


def test_a_wide_linear_problem_is_solved_in_the_dual():
    wide = np.random.default_rng(0).normal(size=(len(Y), 400))
    wide[:, :8] = X
    model = RankRLS(0.5, scale=False).fit(wide, Y, qid=QID)
    assert model.rank_ < 400
    sums = Moments.of(RankingData.of(wide, Y, QID))
    pair = sums.pair / sums.pair_weight
    np.testing.assert_allclose(
        model.coef_, np.linalg.solve(pair[:-1, :-1] + 0.5 * np.eye(400), pair[:-1, -1]), atol=1e-8
    )


@settings
def test_csr_rows_give_the_same_ranker(how):
    one = RankRLS(0.5, **how).fit(sparse.csr_array(X), Y, qid=QID)
    np.testing.assert_allclose(one.predict(sparse.csr_array(X)), RankRLS(0.5, **how).fit(X, Y, qid=QID).predict(X))
    if "kernel" in how:
        assert sparse.issparse(one.basis_.rows)


@settings
def test_a_store_is_read_in_blocks(how, tmp_path):
    write_store(tmp_path / "rows.store", X, Y, QID)
    data = open_store(tmp_path / "rows.store").data
    np.testing.assert_allclose(RankRLS(**how).fit(data).predict(X), RankRLS(**how).fit(X, Y, qid=QID).predict(X))


def test_a_precomputed_kernel_is_split_by_scikit_learn():
    K = GAUSSIAN(X)
    search = GridSearchCV(RankRLS(kernel="precomputed"), {"alpha": [1e-3, 0.1]}, cv=QueryKFold(3))
    with config_context(enable_metadata_routing=True):
        search.fit(K, Y, qid=QID)
    np.testing.assert_allclose(
        search.predict(K),
        RankRLS(search.best_params_["alpha"], GAUSSIAN, scale=False).fit(X, Y, qid=QID).predict(X),
        atol=1e-9,
    )


def test_a_second_fit_forgets_the_first():
    model = RankRLS(kernel=GAUSSIAN, alphas=[1.0, 2.0]).fit(X, Y, qid=QID)
    model.set_params(kernel="linear", alphas=None).fit(X, Y, qid=QID)
    assert not {"dual_coef_", "basis_", "alpha_path_", "loo_scores_"} & set(vars(model))


@pytest.mark.parametrize(
    ("params", "given", "sentence"),
    [
        ({"kernel": "cubic"}, {}, "kernel is 'cubic'"),
        ({"kernel": lambda A, B: A[:, :1] + 0 * B[:, 0]}, {}, "the kernel is not symmetric"),
        ({"kernel": lambda A, B: -A @ B.T}, {}, "the kernel is not positive semidefinite"),
        ({}, {"X": X[:, :3] * 1e200}, "overflow float64"),
        ({}, {"y": np.zeros(len(Y))}, "no two of the"),
        ({"alphas": [1.0], "metric": "nDCG"}, {"qid": np.zeros(len(Y))}, "there is one query, but metric="),
    ],
)
def test_a_failed_fit_leaves_the_old_model(params, given, sentence):
    model = RankRLS(kernel=GAUSSIAN).fit(X, Y, qid=QID)
    old = model.predict(X)
    with pytest.raises(InputError, match=sentence):
        model.set_params(scale=False, **params).fit(**{"X": X, "y": Y, "qid": QID, **given})
    np.testing.assert_array_equal(model.predict(X), old)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_a_failed_summary_leaves_the_old_model():
    model = RankRLS().fit(X, Y, qid=QID)
    old, unscored = model.predict(X), np.full(len(X), np.nan)
    with pytest.raises(InputError, match="no part of the summary holds"):
        model.fit_pair_sums(model.pair_sums(X[:, :3], unscored, qid=QID))
    np.testing.assert_array_equal(model.predict(X), old)


def test_the_best_alpha_is_kept():
    alphas = np.logspace(-6, 2, 9)
    for metric, pick in (("nDCG@5", np.argmax), ("disagreement", np.argmin)):
        model = RankRLS(kernel=GAUSSIAN, alphas=alphas, metric=metric).fit(X, Y, qid=QID)
        at = pick(model.loo_scores_)
        assert model.alpha_ == alphas[at]
        np.testing.assert_array_equal(model.dual_coef_, model.alpha_path_[at])
        np.testing.assert_allclose(model.predict_path(X)[:, at], model.predict(X))


def test_a_path_and_a_sparse_model_are_saved(tmp_path):
    model = RankRLS(kernel="gaussian", alphas=[0.1, 1.0], n_basis=9, random_state=0).fit(X, Y, qid=QID)
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_path(X), model.predict_path(X))
    with pytest.raises(InputError, match="cannot be saved"):
        corank.save(RankRLS(kernel=lambda A, B: A @ B.T).fit(X, Y, qid=QID), tmp_path / "function.safetensors")
    assert not (tmp_path / "function.safetensors").exists()


@pytest.mark.parametrize(
    ("params", "given", "sentence"),
    [
        ({"alphas": []}, {}, r"alphas is \[\]; pass a list of one or more finite numbers"),
        ({"alphas": [1.0, -1.0]}, {}, "finite numbers from 0"),
        ({"metric": "nDGC"}, {}, "'nDGC' is not a known metric"),
        ({"alphas": [1.0], "metric": "nDCG"}, {"qid": None}, "there is one query, but metric="),
        ({"kernel": "precomputed"}, {}, r"needs the Gram matrix of the training rows, but X has shape"),
        ({"kernel": "cubic"}, {}, "kernel is 'cubic'; choose one of linear"),
        ({"alpha": 1.0, "alphas": [1.0]}, {}, "alpha and alphas were both given"),
        ({}, {"pairs": [[0, 1]]}, "y and pairs were both given; pass scores or preferences"),
        ({}, {"sample_weight": np.eye(1, len(Y))[0]}, "no pair has a positive weight"),
        ({"basis": "first"}, {}, "basis is 'first'; choose one of random"),
        ({"alphas": ["small"]}, {}, r"alphas is \['small'\]; pass a list of one or more finite numbers"),
        ({"alphas": [1.0]}, {"qid": None, "y": np.eye(len(Y))[0]}, "disagreement is undefined for every left-out"),
    ],
)
def test_mistakes_get_one_sentence(params, given, sentence):
    with pytest.raises(InputError, match=sentence):
        RankRLS(**params).fit(X, **{"y": Y, "qid": QID, **given})


def test_three_rows_leave_no_pair_to_learn_from():
    with pytest.raises(InputError, match="the one query has 3 rows"):
        RankRLS(alphas=[1.0]).fit(X[:3], [0, 1, 2])


@pytest.mark.parametrize("params", [{"alpha": -1.0}, {"n_basis": 0}, {"query_weight": "sizes"}, {"ties": "no"}])
def test_parameters_of_the_wrong_kind_are_refused(params):
    ((name, value),) = params.items()
    with pytest.raises(InputError, match=f"{name} is {value!r}; pass "):
        RankRLS(**params).fit(X, Y, qid=QID)


def test_a_dense_system_has_no_summary_and_a_summary_no_path():
    with pytest.raises(InputError, match="the dense system is not a sum over queries"):
        RankRLS(kernel=GAUSSIAN).pair_sums(X, Y, qid=QID)
    with pytest.raises(InputError, match="which a summary does not hold; pass alpha"):
        RankRLS(alphas=[1.0]).fit_pair_sums(RankRLS().pair_sums(X, Y, qid=QID))
    with pytest.raises(InputError, match="pass alphas to fit a path"):
        RankRLS().fit(X, Y, qid=QID).predict_path(X)


def test_alphas_keep_their_order_and_may_repeat():
    one, other = (RankRLS(alphas=alphas).fit(X, Y, qid=QID) for alphas in ([1e3, 0.1, 1e3, 1.0], [0.1, 1.0, 1e3]))
    np.testing.assert_allclose(one.loo_scores_, other.loo_scores_[[2, 0, 2, 1]])
    np.testing.assert_allclose(one.alpha_path_, other.alpha_path_[[2, 0, 2, 1]])


@pytest.mark.parametrize("alphas", [None, [0.0, 1.0]], ids=["one", "path"])
def test_rows_too_large_to_square_get_one_sentence(alphas):
    with pytest.raises(InputError, match="overflow float64; rescale the columns"):
        RankRLS(alphas=alphas, scale=False).fit(X * 1e200, Y, qid=QID)


def test_summaries_of_other_shapes_get_one_sentence():
    summary = RankRLS().pair_sums(X, Y, qid=QID)
    with pytest.raises(InputError, match="X has 3 columns, but the summary has 8"):
        RankRLS().pair_sums(X[:, :3], Y, qid=QID, like=summary)
    with pytest.raises(InputError, match="the summary has 2 views"):
        RankRLS().fit_pair_sums(CoRankRLS(2).pair_sums(X, Y, qid=QID))
    with pytest.raises(InputError, match="sum another part first"):
        RankRLS(n_basis=3).pair_sums(X, np.full(len(X), np.nan), qid=QID)


def test_a_summary_is_solved_for_what_it_was_summed_for():
    summary = RankRLS(ties=True).pair_sums(X, Y, qid=QID)
    with pytest.raises(InputError, match="the summary has ties=True"):
        RankRLS().fit_pair_sums(summary)
    with pytest.raises(InputError, match="the summary has query_weight='pairs'"):
        RankRLS(ties=True, query_weight="rows").fit_pair_sums(summary)


@pytest.mark.parametrize("make", [lambda: RankRLS(kernel=GAUSSIAN), lambda: CoRankRLS(2, random_state=0)])
def test_weights_too_different_to_compare_get_one_sentence(make):
    with pytest.raises(InputError, match="no pair has a positive weight"):
        make().fit(X[:2], [0, 1], sample_weight=[1e10, 1e-9])


def test_single_precision_rows_are_scored_in_double():
    model, rows = RankRLS().fit(X, Y, qid=QID), X.astype(np.float32)
    np.testing.assert_allclose(model.predict(rows), rows.astype(np.float64) @ model.coef_, rtol=1e-13)


def test_many_rows_have_random_basis_rows_by_default(monkeypatch):
    monkeypatch.setattr(rankrls, "_MANY_ROWS", 40)
    monkeypatch.setattr(rankrls, "_AUTO_BASIS", 15)
    n = len(Y)
    with pytest.warns(UsageWarning, match="rows are approximated by 15 basis rows"):
        model = RankRLS(kernel=GAUSSIAN, random_state=0).fit(X, Y, qid=QID)
    same = RankRLS(kernel=GAUSSIAN, n_basis=15, random_state=0).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    better, worse = np.nonzero((Y[:, None] > Y) & (QID[:, None] == QID))
    pairs = np.column_stack([better, worse])
    with pytest.warns(UsageWarning, match="15 basis rows"):
        assert len(RankRLS(kernel=GAUSSIAN, random_state=0).fit(X, pairs=pairs).dual_coef_) == 15
    with warnings.catch_warnings():
        warnings.simplefilter("error", UsageWarning)
        # all rows if there are few or the user says so; rows that the user gave; a linear kernel has no need
        first = np.flatnonzero(QID < 5)
        assert len(RankRLS(kernel=GAUSSIAN).fit(X[first], Y[first], qid=QID[first]).dual_coef_) <= 40
        assert len(RankRLS(kernel=GAUSSIAN, n_basis=None).fit(X, Y, qid=QID).dual_coef_) > 40
        assert len(RankRLS(kernel=GAUSSIAN, basis=[1, 5, 9]).fit(X, Y, qid=QID).dual_coef_) == 3
        linear = RankRLS(0.5, scale=False).fit(np.hstack([X, np.zeros((n, n))]), Y, qid=QID)
    np.testing.assert_allclose(linear.coef_[:8], RankRLS(0.5, scale=False).fit(X, Y, qid=QID).coef_, atol=1e-8)


def test_a_nearly_constant_column_does_not_cost_the_digits_of_the_others():
    """More columns than rows: the Gram matrix of rows with a large constant would be all rounding errors."""
    rng = np.random.default_rng(0)
    X, qid, y = rng.normal(size=(24, 40)), np.repeat(np.arange(4), 6), rng.integers(0, 3, 24).astype(float)
    X[:, 3] = 1e6 + qid + 1e-3 * rng.integers(0, 9, 24)
    centred = X - np.array([X[qid == q].mean(axis=0) for q in range(4)])[qid]
    model, expected = (RankRLS(0.1).fit(rows, y, qid=qid) for rows in (X, centred))
    np.testing.assert_allclose(model.coef_ / model.column_scale_, expected.coef_ / expected.column_scale_, atol=1e-5)
