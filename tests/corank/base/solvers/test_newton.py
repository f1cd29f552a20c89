"""Where Newton's method stops, against optima of sixty digits: as near as it says, or with a warning."""

from __future__ import annotations

import itertools
import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from corank import CRR, SPD, RankSVM, make_ranking
from corank.base.solvers import smooth_loss
from corank.data.ranking import RankingData

exact = np.frompyfunc(lambda x: Decimal(float(x)), 1, 1)


def problem(seed):
    """Few rows of any scale, and a penalty of any weight; differences of rows (or rows and a 1) and what they cost."""
    rng = np.random.default_rng(seed)
    n, d, mix = int(rng.integers(3, 12)), int(rng.integers(1, 7)), float(rng.choice([0.0, 1.0]))
    loss, alpha = str(rng.choice(["squared_hinge", "logistic"])), float(10.0 ** rng.integers(-8, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d) + rng.choice([0.0, 10.0])
    X *= 10.0 ** rng.integers(-6, 7)
    y, weights = rng.permutation(np.arange(n) % 2).astype(float), rng.choice([0.5, 1.0, 4.0], n)
    y = 2.0 * y - 1.0 if mix and loss == "squared_hinge" else y
    if mix:
        Z, t, c = np.column_stack([exact(X), exact(np.ones(n))]), exact(y), exact(weights)
    else:
        P = np.array([(i, j) for i, j in itertools.permutations(range(n), 2) if y[i] > y[j]])
        Z, t = exact(X)[P[:, 0]] - exact(X)[P[:, 1]], exact(np.ones(len(P)))
        c = exact(weights)[P].prod(axis=1)
    how = {"mix": mix, "fit_intercept": bool(mix), "alpha": alpha}
    return RankingData.of(X, y, weights=weights), loss, how, (Z, t, c / c.sum(), d)


def parts(theta, loss, alpha, Z, t, c, d):
    """The objective, its gradient, and the bend of each cost."""
    m, w = Z @ theta, np.append(theta[:d], [Decimal(0)] * (len(theta) - d))
    if loss == "squared_hinge":
        short = np.array([max(Decimal(0), 1 - x) for x in t * m])
        costs, slopes, bends = short**2 / 2, -t * short, t**2 * (short > 0)
    else:
        e = np.array([(-abs(x)).exp() for x in m])
        p = np.where(m >= 0, 1, e) / (1 + e)
        costs = np.where(m >= 0, (1 - t) * m, -t * m) + np.array([(1 + x).ln() for x in e])
        slopes, bends = p - t, e / (1 + e) ** 2
    return c @ costs + alpha * (w @ w) / 2, Z.T @ (c * slopes) + alpha * w, c * bends


def solve(A, b):
    """Gaussian elimination."""
    A = np.column_stack([A, b])
    for k in range(len(A)):
        top = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, top]] = A[[top, k]]
        A[k] = A[k] / A[k, k]
        others = np.arange(len(A)) != k
        A[others] = A[others] - np.outer(A[others, k], A[k])
    return A[:, -1]


def lowest(loss, alpha, Z, t, c, d):
    """The minimum, by Newton steps with an explicit second derivative, halved until they pay."""
    theta, penalty = exact(np.zeros(Z.shape[1])), np.diag([alpha] * d + [Decimal(0)] * (Z.shape[1] - d))
    for _ in range(300):
        value, g, bends = parts(theta, loss, alpha, Z, t, c, d)
        H = Z.T @ (bends[:, None] * Z) + penalty
        H[np.diag_indices(d)] += Decimal("1e-60")
        step = solve(H + np.diag([Decimal(0)] * d + [Decimal("1e-60")] * (len(H) - d)), -g)
        if -(g @ step) <= value * Decimal("1e-25") + Decimal("1e-60"):
            return value
        while parts(theta + step, loss, alpha, Z, t, c, d)[0] > value + Decimal("1e-4") * (g @ step):
            step = step / 2
        theta = theta + step
    raise AssertionError("no optimum to compare with")


@pytest.mark.thin(5)
@pytest.mark.parametrize("seed", range(120))
def test_it_is_as_near_the_optimum_as_it_says(seed):
    data, loss, how, given = problem(seed)
    with warnings.catch_warnings(record=True) as told, np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("always")
        found = smooth_loss(data, loss, **how)
    assert all(issubclass(one.category, ConvergenceWarning) for one in told)
    with localcontext() as digits:
        digits.prec = 60
        alpha, theta = Decimal(how["alpha"]), exact(np.append(found.coef, [found.intercept] * how["fit_intercept"]))
        best = lowest(loss, alpha, *given)
        above = float(parts(theta, loss, alpha, *given)[0] - best)
    if told:
        # rounding only: the penalty is nothing beside the squares of the rows
        assert how["alpha"] < 1e-9 * float(np.square(data.X).max())
    else:
        assert above <= 1e-6 * float(best) + 1e-28


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_units_change_nothing(loss, scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 6)), rng.permutation(np.arange(8) % 2).astype(float)
    one = smooth_loss(RankingData.of(X, y), loss, alpha=1e-9)
    other = smooth_loss(RankingData.of(scale * X, y), loss, alpha=1e-9 * scale**2)
    assert other.objective == pytest.approx(one.objective, rel=1e-9)
    np.testing.assert_allclose(scale * other.coef, one.coef, rtol=1e-5)


@pytest.mark.parametrize("make", [SPD, RankSVM, lambda **how: CRR("logistic", **how)])
@pytest.mark.parametrize("alpha", [None, 1e-6, 1.0, 1e6])
def test_no_warning_where_there_is_nothing_to_warn_of(make, alpha):
    data = make_ranking(20, 10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(alpha=alpha).fit(data.X, data.y / data.y.max(), qid=data.qid)


def test_every_estimator_names_a_parameter_that_it_has():
    data = make_ranking(20, 10, random_state=0)
    for model in (SPD(alpha=1e-6, max_iter=1), RankSVM(alpha=1e-6, max_iter=1), CRR("logistic", 0.5, 1e-6, max_iter=1)):
        with pytest.warns(ConvergenceWarning, match="raise alpha, tol or max_iter"):
            model.fit(data.X, data.y / data.y.max(), qid=data.qid)
        assert {"alpha", "tol", "max_iter"} <= set(model.get_params())
