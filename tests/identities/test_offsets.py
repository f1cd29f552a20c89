"""Rankers compare rows: where the origin is does not matter, as far as the numbers hold it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from corank import SPD, CoRankRLS, RankingPursuit, RankRLS, RankSVM
from corank.errors import InputError

RNG = np.random.default_rng(0)
# numbers that offsets leave as they are: eight binary digits after the point
X, QID = np.round(RNG.normal(size=(120, 4)) * 256) / 256, np.repeat(np.arange(12), 10)
Y = np.digitize(X @ [1.0, 0.5, 0.0, -0.5] + RNG.normal(size=120), [-1.0, 0.0, 1.0]).astype(float)
HALF = np.where(RNG.random(120) < 0.4, np.nan, Y)

RANKERS = {
    "least squares": RankRLS(),
    "least squares, as given": RankRLS(0.01, scale=False),
    "path": RankRLS(alphas=[0.01, 1.0]),
    "gaussian": RankRLS(0.01, "gaussian", random_state=0),
    "gaussian basis": RankRLS(0.01, "gaussian", n_basis=20, basis="kmeans++", random_state=0),
    "laplacian": RankRLS(0.01, "laplacian", random_state=0),
    "views": CoRankRLS(2, alpha=0.01, random_state=0),
    "margin": RankSVM(),
    "margin, gaussian": RankSVM(kernel="gaussian", random_state=0),
    "pairs": SPD(random_state=0),
    "pursuit": RankingPursuit(kernel="gaussian", n_basis=20, random_state=0),
}


def margins(ranker, rows, kind):
    """Scores less their mean in each query."""
    with warnings.catch_warnings():
        # alpha of few rows, and solvers that are content early, have their own tests
        warnings.simplefilter("ignore")
        f = ranker.fit(kind(rows), HALF, qid=QID).predict(kind(rows))
    return f - np.bincount(QID, f)[QID] / 10


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 2.0**13), (np.float64, 2.0**13), (np.float64, 2.0**26)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_an_offset_changes_no_margin(name, dtype, offset, kind):
    if name == "laplacian" and kind is not np.asarray:
        pytest.skip("takes no sparse rows")
    near, far = X.astype(dtype), (X + offset).astype(dtype)
    assert (far - dtype(offset) == near).all()
    # CSR rows without offset have zeros of their own: they are compared dense
    expected, found = margins(RANKERS[name], near, np.asarray), margins(RANKERS[name], far, kind)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize(
    "ranker", [RankRLS(kernel="gaussian"), RankingPursuit(kernel="gaussian", n_basis=9), RankSVM(kernel="gaussian")]
)
@pytest.mark.parametrize("scale", [False, True])
def test_a_width_that_nobody_passed_is_not_blamed(ranker, scale):
    with pytest.raises(InputError, match="X has numbers so large that distances of"):
        ranker.set_params(scale=scale).fit(X * 1e200, Y, qid=QID)
