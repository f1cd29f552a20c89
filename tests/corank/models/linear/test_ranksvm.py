"""RankSVM against an explicit sum over pairs and a general optimiser."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from corank.base.kernels import GaussianKernel
from corank.base.solvers.penalty import default_alpha
from corank.core.rows.access import ScaledRows
from corank.data.ranking import RankingData
from corank.data.splits import QueryKFold
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.linear import RankSVM

PROBLEM = make_ranking(6, (2, 9), random_state=1)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid
KERNEL = GaussianKernel(0.03)


def pairs_of(y, qid):
    out = []
    for i, j in combinations(range(len(y)), 2):
        if qid[i] == qid[j] and y[i] != y[j]:
            out.append((i, j) if y[i] > y[j] else (j, i))
    return np.array(out)


PAIRS = pairs_of(Y, QID)


def objective(f, penalty):
    short = np.maximum(0.0, 1.0 - (f[PAIRS[:, 0]] - f[PAIRS[:, 1]]))
    return 0.5 * (short**2).mean() + penalty


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_linear_optimum(alpha):
    found = minimize(
        lambda w: objective(X @ w, 0.5 * alpha * w @ w), np.zeros(20), method="BFGS", options={"gtol": 1e-9}
    )
    model = RankSVM(alpha, scale=False).fit(X, Y, qid=QID)
    assert model.objective_ == pytest.approx(objective(X @ model.coef_, 0.5 * alpha * model.coef_ @ model.coef_))
    assert model.objective_ <= found.fun + 1e-9
    np.testing.assert_allclose(model.coef_, found.x, atol=1e-4)


@pytest.mark.parametrize(("n_basis", "basis"), [(None, "random"), (12, "random"), (12, "kmeans++"), (None, [3, 1, 9])])
def test_kernel_optimum_in_the_span_of_the_basis(n_basis, basis):
    model = RankSVM(0.05, KERNEL, n_basis=n_basis, basis=basis, scale=False, random_state=0).fit(X, Y, qid=QID)
    rows = model.basis_.numbers
    assert n_basis is None or len(rows) == n_basis
    Kr, K = KERNEL(X, X[rows]), KERNEL(X[rows])

    def value(a):
        return objective(Kr @ a, 0.025 * a @ K @ a)

    assert model.objective_ == pytest.approx(value(model.dual_coef_))
    rng = np.random.default_rng(0)
    for scale in (1e-1, 1e-3, 1e-5):
        for _ in range(20):
            assert value(model.dual_coef_ + scale * rng.normal(size=len(K))) >= model.objective_ - 1e-12
    # stationary: the derivative of the objective vanishes
    margin = (Kr @ model.dual_coef_)[PAIRS[:, 0]] - (Kr @ model.dual_coef_)[PAIRS[:, 1]]
    slope = -np.maximum(0.0, 1.0 - margin) / len(PAIRS)
    gradient = (Kr[PAIRS[:, 0]] - Kr[PAIRS[:, 1]]).T @ slope + 0.05 * K @ model.dual_coef_
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", KERNEL])
def test_the_support_is_what_lies_inside_the_margin(kernel):
    model = RankSVM(1e-4, kernel).fit(X, Y, qid=QID)
    f = model.predict(X)
    active = PAIRS[f[PAIRS[:, 0]] - f[PAIRS[:, 1]] < 1.0 - 1e-7]
    # pairs at the margin itself may be counted or not, by rounding
    reached = PAIRS[f[PAIRS[:, 0]] - f[PAIRS[:, 1]] < 1.0 + 1e-7]
    assert len(active) <= model.n_support_pairs_ <= len(reached)
    assert set(np.unique(active)) <= set(model.support_.tolist()) <= set(np.unique(reached))


def test_the_support_with_the_penalty_of_its_pairs_is_the_same_model():
    x = np.r_[np.arange(6.0), 50.0, 60.0][:, None] + 1e-3 * np.arange(8)[:, None] ** 2
    y = np.r_[0, 2, 1, 3, 5, 4, 6, 7].astype(float)
    model = RankSVM(0.1, scale=False, tol=1e-12).fit(x, y)
    kept = model.support_
    assert len(kept) < len(y)
    share = len(pairs_of(y[kept], np.zeros(len(kept)))) / len(pairs_of(y, np.zeros(len(y))))
    again = RankSVM(0.1 / share, scale=False, tol=1e-12).fit(x[kept], y[kept])
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-7)
    assert again.n_support_pairs_ == model.n_support_pairs_


def test_preferences_are_learnt_as_pairs_of_scores_are():
    by_scores = RankSVM(0.1, KERNEL).fit(X, Y, qid=QID)
    by_pairs = RankSVM(0.1, KERNEL).fit(X, pairs=PAIRS, qid=QID)
    np.testing.assert_allclose(by_scores.predict(X), by_pairs.predict(X), atol=1e-6)
    assert by_scores.n_support_pairs_ == by_pairs.n_support_pairs_


@pytest.mark.parametrize("alpha", [0.1, None])
def test_a_linear_kernel_by_either_road_is_one_model(alpha):
    by_columns = RankSVM(alpha, scale=False).fit(X, Y, qid=QID)
    by_rows = RankSVM(alpha, lambda A, B: A @ B.T).fit(X, Y, qid=QID)
    assert by_rows.alpha_ == pytest.approx(by_columns.alpha_)
    gap = by_columns.predict(X) - by_rows.predict(X)
    np.testing.assert_allclose(gap, 0.0, atol=1e-6)


def test_a_basis_needs_a_kernel():
    with pytest.raises(InputError, match="n_basis is 5, but a linear kernel has no basis"):
        RankSVM(n_basis=5).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match=r"basis is \[1, 2\]"):
        RankSVM(basis=[1, 2]).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="choose one of random, kmeans"):
        RankSVM(0.1, KERNEL, basis="best").fit(X, Y, qid=QID)


def test_rows_that_no_pair_names_are_no_basis():
    pairs = PAIRS[(PAIRS % 2 == 0).all(axis=1)]
    model = RankSVM(0.1, KERNEL, scale=False).fit(X, pairs=pairs, qid=QID)
    assert model.basis_.numbers.tolist() == np.unique(pairs).tolist()
    alone = RankSVM(0.1, KERNEL, scale=False).fit(X[::2], pairs=pairs // 2, qid=QID[::2])
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-8)
    with pytest.raises(InputError, match="no pair has a positive weight"):
        RankSVM(0.1, KERNEL).fit(RankingData.of_pairs(X, pairs, QID), sample_weight=np.arange(len(Y)) % 2)


def test_a_precomputed_kernel_is_split_by_scikit_learn():
    K, how = KERNEL(X), {"params": {"qid": QID}, "cv": QueryKFold(3), "error_score": "raise"}
    with config_context(enable_metadata_routing=True):
        by_rows = cross_val_score(RankSVM(0.1, KERNEL, scale=False), X, Y, **how)
        by_similarities = cross_val_score(RankSVM(0.1, "precomputed"), K, Y, **how)
    np.testing.assert_allclose(by_rows, by_similarities)
    with pytest.raises(InputError, match="needs the Gram matrix of the training rows"):
        RankSVM(0.1, "precomputed").fit(K[:, :9], Y, qid=QID)


def test_a_kernel_of_whole_numbers_is_that_of_floats():
    whole = RankSVM(0.1, lambda A, B: (np.sign(A) @ np.sign(B).T).astype(int)).fit(X, Y, qid=QID)
    floats = RankSVM(0.1, lambda A, B: np.sign(A) @ np.sign(B).T).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(whole.predict(X), floats.predict(X))


@pytest.mark.parametrize(
    ("kernel", "factor", "sentence"),
    [
        (lambda A, B: np.full((len(A), len(B)), np.nan), 1.0, "the kernel function returned NaN or infinity"),
        ("polynomial", 1e200, "overflow float64; rescale the columns"),
        (lambda A, B: -A @ B.T, 1.0, "the kernel is not positive semidefinite; use a kernel that is an inner product"),
        (lambda A, B: np.tanh(A @ B.T - 1.0), 1.0, "the kernel is not positive semidefinite"),
        (lambda A, B: A @ B.T * 1j, 1.0, "the kernel function returned values of type complex128; return real"),
    ],
)
def test_kernels_that_are_no_inner_product_get_one_sentence(kernel, factor, sentence):
    with pytest.raises(InputError, match=sentence):
        RankSVM(0.1, kernel, scale=False).fit(X * factor, Y, qid=QID)


def test_rows_beside_the_basis_are_looked_at_too():
    with pytest.raises(InputError, match="returned NaN or infinity"):
        RankSVM(0.1, lambda A, B: A @ B.T if len(A) == len(B) else np.full((len(A), len(B)), np.inf), n_basis=5).fit(
            X, Y, qid=QID
        )


def test_a_second_fit_forgets_the_first_and_until_then_the_first_predicts():
    model = RankSVM(0.1).fit(X, Y, qid=QID)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(kernel=KERNEL).predict(X), before)
    before = model.fit(X, Y, qid=QID).predict(X)
    assert not hasattr(model, "coef_")
    np.testing.assert_array_equal(model.set_params(kernel="linear").predict(X), before)
    assert not {"dual_coef_", "basis_"} & set(vars(model.fit(X, Y, qid=QID)))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["linear", KERNEL])
@pytest.mark.parametrize("alpha", [0.1, None])
def test_scaled_columns_are_columns_divided_by_hand(kind, kernel, alpha):
    units = 10.0 ** (np.arange(20) % 7 - 3)
    model = RankSVM(alpha, kernel).fit(kind(X * units), Y, qid=QID)
    divided = X * units * model.column_scale_
    by_hand = RankSVM(alpha, kernel, scale=False).fit(divided, Y, qid=QID)
    assert model.alpha_ == pytest.approx(by_hand.alpha_)
    np.testing.assert_allclose(model.predict(kind(X * units)), by_hand.predict(divided), atol=1e-6)
    if kernel == "linear":
        np.testing.assert_allclose(model.coef_, by_hand.coef_ * model.column_scale_, rtol=1e-4)


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("kernel", ["linear", KERNEL])
def test_queries_weigh_as_asked_by_scores_and_by_pairs(query_weight, kernel):
    w, v = np.random.default_rng(3).random(len(Y)), np.random.default_rng(4).random(len(PAIRS))
    how = {"query_weight": query_weight, "kernel": kernel, "tol": 1e-10}
    by_pairs = RankSVM(0.1, **how).fit(X, pairs=PAIRS, pair_weight=v, qid=QID, sample_weight=w)
    of_pair, query = v * w[PAIRS].prod(axis=1), QID[PAIRS[:, 0]]
    for q in set(query):
        mine = query == q
        share = {"pairs": 1.0, "equal": 2 * of_pair[mine].sum(), "rows": w[np.unique(PAIRS[mine])].sum()}[query_weight]
        of_pair[mine] /= share
    # columns are divided by deviations that rows weigh in
    seen = X * by_pairs.column_scale_
    explicit = RankSVM(0.1, kernel, scale=False, tol=1e-10).fit(seen, pairs=PAIRS, pair_weight=of_pair, qid=QID)
    np.testing.assert_allclose(by_pairs.predict(X), explicit.predict(seen), rtol=1e-5, atol=1e-7)


def test_objects_have_no_columns():
    words = np.array(["aab", "ab", "b", "bba", "aaa", "abab"], dtype=object)
    y = np.array([len(word.replace("b", "")) for word in words], dtype=float)

    def shared(A, B):
        return [[sum(min(a.count(c), b.count(c)) for c in "ab") for b in B] for a in A]

    model = RankSVM(0.01, shared).fit(words, y)
    assert model.score(words, y) == 1.0
    assert not hasattr(model, "n_features_in_")
    named = RankSVM(0.01, shared).fit(words, pairs=[[0, 1], [4, 2]])
    assert named.basis_.numbers.tolist() == [0, 1, 2, 4]


def test_alpha_is_chosen_from_pair_differences():
    model = RankSVM().fit(X, Y, qid=QID)
    assert model.alpha_from_ == "pair differences"
    scaled = X * model.column_scale_
    assert model.alpha_ == default_alpha(replace(RankingData.of(X, Y, QID), X=ScaledRows(X, model.column_scale_)))
    assert model.alpha_ == pytest.approx(default_alpha(RankingData.of(scaled, Y, QID)))
    given = RankSVM(model.alpha_).fit(X, Y, qid=QID)
    assert given.alpha_from_ == "given"
    np.testing.assert_array_equal(given.coef_, model.coef_)


def test_it_warns_where_newton_stops_short():
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps"):
        RankSVM(1e-6, max_iter=1).fit(X, Y, qid=QID)
