"""RankSVM against an explicit sum over pairs and a general optimiser."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from corank.data.make import make_ranking
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.kernels import GaussianKernel
from corank.svm import RankSVM

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
    model = RankSVM(alpha).fit(X, Y, qid=QID)
    assert model.objective_ == pytest.approx(objective(X @ model.coef_, 0.5 * alpha * model.coef_ @ model.coef_))
    assert model.objective_ <= found.fun + 1e-9
    np.testing.assert_allclose(model.coef_, found.x, atol=1e-4)


@pytest.mark.parametrize("n_basis", [None, 12])
def test_kernel_optimum_in_the_span_of_the_basis(n_basis):
    model = RankSVM(0.05, KERNEL, n_basis=n_basis, random_state=0).fit(X, Y, qid=QID)
    Kr, K = KERNEL(X, X[model.basis_rows_]), KERNEL(X[model.basis_rows_])

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
    without = np.setdiff1d(np.arange(len(Y)), model.support_)
    assert len(model.support_) + len(without) == len(Y)


def test_preferences_are_learnt_as_pairs_of_scores_are():
    by_scores = RankSVM(0.1, KERNEL).fit(X, Y, qid=QID)
    by_pairs = RankSVM(0.1, KERNEL).fit(RankingData.of_pairs(X, PAIRS, QID))
    np.testing.assert_allclose(by_scores.predict(X), by_pairs.predict(X), atol=1e-6)
    assert by_scores.n_support_pairs_ == by_pairs.n_support_pairs_


def test_a_linear_kernel_by_either_road_is_one_model():
    by_columns = RankSVM(0.1).fit(X, Y, qid=QID)
    by_rows = RankSVM(0.1, lambda A, B: A @ B.T).fit(X, Y, qid=QID)
    gap = by_columns.predict(X) - by_rows.predict(X)
    np.testing.assert_allclose(gap, 0.0, atol=1e-6)


def test_a_basis_needs_a_kernel():
    with pytest.raises(InputError, match="a linear kernel has no basis"):
        RankSVM(n_basis=5).fit(X, Y, qid=QID)
