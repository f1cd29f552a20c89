"""The hint that a Gaussian kernel would rank better."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from corank.base.kernels.basis import Basis, FeatureMap
from corank.base.kernels.views import View
from corank.data.ranking import RankingData
from corank.errors import UsageWarning
from corank.metrics import evaluate
from corank.models.rls import RankRLS, ViewRankRLS, selection
from corank.models.rls.frame import ComparedRows

ALPHAS = [1e-3, 1e-2, 0.1, 1.0]
QID = np.repeat(np.arange(70), 8)


def problem(bend: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(QID), 4))
    u = X[:, 0] + bend * (X[:, 1] ** 2 + X[:, 2] * X[:, 3]) + 0.3 * rng.normal(size=len(QID))
    return X, np.digitize(u, np.quantile(u, [0.5, 0.75, 0.9])).astype(float)


def fits(model: RankRLS, X: np.ndarray, y: np.ndarray) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X, y, qid=QID[: len(y)])
    return [str(one.message) for one in found if issubclass(one.category, UsageWarning)]


def test_a_hint_is_given_where_a_kernel_helps_and_only_there():
    X, y = problem(1.0)
    assert len(given := fits(RankRLS(alphas=ALPHAS), X, y)) == 1
    assert "kernel='gaussian'" in given[0]
    assert not fits(RankRLS(alphas=ALPHAS), *problem(0.0))
    # the closed rule leaves nothing out; few queries; views; another kernel
    assert not fits(RankRLS(), X, y)
    assert not fits(RankRLS(alphas=ALPHAS), X[:320], y[:320])
    assert not fits(ViewRankRLS(2, alphas=[0.1], random_state=0), X, y)
    assert not fits(RankRLS(kernel="gaussian", alphas=ALPHAS, n_basis=50, random_state=0), X, y)
    # the hint does not change the model
    assert np.array_equal(
        RankRLS(alphas=ALPHAS).fit(X, y, qid=QID).coef_,
        RankRLS(alphas=ALPHAS)._fit(_scaled(X, y), None, np.random.default_rng(0), hints=False).coef,
    )


def _scaled(X: np.ndarray, y: np.ndarray) -> RankingData:
    from dataclasses import replace

    from corank.core.rows.access import ScaledRows
    from corank.data.columns import column_factors

    data = RankingData.of(X, y, QID)
    return replace(data, X=ScaledRows(data.X, column_factors(data)))


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_left_out_values_are_those_of_fits_without_the_fold(kernel):
    X, y = problem(0.5)
    data = RankingData.of(X, y, QID)
    frame, view = ComparedRows.of(data, "pairs", False), View(None, kernel).fit(X, np.random.default_rng(1))
    rows = np.arange(0, len(y), 9)
    if kernel == "linear":
        phi = FeatureMap.of_columns(view, X.shape[1])
    else:
        phi = FeatureMap.on_basis(Basis.of(view, X, rows), X)
    found = selection._values(data, frame, phi, np.array([0.02, 0.5]), "disagreement")
    compared = QID[frame.rows[frame.starts[:-1]]]
    for alpha, values in zip((0.02, 0.5), found, strict=True):
        for fold in range(5):
            out = np.isin(QID, compared[fold::5])
            model = RankRLS(alpha, view.kernel, scale=False, **({} if kernel == "linear" else {"basis": rows.tolist()}))
            kept = np.where(out, np.nan, y)
            scores = model.fit(X, kept, qid=QID).predict(X[out])
            expected = evaluate(y[out], scores, QID[out], "disagreement")["disagreement"].values
            np.testing.assert_allclose(values[fold::5], expected, atol=1e-12)
