from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.utils._param_validation import InvalidParameterError

import corank
from corank.data.make import make_ranking
from corank.data.ranking import RankingData
from corank.data.split import QueryKFold
from corank.data.store import open_store, write_store
from corank.errors import InputError
from corank.kernels import GaussianKernel
from corank.moments import Moments
from corank.rls import CoRankRLS, RankRLS

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
@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_any_alpha_gives_finite_scores_of_a_sensible_size(how, alpha):
    # a constant column and repeated rows
    rows, y, qid = np.vstack([X, X[:30]]), np.concatenate([Y, Y[:30]]), np.concatenate([QID, QID[:30]])
    rows = np.column_stack([rows, np.ones(len(rows))])
    one = RankRLS(alpha, **how).fit(rows, y, qid=qid)
    path = RankRLS(alphas=[alpha], **how).fit(rows, y, qid=qid)
    for model in (one, path):
        scores = model.predict(rows)
        assert np.isfinite(scores).all()
        assert np.abs(scores).max() < 100
        assert model.score(rows, y, qid=qid) > 0.6
        assert model.jitter_ >= 0
    assert 0.0 <= path.loo_scores_[0] < 0.5
    assert (one.jitter_ > 0) == (alpha < 1e-8)


def test_a_wide_linear_problem_is_solved_in_the_dual():
    wide = np.random.default_rng(0).normal(size=(len(Y), 400))
    wide[:, :8] = X
    model = RankRLS(0.5).fit(wide, Y, qid=QID)
    assert model.rank_ < 400
    sums = Moments.of(RankingData.of(wide, Y, QID), ties=True).pair
    np.testing.assert_allclose(
        model.coef_, np.linalg.solve(sums[:-1, :-1] + 0.5 * np.eye(400), sums[:-1, -1]), atol=1e-8
    )


@settings
def test_csr_rows_give_the_same_ranker(how):
    one = RankRLS(0.5, **how).fit(sparse.csr_array(X), Y, qid=QID)
    np.testing.assert_allclose(one.predict(sparse.csr_array(X)), RankRLS(0.5, **how).fit(X, Y, qid=QID).predict(X))
    if "kernel" in how:
        assert sparse.issparse(one.basis_)


@settings
def test_a_store_is_read_in_blocks(how, tmp_path):
    write_store(tmp_path / "rows.store", X, Y, QID)
    data = open_store(tmp_path / "rows.store").data
    np.testing.assert_allclose(RankRLS(**how).fit(data).predict(X), RankRLS(**how).fit(X, Y, qid=QID).predict(X))


@settings
def test_preferences_are_differences_of_one(how):
    pairs = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])
    B = np.zeros((len(pairs), len(Y)))
    B[np.arange(len(pairs)), pairs[:, 0]], B[np.arange(len(pairs)), pairs[:, 1]] = 1, -1
    model = RankRLS(0.5, **how).fit(X, pairs=pairs, qid=QID)
    if "n_basis" in how:
        K = GAUSSIAN(X, model.basis_)
        A = K.T @ B.T @ B @ K + 0.5 * GAUSSIAN(model.basis_)
        expected = K @ np.linalg.lstsq(A, K.T @ B.T @ np.ones(len(pairs)), rcond=None)[0]
    else:
        K = GAUSSIAN(X) if "kernel" in how else X @ X.T
        expected = K @ np.linalg.solve(B.T @ B @ K + 0.5 * np.eye(len(Y)), B.T @ np.ones(len(pairs)))
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-7)


def test_preferences_choose_alpha_by_leaving_out_queries():
    pairs = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])
    found = RankRLS(alphas=[0.5, 1e6]).fit(X, pairs=pairs, qid=QID).loo_scores_
    errors = []
    for q in np.unique(QID[pairs[:, 0]]):
        own = QID[pairs[:, 0]] == q
        f = RankRLS(0.5).fit(X, pairs=pairs[~own], qid=QID).predict(X)
        errors.append(np.mean(f[pairs[own, 0]] < f[pairs[own, 1]]))
    assert found[0] == pytest.approx(np.mean(errors))


def test_a_precomputed_kernel_is_split_by_scikit_learn():
    K = GAUSSIAN(X)
    search = GridSearchCV(RankRLS(kernel="precomputed"), {"alpha": [0.1, 10.0]}, cv=QueryKFold(3))
    with config_context(enable_metadata_routing=True):
        search.fit(K, Y, qid=QID)
    np.testing.assert_allclose(
        search.predict(K), RankRLS(search.best_params_["alpha"], GAUSSIAN).fit(X, Y, qid=QID).predict(X), atol=1e-9
    )


def test_a_second_fit_forgets_the_first():
    model = RankRLS(kernel=GAUSSIAN, alphas=[1.0, 2.0]).fit(X, Y, qid=QID)
    model.set_params(kernel="linear", alphas=None).fit(X, Y, qid=QID)
    assert not {"dual_coef_", "basis_", "path_", "loo_scores_"} & set(vars(model))


def test_the_best_alpha_is_kept():
    alphas = np.logspace(-4, 4, 9)
    for metric, pick in (("nDCG@5", np.argmax), ("disagreement", np.argmin)):
        model = RankRLS(kernel=GAUSSIAN, alphas=alphas, metric=metric).fit(X, Y, qid=QID)
        at = pick(model.loo_scores_)
        assert model.alpha_ == alphas[at]
        np.testing.assert_array_equal(model.dual_coef_, model.path_[at])
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
        ({"alphas": [1.0, -1.0]}, {}, "none below zero"),
        ({"metric": "nDGC"}, {}, "'nDGC' is not a known metric"),
        ({"alphas": [1.0], "metric": "nDCG"}, {"qid": None}, "one query cannot be left out"),
        ({"kernel": "precomputed"}, {}, r"needs the Gram matrix of the training rows, but X has shape"),
        ({"kernel": "cubic"}, {}, "kernel is 'cubic'; choose one of linear"),
        ({"query_weight": "equal"}, {"y": None, "pairs": [[0, 1]]}, "given pairs weigh alike"),
        ({}, {"pairs": [[0, 1]]}, "y came beside pairs; pass scores or preferences"),
        ({}, {"sample_weight": np.eye(1, len(Y))[0]}, "the weights leave no pair of positive weight"),
        ({"basis": "first"}, {}, "basis is 'first'; choose random"),
        ({"alphas": ["small"]}, {}, r"alphas is \['small'\]; pass a list of one or more finite numbers"),
        ({"alphas": [1.0]}, {"qid": None, "sample_weight": Y[0] == Y}, "disagreement is defined for no query"),
    ],
)
def test_mistakes_get_one_sentence(params, given, sentence):
    with pytest.raises(InputError, match=sentence):
        RankRLS(**params).fit(X, **{"y": Y, "qid": QID, **given})


def test_three_rows_leave_no_pair_to_learn_from():
    with pytest.raises(InputError, match="needs four rows or more in the query, and it has 3"):
        RankRLS(alphas=[1.0]).fit(X[:3], [0, 1, 2])


def test_parameters_of_the_wrong_kind_are_refused():
    for params in ({"alpha": -1.0}, {"n_basis": 0}, {"query_weight": "sizes"}):
        with pytest.raises(InvalidParameterError):
            RankRLS(**params).fit(X, Y, qid=QID)


def test_a_dense_system_has_no_summary_and_a_summary_no_path():
    with pytest.raises(InputError, match="a dense system is no sum over queries; set n_basis"):
        RankRLS(kernel=GAUSSIAN).summary(X, Y, qid=QID)
    with pytest.raises(InputError, match="which a summary does not hold; pass alpha"):
        RankRLS(alphas=[1.0]).fit_summary(RankRLS().summary(X, Y, qid=QID))
    with pytest.raises(InputError, match="pass alphas to have a path"):
        RankRLS().fit(X, Y, qid=QID).predict_path(X)


def test_alphas_keep_their_order_and_may_repeat():
    one, other = (RankRLS(alphas=alphas).fit(X, Y, qid=QID) for alphas in ([1e3, 0.1, 1e3, 1.0], [0.1, 1.0, 1e3]))
    np.testing.assert_allclose(one.loo_scores_, other.loo_scores_[[2, 0, 2, 1]])
    np.testing.assert_allclose(one.path_, other.path_[[2, 0, 2, 1]])


@pytest.mark.parametrize("alphas", [None, [0.0, 1.0]], ids=["one", "path"])
def test_rows_too_large_to_square_get_one_sentence(alphas):
    with pytest.raises(InputError, match="exceed what float64 holds; scale the columns"):
        RankRLS(0.0, alphas=alphas).fit(X * 1e200, Y, qid=QID)


def test_summaries_of_other_shapes_get_one_sentence():
    summary = RankRLS().summary(X, Y, qid=QID)
    with pytest.raises(InputError, match="X has 3 columns, but the system is of 8"):
        RankRLS().summary(X[:, :3], Y, qid=QID, like=summary)
    with pytest.raises(InputError, match="the summary is of 2 views, and one was wanted; use CoRankRLS"):
        RankRLS().fit_summary(CoRankRLS(2).summary(X, Y, qid=QID))
    with pytest.raises(InputError, match="given pairs weigh alike"):
        RankRLS(query_weight="rows").summary(X, pairs=[[0, 1]])
    with pytest.raises(InputError, match="sum another part first, and pass its summary as like"):
        RankRLS(n_basis=3).summary(X, np.full(len(X), np.nan), qid=QID)


def test_single_precision_rows_are_scored_in_double():
    model, rows = RankRLS().fit(X, Y, qid=QID), X.astype(np.float32)
    np.testing.assert_allclose(model.predict(rows), rows.astype(np.float64) @ model.coef_, rtol=1e-13)
