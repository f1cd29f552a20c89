"""
Whether a Gaussian kernel would rank better than a linear one, by leaving out fifths of some of the queries.

For at most `N_QUERIES` random queries, both kernels predict each fifth from the others: the linear one with the chosen
alpha, the Gaussian one with `N_BASIS` basis rows and the best of three alphas. With d_q the gain in the metric of query
q, the Gaussian kernel is better if mean d ≥ `MARGIN` and mean d ≥ `N_ERRORS` standard errors of it. Three errors
allow for the choice among alphas and for users who fit often. Fifths instead of single queries are several times as
fast, so that the check takes about as long as the fit of 100 queries, whatever the size of the problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels.basis import Basis
from corank.base.kernels.basis_choice import choose_basis
from corank.base.kernels.features import FeatureMap
from corank.base.kernels.views import View
from corank.base.solvers.penalty import alpha_of, freedom
from corank.core.rows.scaled import plain
from corank.data.ranking import RankingData
from corank.data.splits import keep_scores
from corank.models.rls.accuracy import LeftOut
from corank.models.rls.frame import Frame, RowFrame
from corank.models.rls.selection import EVIDENCE, direction

Floats = NDArray[np.float64]

LEAST_QUERIES, N_QUERIES, MOST_ROWS, N_BASIS = 50, 100, 4_000, 100
MARGIN, N_ERRORS = 0.01, 3.0
_FOLDS = 5
# alphas of the Gaussian kernel, relative to the closed rule
_ALPHAS = np.array([1e-3, 1e-2, 1e-1])


def gaussian_is_better(data: RankingData, frame: Frame, alpha: float, metric: str) -> bool:
    """Return whether a Gaussian kernel is better than the linear one on left-out queries."""
    is_dense = isinstance(plain(data.X), np.ndarray)
    if metric == EVIDENCE or not isinstance(frame, RowFrame) or not is_dense or frame.n_queries < LEAST_QUERIES:
        return False
    rng = np.random.default_rng(0)
    chosen = rng.permutation(frame.n_queries)[:N_QUERIES]
    chosen = chosen[np.cumsum(np.diff(frame.starts)[chosen]) <= MOST_ROWS]
    if len(chosen) < LEAST_QUERIES:
        return False
    kept = np.zeros(data.n_rows, dtype=bool)
    for q in chosen:
        kept[frame.rows[frame.starts[q] : frame.starts[q + 1]]] = True
    data = keep_scores(data, kept)
    frame = Frame.of(data, frame.query_weight, frame.ties)
    assert isinstance(frame, RowFrame)
    linear = FeatureMap.of_columns(View(None, "linear"), data.n_features)
    view = View(None, "gaussian").fit(data.X, rng, data.weights)
    rows = choose_basis(view, data.X, frame.rows, N_BASIS, "random", rng)
    gaussian = FeatureMap.on_basis(Basis.of(view, data.X, rows), data.X)
    before = _values(data, frame, linear, np.array([alpha]), metric)[0]
    after = _values(data, frame, gaussian, None, metric)
    d = direction(metric) * (max(after, key=lambda one: direction(metric) * np.nanmean(one)) - before)
    d = d[~np.isnan(d)]
    error = np.std(d, ddof=1) / np.sqrt(len(d)) if len(d) > 1 else np.inf
    return bool(len(d) and d.mean() >= max(MARGIN, N_ERRORS * error))


def _values(data: RankingData, frame: RowFrame, phi: FeatureMap, alphas: Floats | None, metric: str) -> list[Floats]:
    """Return the metric of each left-out query, for each alpha; by default some below that of the closed rule."""
    Z, t = frame.design(0, frame.n_queries, data.X, phi)
    A, b, query = Z.T @ Z, Z.T @ t, np.arange(frame.n_queries)
    alphas = alpha_of(float(np.trace(A)), 0, freedom(data, frame.ties)) * _ALPHAS if alphas is None else alphas
    row = np.repeat(query, np.diff(frame.starts))
    values = np.empty((len(t), len(alphas)))
    for fold in range(_FOLDS):
        out = row % _FOLDS == fold
        # the loss is a mean over pairs: the others have 1/(1 − s) times their weight, see `corank.models.rls.leave_out`
        shifts = (1.0 - frame.shares[query % _FOLDS == fold].sum()) * alphas
        rest = A - Z[out].T @ Z[out] + shifts[:, None, None] * np.eye(len(A))
        side = np.broadcast_to((b - Z[out].T @ t[out])[:, None], (len(alphas), len(b), 1))
        values[out] = Z[out] @ np.linalg.solve(rest, side)[:, :, 0].T
    held = LeftOut(values, np.zeros_like(values))
    return [np.asarray(result.values, dtype=np.float64) for result in frame.results(held, metric)]
